// All heads at a glance, layers down and heads across; picking one picks it everywhere.

import { range } from "d3-array";
import { select } from "d3-selection";
import { figuresOf, heatColour } from "./model.js";
import { headName, sayRole } from "./strings.js";

/**
 * One head as an image of n * n pixels, enlarged by the style sheet.
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} weights
 * @param {number} n
 * @param {number} scale
 */
function paint(canvas, weights, n, scale) {
  canvas.width = n;
  canvas.height = n;
  const context = canvas.getContext("2d");
  if (context === null) return;
  weights.forEach((weight, i) => {
    context.fillStyle = heatColour(weight === null ? null : weight / scale);
    context.fillRect(i % n, Math.floor(i / n), 1, 1);
  });
}

/**
 * @param {Element} parent
 * @param {import("./state.js").State} state
 */
export function overview(parent, state) {
  const picture = state.picture;
  const grid = select(parent)
    .append("div")
    .attr("class", "overview")
    .style("grid-template-columns", `repeat(${Math.min(picture.heads, 8)}, minmax(56px, 92px))`);
  const places = range(picture.layers).flatMap((layer) =>
    range(picture.heads).map((head) => ({ layer, head })),
  );
  const buttons = grid
    .selectAll("button")
    .data(places)
    .join("button")
    .attr("type", "button")
    .attr("class", "thumb")
    .on("click", (place) => state.set(place));
  buttons.append("canvas").each(function (place) {
    const weights = picture.weights[place.layer][place.head];
    paint(/** @type {HTMLCanvasElement} */ (this), weights, picture.tokens.length, state.scale);
  });
  const names = buttons.append("span");

  return () => {
    buttons
      .classed(
        "active",
        (/** @type {typeof places[0]} */ place) =>
          place.layer === state.layer && place.head === state.head,
      )
      .attr("title", (/** @type {typeof places[0]} */ place) =>
        headName(state.language, place.layer, place.head),
      );
    names.text((/** @type {typeof places[0]} */ place) => {
      const role = figuresOf(picture, place.layer, place.head)?.role ?? "";
      const name = `${place.layer}.${place.head}`;
      return role === "" ? name : `${name} ${sayRole(state.language, role)}`;
    });
  };
}
