// Token labels that never run into each other.

import { shown } from "./model.js";

const context = document.createElement("canvas").getContext("2d");

/**
 * Width in pixels.
 * @param {string} text
 * @param {number} size
 */
export function textWidth(text, size) {
  if (context === null) return text.length * size;
  context.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

/**
 * The longest beginning with an ellipsis.
 * @param {string} text
 * @param {number} size
 * @param {number} room
 */
export function shorten(text, size, room) {
  const characters = Array.from(text).slice(0, 200);
  if (characters.join("") === text && textWidth(text, size) <= room) return text;
  while (characters.length > 1 && textWidth(characters.join("") + "…", size) > room) {
    characters.pop();
  }
  return characters.join("") + "…";
}

// Characters of full width: they are written downwards where they do not fit.
const kWide = /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{20000}-\u{3fffd}…]+$/u;

/**
 * Labels over columns of a matrix: level, stacked or turned, as in the drawn pictures (heatmap.cc).
 * @param {string[]} tokens
 * @param {number} size
 * @param {number} cell
 * @param {number} room
 */
export function columnLabels(tokens, size, cell, room) {
  const texts = tokens.map((token) => shorten(shown(token), size, room));
  const fits = texts.map((text) => textWidth(text, size) <= cell - 1);
  const wide = texts.map((text) => kWide.test(text));
  const allFit = fits.every(Boolean);
  const slant = wide.some(Boolean) ? 90 : 52;
  const turn = (slant * Math.PI) / 180;
  let height = size * 1.4;
  let overhang = 0;
  const labels = texts.map((text, i) => {
    if (allFit || (wide[i] && fits[i])) return { text, form: "level" };
    if (wide[i]) {
      height = Math.max(height, (Array.from(text).length + 0.5) * size * 1.1);
      return { text, form: "stacked" };
    }
    const width = textWidth(text, size);
    height = Math.max(height, width * Math.sin(turn) + size * 1.1);
    overhang = Math.max(overhang, width * Math.cos(turn) - (texts.length - i - 0.5) * cell + size);
    return { text, form: "turned" };
  });
  return { labels, height, overhang, slant };
}

/**
 * Draws them along the line y, each over its column.
 * @param {Selection} group
 * @param {ReturnType<typeof columnLabels>} columns
 * @param {number} size
 * @param {number} cell
 * @param {number} left
 * @param {number} y
 */
export function drawColumnLabels(group, columns, size, cell, left, y) {
  columns.labels.forEach((label, i) => {
    const x = left + (i + 0.5) * cell;
    const text = group.append("text").attr("class", "key").attr("font-size", size);
    if (label.form === "turned") {
      text.attr("transform", `translate(${x + size * 0.35},${y}) rotate(${-columns.slant})`);
      text.text(label.text);
      return;
    }
    text.attr("text-anchor", "middle");
    const characters = label.form === "stacked" ? Array.from(label.text) : [label.text];
    characters.forEach((character, k) => {
      const up = (characters.length - 1 - k) * size * 1.1;
      text.append("tspan").attr("x", x).attr("y", y - up).text(character === "…" ? "⋮" : character);
    });
  });
}
