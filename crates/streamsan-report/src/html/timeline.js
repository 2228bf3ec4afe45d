// A timeline on a canvas: what lies in view is drawn anew for each frame, so that its cost is that of the pixels.
(() => {
  const NAMES = 150, TOP = 40, ROW = 26, BAR = 16, AXIS = 20;
  const KERNEL = 0, COPY = 1, RECORD = 2, WAIT = 3, HOST_WAIT = 4;
  const MONO = getComputedStyle(document.documentElement).getPropertyValue("--code") || "monospace";

  class Timeline {
    constructor(box) {
      this.canvas = box.querySelector("canvas");
      this.context = this.canvas.getContext("2d");
      this.detail = box.querySelector(".detail");
      this.hint = this.detail.textContent;
      this.data = JSON.parse(box.querySelector("script").textContent);
      for (const stretch of this.data.stretches) {
        let number = 0;
        stretch.number = stretch.number.map((difference) => (number += difference));
      }
      // From left to right, so that ids that would stand on each other can be left out.
      const last = (pin) => pin.marks[pin.marks.length - 1][1];
      this.data.pins.sort((a, b) => last(a) - last(b));
      // A little room at both ends.
      this.low = -0.5;
      this.high = Math.max(this.data.total, 4) + 0.5;
      [this.from, this.to] = [this.low, this.high];
      this.chosen = null;
      this.listen(box);
      this.resize();
    }

    get names() { return this.width < 600 ? 84 : NAMES; }
    get scale() { return (this.width - this.names) / (this.to - this.from); }
    // How wide an operation is drawn.
    get wide() { return Math.max(1, Math.min(this.scale - 1, this.scale * 0.9)); }
    x(rank) { return this.names + (rank - this.from) * this.scale; }
    rank(x) { return this.from + (x - this.names) / this.scale; }
    y(row) { return TOP + row * ROW + ROW / 2; }

    resize() {
      this.width = this.canvas.clientWidth;
      this.height = TOP + this.data.rows.length * ROW + AXIS;
      const ratio = devicePixelRatio || 1;
      this.canvas.style.height = `${this.height}px`;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.soon();
    }

    soon() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    }

    view(from, to) {
      const whole = this.high - this.low;
      const span = Math.min(Math.max(to - from, Math.min(4, whole)), whole);
      const middle = (from + to) / 2;
      this.from = Math.min(Math.max(middle - span / 2, this.low), this.high - span);
      this.to = this.from + span;
      this.canvas.dataset.view = `${this.from.toFixed(2)} ${this.to.toFixed(2)}`;
      this.soon();
    }

    zoom(factor, rank = (this.from + this.to) / 2) {
      this.view(rank - (rank - this.from) * factor, rank + (this.to - rank) * factor);
    }

    pan(share) {
      const by = (this.to - this.from) * share;
      this.view(this.from + by, this.to + by);
    }

    show(id) {
      const pin = this.data.pins.find((pin) => pin.id === id);
      if (!pin) return false;
      const ranks = pin.marks.map((mark) => mark[1]);
      const [first, last] = [Math.min(...ranks), Math.max(...ranks)];
      const room = Math.max((last - first) * 0.5, 6);
      this.view(first - room, last + room);
      this.emphasis = id;
      return true;
    }

    colors() {
      const style = getComputedStyle(document.documentElement);
      const value = (name) => style.getPropertyValue(name).trim();
      return {
        paper: value("--paper"), panel: value("--panel"), ink: value("--ink"), soft: value("--soft"),
        line: value("--line"), wrong: value("--mark"), kernel: "#0072b2", copy: "#00795a", host: "#5b6470",
      };
    }

    draw() {
      const { context, width, height, data } = this;
      const color = (this.color = this.colors());
      context.fillStyle = color.paper;
      context.fillRect(0, 0, width, height);
      this.drawLanes(this.names, width - this.names);
      context.save();
      context.beginPath();
      context.rect(this.names, 0, width - this.names, height);
      context.clip();
      this.drawn = 0;
      const covered = data.stretches.filter((stretch) => stretch.start < this.to && stretch.start + stretch.what.length > this.from);
      if (!data.complete) this.drawBins(covered);
      // Where one event is less than a pixel, a share of each column is what can be seen.
      for (const stretch of covered) this.scale < 1 ? this.drawDensity(stretch) : this.drawEvents(stretch);
      this.drawPins();
      context.restore();
      this.drawNames();
      this.drawAxis();
      this.canvas.dataset.drawn = this.drawn;
    }

    drawNames() {
      const { context, data, color } = this;
      context.fillStyle = color.paper;
      context.fillRect(0, 0, this.names, this.height);
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.font = `600 12px ${MONO}`;
      data.rows.forEach((row, index) => {
        context.fillStyle = color.ink;
        context.fillText(this.fit(row.name, this.names - 16), 8, this.y(index));
      });
    }

    drawAxis() {
      const { context, color, width, height } = this;
      const step = 10 ** Math.ceil(Math.log10(Math.max(90 / this.scale, 1)));
      const by = [step / 5, step / 2, step].find((each) => each * this.scale >= 90 && each >= 1) || step;
      context.font = `11px ${MONO}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      let before = null;
      for (let rank = Math.max(0, Math.ceil(this.from / by) * by); rank < Math.min(this.to, this.data.total); rank += by) {
        const x = this.x(rank + 0.5);
        const text = this.number(rank);
        // Two places of one bin have one number.
        if (x < this.names + 24 || x > width - 24 || text === before) continue;
        before = text;
        context.fillStyle = color.line;
        context.fillRect(x, height - AXIS, 1, 4);
        context.fillStyle = color.soft;
        context.fillText(text, x, height - AXIS / 2 + 2);
      }
    }

    // The number of an event, or of the first of its bin.
    number(rank) {
      const { data } = this;
      const stretch = data.stretches.find((one) => rank >= one.start && rank < one.start + one.what.length);
      if (stretch) return `#${stretch.number[rank - stretch.start].toLocaleString("en")}`;
      const start = data.starts[Math.floor(rank / data.width)];
      return start === undefined ? "" : `~#${start.toLocaleString("en")}`;
    }

    drawBins(covered) {
      const { context, data, color } = this;
      const first = Math.max(0, Math.floor(this.from / data.width));
      const last = Math.min(data.starts.length - 1, Math.floor(this.to / data.width));
      context.fillStyle = color.kernel;
      context.globalAlpha = 0.55;
      data.bins.forEach((counts, row) => {
        for (let bin = first; bin <= last; bin++) {
          if (!counts[bin]) continue;
          const [left, right] = [Math.floor(this.x(bin * data.width)), Math.floor(this.x(Math.min((bin + 1) * data.width, data.total)))];
          const high = Math.max(2, BAR * Math.sqrt(counts[bin] / data.width));
          context.fillRect(left, this.y(row) + BAR / 2 - high, Math.max(1, right - left), high);
          this.drawn++;
        }
      });
      context.globalAlpha = 1;
      // Where each event is known, the counts make room.
      for (const stretch of covered) {
        const [left, right] = [this.x(stretch.start), this.x(stretch.start + stretch.what.length)];
        if (right - left < 3) continue;
        context.fillStyle = color.paper;
        context.fillRect(left, TOP, right - left, data.rows.length * ROW);
        this.drawLanes(left, right - left);
      }
    }

    drawLanes(left, wide) {
      this.context.fillStyle = this.color.line;
      this.data.rows.forEach((_, row) => this.context.fillRect(left, this.y(row) - 0.5, wide, 1));
    }

    bounds(stretch) {
      const first = Math.max(0, Math.floor(this.from - stretch.start));
      return [first, Math.min(stretch.what.length, Math.ceil(this.to - stretch.start) + 1)];
    }

    drawDensity(stretch) {
      const { context, color, width } = this;
      const [first, last] = this.bounds(stretch);
      const columns = new Map();
      for (let index = first; index < last; index++) {
        const kind = stretch.what[index] & 7;
        if (kind === RECORD || kind === WAIT) continue;
        const x = Math.floor(this.x(stretch.start + index));
        const key = ((stretch.what[index] >> 3) * 8192 + Math.min(Math.max(x, 0), width)) * 2 + (kind === COPY ? 1 : 0);
        columns.set(key, (columns.get(key) || 0) + 1);
      }
      for (const [key, count] of columns) {
        const [x, row, copy] = [(key >> 1) % 8192, Math.floor((key >> 1) / 8192), key & 1];
        const high = Math.max(3, BAR * Math.sqrt(Math.min(1, count * this.scale)));
        context.fillStyle = copy ? color.copy : color.kernel;
        context.fillRect(x, this.y(row) - high / 2, 1, high);
        this.drawn++;
      }
    }

    drawEvents(stretch) {
      const { context, data, color, scale } = this;
      const [first, last] = this.bounds(stretch);
      if (scale > 3) this.drawWaits(stretch, first, last);
      context.textBaseline = "middle";
      context.textAlign = "left";
      context.font = `11px ${MONO}`;
      const { wide } = this;
      for (let index = first; index < last; index++) {
        const [row, kind] = [stretch.what[index] >> 3, stretch.what[index] & 7];
        const [x, y] = [this.x(stretch.start + index), this.y(row)];
        this.drawn++;
        if (kind === RECORD || kind === WAIT) {
          const radius = Math.min(4, Math.max(1, scale / 3));
          context.beginPath();
          context.arc(x + scale / 2, y, radius, 0, 7);
          context.fillStyle = kind === WAIT ? color.soft : color.paper;
          context.fill();
          context.lineWidth = 1.5;
          context.strokeStyle = color.soft;
          context.stroke();
        } else if (kind === HOST_WAIT) {
          context.fillStyle = color.host;
          context.fillRect(x + scale / 2 - 1, y - BAR / 2, 2, BAR);
        } else {
          context.fillStyle = kind === KERNEL ? color.kernel : kind === COPY ? color.copy : color.host;
          context.fillRect(x, y - BAR / 2, wide, BAR);
          if (wide > 34) {
            context.fillStyle = "#ffffff";
            const text = data.labels[stretch.label[index]].replace(/^aten::/, "");
            context.fillText(this.fit(text, wide - 6), x + 3, y + 0.5);
          }
        }
      }
      const { chosen } = this;
      if (chosen && chosen.stretch === stretch) {
        context.strokeStyle = color.ink;
        context.lineWidth = 2;
        const row = stretch.what[chosen.index] >> 3;
        context.strokeRect(this.x(stretch.start + chosen.index) - 1, this.y(row) - BAR / 2 - 2, Math.max(wide, 4) + 2, BAR + 4);
      }
    }

    drawWaits(stretch, first, last) {
      const { context, color } = this;
      context.strokeStyle = color.soft;
      context.lineWidth = 1.25;
      context.globalAlpha = 0.7;
      context.beginPath();
      for (let index = first; index < stretch.what.length && index < last + 200; index++) {
        const ago = stretch.link[index];
        if (!ago) continue;
        const [fromRow, toRow] = [stretch.what[index - ago] >> 3, stretch.what[index] >> 3];
        if (fromRow === toRow) continue;
        const [x1, x2] = [this.x(stretch.start + index - ago + 0.5), this.x(stretch.start + index + 0.5)];
        if (x1 > this.width) continue;
        const [y1, y2, bend] = [this.y(fromRow), this.y(toRow), Math.max(10, (x2 - x1) / 2)];
        context.moveTo(x1, y1);
        context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
      }
      context.stroke();
      context.globalAlpha = 1;
    }

    drawPins() {
      const { context, data, color, scale } = this;
      context.font = `700 11px ${MONO}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      let free = -Infinity;
      const half = Math.max(scale, 1) / 2;
      for (const pin of data.pins) {
        const strong = this.emphasis === pin.id;
        if (pin.missing) {
          const [[, r1, row1], [, r2, row2]] = pin.marks;
          const [x1, x2] = [this.x(r1) + half, this.x(r2) + half];
          if (x2 >= this.names && x1 <= this.width) {
            context.strokeStyle = color.wrong;
            context.lineWidth = strong ? 3 : 2;
            context.setLineDash([6, 4]);
            context.beginPath();
            context.moveTo(x1, this.y(row1));
            context.lineTo(x2, this.y(row2));
            context.stroke();
            context.setLineDash([]);
          }
        }
        for (const [mark, rank, row] of pin.marks) {
          const x = this.x(rank) + half;
          if (x < this.names || x > this.width) continue;
          context.strokeStyle = color.wrong;
          context.lineWidth = 2.5;
          const wide = Math.max(this.wide, 5);
          context.strokeRect(x - half + Math.min(0, (scale - 5) / 2) - 1, this.y(row) - BAR / 2 - 1, wide + 2, BAR + 2);
          if (scale > 20 && mark) {
            context.fillStyle = color.wrong;
            context.fillText(mark, x, this.y(row) - BAR / 2 - 8);
          }
        }
        const x = this.x(pin.marks[pin.marks.length - 1][1]) + half;
        pin.x = x;
        if (x < this.names || x > this.width) continue;
        context.fillStyle = color.wrong;
        context.beginPath();
        context.moveTo(x, 22);
        context.lineTo(x - 5, 15);
        context.lineTo(x + 5, 15);
        context.fill();
        if (x > free) {
          context.fillText(pin.id, x, 8);
          free = x + pin.id.length * 7 + 6;
        }
      }
    }

    fit(text, room) {
      const characters = Math.floor(room / 6.9);
      return text.length <= characters ? text : characters < 2 ? "" : `${text.slice(0, characters - 1)}…`;
    }

    at(event) {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    }

    // The event under the pointer: in its row, at most a few pixels away.
    hit(x, y) {
      const row = Math.floor((y - TOP) / ROW);
      if (x < this.names || row < 0 || row >= this.data.rows.length) return null;
      const rank = this.rank(x);
      const reach = Math.max(1, Math.ceil(5 / this.scale));
      let best = null;
      for (const stretch of this.data.stretches) {
        const middle = Math.floor(rank - stretch.start);
        for (let index = Math.max(0, middle - reach); index <= Math.min(stretch.what.length - 1, middle + reach); index++) {
          if (stretch.what[index] >> 3 !== row) continue;
          const away = Math.abs(stretch.start + index + 0.5 - rank);
          if (!best || away < best.away) best = { stretch, index, away };
        }
      }
      return best;
    }

    describe({ stretch, index }) {
      const { data } = this;
      const label = data.labels[stretch.label[index]];
      const parts = [`#${stretch.number[index]} ${label}`, data.rows[stretch.what[index] >> 3].name];
      const place = data.places[stretch.place[index]];
      if (place) parts.push(place);
      if (stretch.link[index]) {
        const record = index - stretch.link[index];
        parts.push(`for ${data.rows[stretch.what[record] >> 3].name}, recorded at #${stretch.number[record]}`);
      }
      return parts.join(" · ");
    }

    pinAt(x, y) {
      return y > 24 ? null : this.data.pins.find((pin) => pin.x !== undefined && Math.abs(pin.x - x) < 12);
    }

    listen(box) {
      const { canvas } = this;
      new ResizeObserver(() => { if (canvas.clientWidth !== this.width) this.resize(); }).observe(canvas);
      document.addEventListener("theme", () => this.soon());
      let drag = null;
      canvas.addEventListener("pointerdown", (event) => {
        drag = { x: event.clientX, from: this.from, to: this.to, moved: false };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = this.at(event);
        if (drag) {
          const by = (drag.x - event.clientX) / this.scale;
          if (Math.abs(drag.x - event.clientX) > 3) drag.moved = true;
          if (drag.moved) this.view(drag.from + by, drag.to + by);
          return;
        }
        const hit = this.hit(x, y);
        canvas.style.cursor = hit || this.pinAt(x, y) ? "pointer" : "";
        const shown = hit || this.chosen;
        this.detail.textContent = shown ? this.describe(shown) : this.hint;
      });
      canvas.addEventListener("pointerup", (event) => {
        if (drag && !drag.moved) {
          const [x, y] = this.at(event);
          const pin = this.pinAt(x, y);
          if (pin) location.hash = pin.id;
          this.chosen = this.hit(x, y);
          this.soon();
        }
        drag = null;
      });
      canvas.addEventListener("pointercancel", () => { drag = null; });
      canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.rank(this.at(event)[0])));
      canvas.addEventListener("wheel", (event) => {
        const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
        const zooms = event.ctrlKey || event.metaKey || document.activeElement === canvas;
        if (!sideways && !zooms) return;
        event.preventDefault();
        if (sideways) this.pan((event.deltaX || event.deltaY) / (this.width - this.names));
        else this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -120), 120) * 0.004), this.rank(this.at(event)[0]));
      }, { passive: false });
      const actions = {
        all: () => this.view(this.low, this.high),
        in: () => this.zoom(0.5),
        out: () => this.zoom(2),
        left: () => this.pan(-0.25),
        right: () => this.pan(0.25),
      };
      const keys = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "all", Home: "all" };
      canvas.addEventListener("keydown", (event) => {
        if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        actions[keys[event.key]]();
      });
      box.querySelector(".tools").addEventListener("click", (event) => {
        const button = event.target.closest("[data-do]");
        if (button) actions[button.dataset.do]();
      });
    }
  }

  const timelines = [...document.querySelectorAll(".timeline")].map((box) => new Timeline(box));
  document.addEventListener("show-finding", (event) => {
    for (const timeline of timelines) timeline.show(event.detail);
  });
  addEventListener("beforeprint", () => timelines.forEach((timeline) => timeline.draw()));
})();
