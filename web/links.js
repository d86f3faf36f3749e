// Tokens on both sides, lines between them: as heavy as the weight.

import { select } from "d3-selection";
import { shorten, textWidth } from "./labels.js";
import { shown } from "./model.js";

const kRow = 21;
const kGap = 190;
const kFaintest = 0.03; // share of the scale below which a line is not drawn

/**
 * @param {Element} parent
 * @param {import("./state.js").State} state
 */
export function linksView(parent, state) {
  const tokens = state.picture.tokens.map((token) => shorten(shown(token), 13, 130));
  const n = tokens.length;
  const side = Math.max(...tokens.map((token) => textWidth(token, 13))) + 14;
  const svg = select(parent)
    .append("svg")
    .attr("class", "links")
    .attr("width", side * 2 + kGap)
    .attr("height", n * kRow + 8);
  const lines = svg.append("g");
  /**
   * @param {number} x
   * @param {string} anchor
   */
  const column = (x, anchor) =>
    svg
      .append("g")
      .selectAll("text")
      .data(tokens)
      .join("text")
      .attr("x", x)
      .attr("y", (/** @type {string} */ _, /** @type {number} */ i) => (i + 0.5) * kRow + 5)
      .attr("text-anchor", anchor)
      .attr("font-size", 13)
      .text((/** @type {string} */ token) => token)
      .on("mouseleave", () => state.hover(null));
  const queries = column(side - 8, "end");
  const keys = column(side + kGap + 8, "start");
  // On the left a token looks, on the right it is looked at.
  queries.on("mouseenter", (_, i) => state.set({ direction: "from", hovered: i }));
  keys.on("mouseenter", (_, i) => state.set({ direction: "to", hovered: i }));
  queries.on("click", (_, i) => state.pin(i));
  keys.on("click", (_, i) => state.pin(i));

  return () => {
    const token = state.token;
    const from = state.direction === "from";
    const strong = state.weights
      .map((weight, i) => ({ query: Math.floor(i / n), key: i % n, share: weight / state.scale }))
      .filter((link) => link.share >= kFaintest)
      .filter((link) => token === null || (from ? link.query : link.key) === token);
    lines
      .selectAll("line")
      .data(strong)
      .join("line")
      .attr("x1", side)
      .attr("x2", side + kGap)
      .attr("y1", (/** @type {typeof strong[0]} */ link) => (link.query + 0.5) * kRow)
      .attr("y2", (/** @type {typeof strong[0]} */ link) => (link.key + 0.5) * kRow)
      .attr("stroke-width", (/** @type {typeof strong[0]} */ link) => 0.6 + 3 * Math.min(link.share, 1))
      .attr("stroke-opacity", (/** @type {typeof strong[0]} */ link) =>
        Math.min(1, token === null ? link.share : 0.25 + link.share),
      );
    const is = (/** @type {unknown} */ _, /** @type {number} */ i) => i === token;
    queries.classed("active", from ? is : false);
    keys.classed("active", from ? false : is);
  };
}
