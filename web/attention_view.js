// The attention of one text: all views on it, and what picks in them.

import { select } from "d3-selection";
import { headTable } from "./head_table.js";
import { linksView } from "./links.js";
import { matrixView } from "./matrix.js";
import { figuresOf, largestWeight, number } from "./model.js";
import { overview } from "./overview.js";
import { sentenceView } from "./sentence.js";
import { State } from "./state.js";
import { headName, say, sayRole } from "./strings.js";
import { stripView } from "./strip.js";

/**
 * A card with a heading and a line of help, both in the page's language.
 * @param {Selection} parent
 * @param {State} state
 * @param {import("./strings.js").Key} title
 * @param {import("./strings.js").Key | null} help
 * @param {string} name
 */
function card(parent, state, title, help, name) {
  const box = parent.append("section").attr("class", `card ${name}`);
  const heading = box.append("h2");
  const hint = box.append("p").attr("class", "hint");
  state.views.push(() => {
    heading.text(say(state.language, title));
    hint.text(help === null ? "" : say(state.language, help));
  });
  return box.append("div").attr("class", "scroll").node();
}

/**
 * The picked head and its figures.
 * @param {Selection} parent
 * @param {State} state
 */
function headLine(parent, state) {
  const line = parent.append("div").attr("class", "headline");
  const name = line.append("strong");
  const figures = line.append("span");
  return () => {
    name.text(headName(state.language, state.layer, state.head));
    const found = figuresOf(state.picture, state.layer, state.head);
    if (found === null) return;
    const words = [
      sayRole(state.language, found.role),
      `${say(state.language, "entropy")} ${number(found.entropy, 2)}`,
      `${say(state.language, "mean_distance")} ${number(found.mean_distance, 1)}`,
      `${say(state.language, "max_distance")} ${number(found.max_distance, 0)}`,
    ];
    figures.text(words.filter((word) => word !== "").join(" · "));
  };
}

/**
 * "looks at" or "is looked at by".
 * @param {Selection} parent
 * @param {State} state
 */
function directionSwitch(parent, state) {
  const buttons = parent
    .append("div")
    .attr("class", "switch")
    .selectAll("button")
    .data(/** @type {const} */ (["from", "to"]))
    .join("button")
    .attr("type", "button")
    .on("click", (direction) => state.set({ direction }));
  return () => {
    buttons
      .classed("active", (/** @type {string} */ direction) => direction === state.direction)
      .text((/** @type {"from" | "to"} */ direction) => say(state.language, direction));
  };
}

/**
 * @param {Selection} parent
 * @param {State} state
 */
function predictionLine(parent, state) {
  if (state.picture.prediction.length === 0) return () => {};
  const line = parent.append("div").attr("class", "prediction");
  return () => {
    const best = state.picture.prediction.slice(0, 5);
    const words = best.map(([label, share]) => `${label} ${number(share * 100, 1)} %`);
    line.text(`${say(state.language, "prediction")}: ${words.join(" · ")}`);
  };
}

/**
 * @param {Element} parent
 * @param {import("./model.js").Picture} picture
 * @param {import("./strings.js").Language} language
 */
export function attentionView(parent, picture, language) {
  const state = new State(picture, largestWeight(picture));
  state.language = language;
  const root = select(parent).append("div").attr("class", "attention");
  state.views.push(predictionLine(root, state));
  state.views.push(sentenceView(root.node(), state));
  const bar = root.append("div").attr("class", "bar");
  state.views.push(headLine(bar, state));
  state.views.push(directionSwitch(bar, state));
  const grid = root.append("div").attr("class", "cards");
  /** @type {[import("./strings.js").Key, import("./strings.js").Key | null, string, (parent: Element, state: State) => import("./state.js").View][]} */
  const cards = [
    ["overview", "overview_help", "wide", overview],
    ["matrix", "matrix_help", "main", matrixView],
    ["links", "links_help", "side", linksView],
    ["strip", null, "wide", stripView],
    ["figures", null, "wide", headTable],
  ];
  for (const [title, help, name, view] of cards) {
    if (view === headTable && picture.figures.length === 0) continue;
    state.views.push(view(card(grid, state, title, help, name), state));
  }
  return state;
}
