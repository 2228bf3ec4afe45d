// Before the first paint: that scripts run, and the theme that was chosen last time.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("streamsan-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch { /* A page from a file may have no storage. */ }
})();
