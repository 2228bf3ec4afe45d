// Filters, order, keys, theme, copying. Findings stand in the page without any of it.
(() => {
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const list = find("#list");
  const findings = list ? all(".finding", list) : [];
  const controls = { text: find("#filter"), code: find("#code"), file: find("#file"), stream: find("#stream"), sort: find("#sort") };

  // What is looked at, once.
  const facts = new Map(findings.map((finding, index) => [finding, {
    index,
    code: finding.dataset.code,
    files: finding.dataset.files.split("\n"),
    streams: finding.dataset.streams.split("\n"),
    first: Number(finding.dataset.first),
    count: Number(finding.dataset.count),
    text: (find("summary", finding) || finding).textContent.toLowerCase(),
  }]));

  const shown = () => findings.filter((finding) => !finding.hidden);

  function filter() {
    const words = (controls.text?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    const { code, file, stream } = controls;
    for (const finding of findings) {
      const fact = facts.get(finding);
      finding.hidden = !(
        (!code?.value || fact.code === code.value) &&
        (!file?.value || fact.files.includes(file.value)) &&
        (!stream?.value || fact.streams.includes(stream.value)) &&
        words.every((word) => fact.text.includes(word))
      );
    }
    const output = find("#shown");
    if (output) output.textContent = `${shown().length} of ${findings.length}`;
  }

  function sort() {
    const by = {
      given: (a, b) => a.index - b.index,
      first: (a, b) => a.first - b.first || a.index - b.index,
      count: (a, b) => b.count - a.count || a.index - b.index,
    }[controls.sort.value];
    findings.sort((a, b) => by(facts.get(a), facts.get(b)));
    const fragment = document.createDocumentFragment();
    findings.forEach((finding) => fragment.append(finding));
    list.prepend(fragment);
  }

  for (const control of [controls.code, controls.file, controls.stream]) control?.addEventListener("change", filter);
  controls.text?.addEventListener("input", filter);
  controls.sort?.addEventListener("change", sort);
  find(".filters")?.addEventListener("submit", (event) => event.preventDefault());
  if (findings.length) filter();

  let current = null;
  function select(finding, { open = false, scroll = true } = {}) {
    current?.classList.remove("current");
    current = finding;
    if (!finding) return;
    finding.classList.add("current");
    if (open && finding.tagName === "DETAILS") finding.open = true;
    (find("summary", finding) || finding).focus({ preventScroll: true });
    if (scroll) finding.scrollIntoView({ block: "start" });
  }

  function step(by) {
    const visible = shown();
    const at = visible.indexOf(current);
    const next = at < 0 ? (by > 0 ? 0 : visible.length - 1) : Math.min(Math.max(at + by, 0), visible.length - 1);
    select(visible[next]);
  }

  // A link to a finding shows it, whatever is filtered.
  function follow() {
    const target = /^#F\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.hidden) {
      for (const name of ["text", "code", "file", "stream"]) if (controls[name]) controls[name].value = "";
      filter();
    }
    select(target, { open: true });
  }
  addEventListener("hashchange", follow);
  follow();

  function copy(button) {
    const done = () => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
    const byHand = () => {
      const area = document.createElement("textarea");
      area.value = button.dataset.copy;
      document.body.append(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      button.focus();
      if (copied) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(button.dataset.copy).then(done, byHand);
    else byHand();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copier");
    if (button) copy(button);
    const finding = event.target.closest(".finding > summary")?.parentElement;
    if (finding) select(finding, { scroll: false });
    const link = event.target.closest("[data-show]");
    if (link) document.dispatchEvent(new CustomEvent("show-finding", { detail: link.dataset.show }));
  });

  const theme = find("#theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("streamsan-theme", next); } catch { /* Then it holds for this visit. */ }
    label();
    document.dispatchEvent(new Event("theme"));
  });
  dark.addEventListener("change", () => { label(); document.dispatchEvent(new Event("theme")); });
  label();

  const keys = find("#keys");
  find("#help").addEventListener("click", () => keys.showModal());

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && field) { field.blur(); return; }
    if (field || keys.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      j: () => step(1),
      k: () => step(-1),
      o: () => { if (current?.tagName === "DETAILS") current.open = !current.open; },
      c: () => { const button = current && find(".copier", current); if (button) copy(button); },
      t: () => {
        if (current && !current.hidden) {
          find("#timeline").scrollIntoView();
          document.dispatchEvent(new CustomEvent("show-finding", { detail: current.id }));
        }
      },
      "/": () => controls.text?.focus(),
      "?": () => keys.showModal(),
    };
    if (Object.hasOwn(actions, event.key)) {
      event.preventDefault();
      actions[event.key]();
    }
  });

  // On paper everything is unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => { folded.forEach((details) => { details.open = false; }); });
})();
