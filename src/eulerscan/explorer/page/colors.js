"use strict";

const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const RED_BLUE = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"];
const GRAY_RED = ["#d9d9d9", "#fdd49e", "#fc8d59", "#d7301f", "#7f0000"]; // io/colors.py has the same
const SHADES = 16;

function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

// Interpolate between color stops, for a fraction from 0 to 1.
function interpolate(stops, fraction) {
  const at = Math.min(1, Math.max(0, fraction)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
  const low = rgb(stops[i]), high = rgb(stops[i + 1]);
  return low.map((c, k) => c + (high[k] - c) * (at - i));
}

function packed([r, g, b]) {
  return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}

// Two color tables, entry `tone * SHADES + shade`: highlighted and not. Without weights, tone 0 is the color of the theme and
// tone 1 that of edges on a surface; with weights, or values of the vertices, tones encode these.
function colorTables(weighted, valued) {
  const lit = new Uint32Array(256 * SHADES), unlit = new Uint32Array(256 * SHADES);
  const bright = rgb(theme("lit")), dull = rgb(theme("unlit"));
  for (let tone = 0; tone < 256; tone++) {
    const colored = weighted || valued, edge = !colored && tone === 1 ? 0.72 : 1;
    const on = colored ? interpolate(valued ? GRAY_RED : VIRIDIS, tone / 255) : bright;
    const off = valued ? on.map((c, k) => 0.6 * c + 0.4 * dull[k]) : dull;
    const weight = weighted && !valued ? 0.75 + 0.35 * (tone / 255) : 1;
    for (let shade = 0; shade < SHADES; shade++) {
      const light = (0.42 + 0.58 * (shade / (SHADES - 1))) * edge, entry = tone * SHADES + shade;
      const shine = 40 * (shade / (SHADES - 1)) ** 6 * (colored ? 0 : edge);
      lit[entry] = packed(on.map((c) => Math.min(255, c * light + shine)));
      unlit[entry] = packed(off.map((c) => Math.min(255, c * light * weight)));
    }
  }
  return { lit, unlit };
}
