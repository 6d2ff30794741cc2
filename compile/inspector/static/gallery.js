// Only the theme, kept where the pages look for it.
const root = document.documentElement, button = document.getElementById("theme");

function setTheme(theme) {
  root.dataset.theme = theme;
  button.textContent = theme === "dark" ? "Light" : "Dark";
  try { localStorage.setItem("inspector-theme", theme); } catch { /* storage may be off */ }
}

let kept = null;
try { kept = localStorage.getItem("inspector-theme"); } catch { /* storage may be off */ }
setTheme(kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
button.addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
