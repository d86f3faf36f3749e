// One token in every head: a row for each head, coloured by its weights.

import { range } from "d3-array";
import { select } from "d3-selection";
import { columnLabels, drawColumnLabels, textWidth } from "./labels.js";
import { figuresOf, heatColour, meanProfile, number, profile, shown } from "./model.js";
import { headName, say, sayRole } from "./strings.js";
import { hideTip, showTip } from "./tip.js";

const kRow = 17;

/**
 * @typedef {{layer: number, head: number}} Place
 */

/**
 * @param {import("./state.js").State} state
 * @param {import("./strings.js").Language} language
 * @param {Place} place
 */
function rowName(state, language, place) {
  const role = figuresOf(state.picture, place.layer, place.head)?.role ?? "";
  const name = headName(language, place.layer, place.head);
  return role === "" ? name : `${name} · ${sayRole(language, role)}`;
}

/**
 * @param {Element} parent
 * @param {import("./state.js").State} state
 */
export function stripView(parent, state) {
  const picture = state.picture;
  const n = picture.tokens.length;
  const cell = Math.min(Math.max(860 / n, 15), 44);
  const columns = columnLabels(picture.tokens, 12, cell, 90);
  const top = columns.height + 6;
  const places = range(picture.layers).flatMap((layer) =>
    range(picture.heads).map((head) => ({ layer, head })),
  );
  // Room for the longest name in either language, in bold.
  const widths = places.flatMap((place) =>
    /** @type {const} */ (["en", "zh"]).map((l) => textWidth(rowName(state, l, place), 12)),
  );
  const left = Math.max(...widths) * 1.15 + 14;
  const box = select(parent);
  const hint = box.append("p").attr("class", "hint");
  const svg = box
    .append("svg")
    .attr("class", "strip")
    .attr("width", left + cell * n + Math.max(8, columns.overhang))
    .attr("height", top + places.length * kRow + picture.layers * 6);
  drawColumnLabels(svg.append("g"), columns, 12, cell, left, top - 6);
  const keys = svg.select("g").selectAll("text");
  const rows = svg
    .append("g")
    .selectAll("g")
    .data(places)
    .join("g")
    .attr("class", "row")
    .attr("transform", (/** @type {Place} */ place, /** @type {number} */ i) =>
      `translate(0,${top + i * kRow + place.layer * 6})`,
    )
    .on("click", (place) => state.set(place));
  const names = rows
    .append("text")
    .attr("x", left - 8)
    .attr("y", kRow / 2 + 4)
    .attr("text-anchor", "end")
    .attr("font-size", 12);

  return () => {
    const token = state.token;
    hint.text(say(state.language, token === null ? "strip_mean" : "strip_help"));
    names.text((/** @type {Place} */ place) => rowName(state, state.language, place));
    rows.classed(
      "active",
      (/** @type {Place} */ place) =>
        place.layer === state.layer && place.head === state.head,
    );
    keys.classed("active", (/** @type {unknown} */ _, /** @type {number} */ i) => i === token);
    rows.each(function (place) {
      const weights =
        token === null
          ? meanProfile(picture, place.layer, place.head)
          : profile(picture, place.layer, place.head, token, state.direction);
      select(this)
        .selectAll("rect")
        .data(weights)
        .join("rect")
        .attr("x", (/** @type {number} */ _, /** @type {number} */ i) => left + i * cell)
        .attr("width", cell - 0.8)
        .attr("height", kRow - 1.5)
        .attr("fill", (/** @type {number | null} */ weight) =>
          heatColour(weight === null ? null : weight / state.scale),
        )
        .on("mouseenter", (weight, i) =>
          showTip(`${headName(state.language, place.layer, place.head)}: ${shown(picture.tokens[i])} ${number(weight, 4)}`),
        )
        .on("mouseleave", hideTip);
    });
  };
}
