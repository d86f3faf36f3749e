// The sentence: its tokens coloured by the attention of the picked one in the picked head.

import { event, select } from "d3-selection";
import { heatColour, inkOn, profile, shown } from "./model.js";

/**
 * @param {Element} parent
 * @param {import("./state.js").State} state
 */
export function sentenceView(parent, state) {
  const chips = select(parent)
    .append("div")
    .attr("class", "sentence")
    .selectAll("button")
    .data(state.picture.tokens)
    .join("button")
    .attr("type", "button")
    .attr("class", "chip")
    .text(shown)
    .on("mouseenter", (_, i) => state.hover(i))
    .on("mouseleave", () => state.hover(null))
    .on("click", (_, i) => {
      event.preventDefault();
      state.pin(i);
    });

  return () => {
    const token = state.token;
    const weights =
      token === null
        ? null
        : profile(state.picture, state.layer, state.head, token, state.direction);
    chips
      .classed("active", (/** @type {string} */ _, /** @type {number} */ i) => i === token)
      .classed("pinned", (/** @type {string} */ _, /** @type {number} */ i) => i === state.pinned)
      .attr("title", (/** @type {string} */ _, /** @type {number} */ i) =>
        weights === null ? "" : String(weights[i]),
      )
      .style("background", (/** @type {string} */ _, /** @type {number} */ i) =>
        weights === null ? null : heatColour(weights[i] / state.scale),
      )
      .style("color", (/** @type {string} */ _, /** @type {number} */ i) =>
        weights === null ? null : inkOn(weights[i] / state.scale),
      );
  };
}
