// What the page shows: the JSON that the program embeds (headlight/report/attention_json.h).

import { max, sum } from "d3-array";
import { interpolateRgb, piecewise } from "d3-interpolate";

/**
 * @typedef {object} Figures
 * @property {number} entropy nats
 * @property {number} mean_distance tokens
 * @property {number} max_distance tokens
 * @property {string} role
 * @property {[string, number][]} more
 *
 * @typedef {object} Picture
 * @property {string} run
 * @property {string} text
 * @property {string[]} tokens
 * @property {number} layers
 * @property {number} heads
 * @property {[string, number][]} prediction
 * @property {Figures[][]} figures [layer][head], or empty
 * @property {number[][][]} weights [layer][head][query * n + key]
 */

/**
 * @param {Picture} picture
 * @param {number} layer
 * @param {number} head
 */
export function figuresOf(picture, layer, head) {
  return picture.figures.length > 0 ? picture.figures[layer][head] : null;
}

/**
 * The weights of one token in one head: where it looks ("from"), or who looks at it ("to").
 * @param {Picture} picture
 * @param {number} layer
 * @param {number} head
 * @param {number} token
 * @param {"from" | "to"} direction
 */
export function profile(picture, layer, head, token, direction) {
  const n = picture.tokens.length;
  const weights = picture.weights[layer][head];
  return picture.tokens.map((_, other) =>
    direction === "from" ? weights[token * n + other] : weights[other * n + token],
  );
}

/**
 * How much each token is looked at, as the mean over all tokens that look.
 * @param {Picture} picture
 * @param {number} layer
 * @param {number} head
 * @returns {(number | null)[]}
 */
export function meanProfile(picture, layer, head) {
  return picture.tokens.map((_, key) => {
    const weights = profile(picture, layer, head, key, "to");
    return weights.every(Number.isFinite) ? sum(weights) / weights.length : null;
  });
}

// The same rounding as the drawn pictures (colour_scale.cc), so that colours mean the same.
const kRound = [0.04, 0.08, 0.12, 0.16, 0.2, 0.24, 0.32, 0.4, 0.48, 0.6, 0.8];

/** @param {Picture} picture */
export function largestWeight(picture) {
  const largest = max(picture.weights.flat().map((head) => max(head) ?? 0)) ?? 0;
  return kRound.find((round) => largest <= round + 1e-6) ?? 1;
}

const scale = piecewise(interpolateRgb, [
  "rgb(246,249,252)",
  "rgb(204,222,240)",
  "rgb(148,189,222)",
  "rgb(84,145,196)",
  "rgb(36,98,158)",
  "rgb(10,47,97)",
]);

/**
 * The colour of a share of the largest weight.
 * @param {number | null} share
 */
export function heatColour(share) {
  if (share === null || Number.isNaN(share)) return "rgb(214,94,0)";
  return scale(Math.pow(Math.min(Math.max(share, 0), 1), 0.7));
}

/**
 * A colour for text on that background.
 * @param {number} share
 */
export function inkOn(share) {
  return share > 0.4 ? "#fff" : "#20242c";
}

/**
 * Tokens that would not be seen as they are.
 * @param {string} token
 */
export function shown(token) {
  const visible = token.replace(/[\u0000-\u001f\u007f]/g, (c) =>
    c === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0)),
  );
  return visible.trim() === "" ? visible.replace(/\s/g, "\u2423") || "\u2205" : visible;
}

/**
 * @param {number | null | undefined} value
 * @param {number} digits
 */
export function number(value, digits) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}
