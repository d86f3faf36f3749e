// Every head in figures; a click on a heading sorts, a click on a row picks the head.

import { range } from "d3-array";
import { select } from "d3-selection";
import { figuresOf, number } from "./model.js";
import { say, sayRole } from "./strings.js";

/**
 * @typedef {{layer: number, head: number, figures: import("./model.js").Figures}} Row
 * @typedef {object} Column
 * @property {(language: import("./strings.js").Language) => string} title
 * @property {(row: Row) => number | string} value
 * @property {(row: Row, language: import("./strings.js").Language) => string} text
 */

/**
 * @param {Row[]} rows
 * @returns {Column[]}
 */
function columnsOf(rows) {
  /** @type {Column[]} */
  const columns = [
    { title: (l) => say(l, "layer"), value: (r) => r.layer, text: (r) => String(r.layer) },
    { title: (l) => say(l, "head"), value: (r) => r.head, text: (r) => String(r.head) },
    {
      title: (l) => say(l, "role"),
      value: (r) => r.figures.role,
      text: (r, l) => sayRole(l, r.figures.role),
    },
  ];
  for (const key of /** @type {const} */ (["entropy", "mean_distance", "max_distance"])) {
    columns.push({
      title: (l) => say(l, key),
      value: (r) => r.figures[key],
      text: (r) => number(r.figures[key], key === "max_distance" ? 0 : 2),
    });
  }
  rows[0].figures.more.forEach(([name], i) => {
    columns.push({
      title: () => name,
      value: (r) => r.figures.more[i]?.[1] ?? NaN,
      text: (r) => number(r.figures.more[i]?.[1], 3),
    });
  });
  return columns;
}

/**
 * @param {Element} parent
 * @param {import("./state.js").State} state
 */
export function headTable(parent, state) {
  const picture = state.picture;
  /** @type {Row[]} */
  const rows = range(picture.layers).flatMap((layer) =>
    range(picture.heads).flatMap((head) => {
      const figures = figuresOf(picture, layer, head);
      return figures === null ? [] : [{ layer, head, figures }];
    }),
  );
  if (rows.length === 0) return () => {};
  const columns = columnsOf(rows);
  let sorted = -1;
  let descending = false;
  const table = select(parent).append("table").attr("class", "figures");
  const head = table.append("thead").append("tr");
  const body = table.append("tbody");

  const draw = () => {
    head
      .selectAll("th")
      .data(columns)
      .join("th")
      .attr("tabindex", 0)
      .text((/** @type {Column} */ column, /** @type {number} */ i) =>
        column.title(state.language) + (i !== sorted ? "" : descending ? " ▾" : " ▴"),
      )
      .on("click", (_, i) => {
        descending = i === sorted ? !descending : i > 2;
        sorted = i;
        draw();
      });
    const order = rows.slice();
    if (sorted >= 0) {
      const { value } = columns[sorted];
      order.sort((a, b) => (value(a) < value(b) ? -1 : 1) * (descending ? -1 : 1));
    }
    body
      .selectAll("tr")
      .data(order)
      .join("tr")
      .classed(
        "active",
        (/** @type {Row} */ row) => row.layer === state.layer && row.head === state.head,
      )
      .on("click", (row) => state.set({ layer: row.layer, head: row.head }))
      .selectAll("td")
      .data((/** @type {Row} */ row) => columns.map((column) => column.text(row, state.language)))
      .join("td")
      .text((/** @type {string} */ text) => text);
  };
  return draw;
}
