// Colours that are told apart with any colour vision: one scale from light to dark blue (by day) or from dark to
// yellow through teal (by night), and orange for what is chosen.

const SCALES = {
  light: [[255, 255, 255], [208, 226, 242], [134, 183, 222], [58, 123, 191], [17, 70, 143], [5, 34, 84]],
  dark: [[22, 26, 33], [38, 54, 110], [34, 98, 141], [45, 143, 135], [130, 195, 98], [247, 228, 75]],
};

const colours = { table: null, line: "", text: "", faint: "", accent: "", background: "" };

function buildColours() {
  const stops = SCALES[document.documentElement.dataset.theme];
  colours.table = new Uint8ClampedArray(256 * 4);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1), from = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) {
      colours.table[4 * i + c] = stops[from][c] + (place - from) * (stops[from + 1][c] - stops[from][c]);
    }
    colours.table[4 * i + 3] = 255;
  }
  const style = getComputedStyle(document.documentElement);
  for (const name of ["line", "text", "faint", "accent", "background", "panel"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

function storedTheme() {
  try {
    const kept = localStorage.getItem("inspector-theme");
    if (kept === "light" || kept === "dark") return kept;
  } catch { /* no storage in a sandboxed frame */ }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function otherTheme() { return document.documentElement.dataset.theme === "dark" ? "light" : "dark"; }

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  buildColours();
  colours.onAccent = getComputedStyle(document.documentElement).getPropertyValue("--on-accent").trim();
  try { localStorage.setItem("inspector-theme", theme); } catch { /* as above */ }
}

function colourOf(share) {
  const i = 4 * Math.round(255 * Math.min(1, Math.max(0, share)));
  return `rgb(${colours.table[i]},${colours.table[i + 1]},${colours.table[i + 2]})`;
}

// What can be read on a cell of this shade.
function inkOn(share) {
  const night = document.documentElement.dataset.theme === "dark";
  return night ? (share > 0.55 ? "#10131a" : "#f2f4f8") : (share > 0.45 ? "#ffffff" : "#14181f");
}

// A picture of part of a pattern, at most `width` x `height` pixels. Where several cells fall on one pixel the largest
// is shown: a single bright cell among a million must not vanish.
function paintPattern(head, view, width, height, absolute) {
  const columns = view.x1 - view.x0, rows = view.y1 - view.y0;
  const w = Math.max(1, Math.min(width, columns)), h = Math.max(1, Math.min(height, rows));
  const values = new Uint8Array(w * h);
  for (let row = view.y0; row < view.y1; row++) {
    const factor = 255 * (absolute ? head.peaks[row] : 1);
    const line = Math.floor(((row - view.y0) * h) / rows) * w;
    head.each(row, view.x0, view.x1 - 1, (column, share) => {
      const value = Math.max(1, share * factor);
      const at = line + Math.floor(((column - view.x0) * w) / columns);
      if (value > values[at]) values[at] = value;
    });
  }
  const image = new ImageData(w, h);
  for (let i = 0; i < values.length; i++) {
    const v = 4 * values[i];
    image.data.set(colours.table.subarray(v, v + 4), 4 * i);
  }
  const canvas = document.createElement("canvas");
  canvas.width = w;
  canvas.height = h;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// A canvas at the screen's own resolution; drawing is in CSS pixels.
function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.direction = "ltr";
  return context;
}
