// The heat map of the picked head, with its tokens and a colour bar.

import { range } from "d3-array";
import { select } from "d3-selection";
import { columnLabels, drawColumnLabels, shorten, textWidth } from "./labels.js";
import { heatColour, number, shown } from "./model.js";
import { say } from "./strings.js";
import { hideTip, showTip } from "./tip.js";

const kRoom = 110; // pixels of the longest label

/** @param {number} n */
function sizes(n) {
  const cell = Math.min(Math.max(540 / n, 13), 36);
  return { cell, size: Math.min(Math.max(cell * 0.62, 11), 14) };
}

/**
 * @param {Selection} svg
 * @param {number} x
 * @param {number} y
 * @param {number} height
 * @param {number} scale
 */
function colourBar(svg, x, y, height, scale) {
  const bar = svg.append("g").attr("transform", `translate(${x},${y})`);
  const steps = 60;
  bar
    .selectAll("rect")
    .data(range(steps))
    .join("rect")
    .attr("width", 12)
    .attr("height", height / steps + 0.5)
    .attr("y", (/** @type {number} */ i) => (i * height) / steps)
    .attr("fill", (/** @type {number} */ i) => heatColour(1 - (i + 0.5) / steps));
  bar
    .selectAll("text")
    .data([0, 0.25, 0.5, 0.75, 1])
    .join("text")
    .attr("x", 17)
    .attr("y", (/** @type {number} */ share) => (1 - share) * height + 4)
    .attr("font-size", 11)
    .text((/** @type {number} */ share) => number(share * scale, 2));
}

/**
 * @param {Element} parent
 * @param {import("./state.js").State} state
 */
export function matrixView(parent, state) {
  const tokens = state.picture.tokens;
  const n = tokens.length;
  const { cell, size } = sizes(n);
  const rows = tokens.map((token) => shorten(shown(token), size, kRoom));
  const columns = columnLabels(tokens, size, cell, kRoom);
  const left = Math.max(...rows.map((row) => textWidth(row, size))) + 10;
  const top = columns.height + 6;
  const side = cell * n;
  const barX = left + side + Math.max(14, columns.overhang - 40);
  const width = Math.max(barX + 52, left + side + columns.overhang);
  const svg = select(parent)
    .append("svg")
    .attr("class", "matrix")
    .attr("width", width)
    .attr("height", top + side + 6);
  const keys = svg.append("g");
  drawColumnLabels(keys, columns, size, cell, left, top - 6);
  const queries = svg
    .append("g")
    .selectAll("text")
    .data(rows)
    .join("text")
    .attr("x", left - 6)
    .attr("y", (/** @type {string} */ _, /** @type {number} */ i) => top + (i + 0.5) * cell + size * 0.36)
    .attr("text-anchor", "end")
    .attr("font-size", size)
    .text((/** @type {string} */ row) => row)
    .on("mouseenter", (_, i) => state.hover(i))
    .on("mouseleave", () => state.hover(null))
    .on("click", (_, i) => state.pin(i));
  const squares = svg
    .append("g")
    .selectAll("rect")
    .data(range(n * n))
    .join("rect")
    .attr("x", (/** @type {number} */ i) => left + (i % n) * cell)
    .attr("y", (/** @type {number} */ i) => top + Math.floor(i / n) * cell)
    .attr("width", cell - 0.6)
    .attr("height", cell - 0.6)
    .on("mouseenter", (i) => {
      const query = Math.floor(i / n);
      const key = i % n;
      const weight = state.weights[i];
      state.hover(state.direction === "from" ? query : key);
      showTip(`${shown(tokens[query])} → ${shown(tokens[key])}: ${say(state.language, "weight")} ${number(weight, 4)}`);
    })
    .on("mouseleave", () => {
      hideTip();
      state.hover(null);
    })
    .on("click", (i) => state.pin(state.direction === "from" ? Math.floor(i / n) : i % n));
  const frame = svg.append("rect").attr("class", "frame");
  colourBar(svg, barX, top, Math.min(side, 220), state.scale);

  /** @type {number[] | null} */
  let drawn = null;
  return () => {
    if (drawn !== state.weights) {
      drawn = state.weights;
      squares.attr("fill", (/** @type {number} */ i) =>
        heatColour(state.weights[i] === null ? null : state.weights[i] / state.scale),
      );
    }
    const token = state.token;
    const is = (/** @type {unknown} */ _, /** @type {number} */ i) => i === token;
    queries.classed("active", state.direction === "from" ? is : false);
    keys.selectAll("text").classed("active", state.direction === "to" ? is : false);
    frame.style("display", token === null ? "none" : null);
    if (token === null) return;
    const along = state.direction === "from";
    frame
      .attr("x", along ? left - 1 : left + token * cell - 1)
      .attr("y", along ? top + token * cell - 1 : top - 1)
      .attr("width", (along ? side : cell) + 1.4)
      .attr("height", (along ? cell : side) + 1.4);
  };
}
