"use strict";
for (const section of document.querySelectorAll("section")) {
  const svg = section.querySelector("svg");
  const whole = svg.viewBox.baseVal.width;
  const height = svg.viewBox.baseVal.height;
  const took = Number(svg.dataset.took);
  const ends = section.querySelectorAll(".scale span");
  const detail = section.querySelector(".detail");
  let from = 0;
  let width = whole;
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const time = (x) => {
    const value = (x / whole) * took;
    const [size, unit] = units.find(([size]) => value >= size) ?? units[3];
    return value < 1 ? "0" : `${Number((value / size).toPrecision(5))} ${unit}`;
  };
  const show = (start, wanted) => {
    width = Math.min(Math.max(wanted, whole / 5000), whole);
    from = Math.min(Math.max(start, 0), whole - width);
    svg.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    ends[0].textContent = time(from);
    ends[1].textContent = time(from + width);
  };
  const zoom = (factor, at) => show(at - (at - from) * factor, width * factor);
  const middle = () => from + width / 2;
  const jobs = {
    all: () => show(0, whole),
    in: () => zoom(1 / 2, middle()),
    out: () => zoom(2, middle()),
    left: () => show(from - width / 4, width),
    right: () => show(from + width / 4, width),
  };
  section.querySelector(".buttons").hidden = false;
  section.querySelector(".buttons").addEventListener("click", (event) => jobs[event.target.dataset.do]?.());
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    return from + ((event.clientX - box.left) / box.width) * width;
  };
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event));
  }, { passive: false });
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons === 1) show(from - (event.movementX / svg.clientWidth) * width, width);
    const title = event.target.querySelector?.(":scope > title");
    if (title && event.target !== svg) detail.textContent = title.textContent;
  });
}
