// The words of the page in English and Chinese.

/** @typedef {"en" | "zh"} Language */

const kStrings = {
  attention: ["Attention", "注意力"],
  overview: ["Layers and heads", "层与头"],
  overview_help: ["each square is one head; pick one", "每个方格是一个头，点击选择"],
  layer: ["layer", "层"],
  head: ["head", "头"],
  matrix: ["Heat map", "热力图"],
  matrix_help: ["row: the token that looks; column: the token looked at", "行：查询词元；列：被关注的词元"],
  links: ["Links", "连线"],
  links_help: ["left looks at right; point at a token, click to hold it", "左侧关注右侧；悬停查看，点击固定"],
  strip: ["One token in every head", "同一词元在各头中"],
  strip_mean: ["how much each token is looked at on average; pick a token above to see its own; rows are heads", "每个词元平均受到的关注；在上方选择词元查看其自身；每行一个头"],
  strip_help: ["pick a token above; rows are heads", "在上方选择词元；每行一个头"],
  from: ["looks at", "关注谁"],
  to: ["is looked at by", "被谁关注"],
  figures: ["Heads in figures", "各头统计"],
  entropy: ["entropy (nats)", "熵（奈特）"],
  mean_distance: ["mean distance", "平均距离"],
  max_distance: ["max distance", "最大距离"],
  role: ["role", "角色"],
  prediction: ["the model says", "模型判断"],
  weight: ["weight", "权重"],
  language: ["中文", "English"],
  none: ["no token picked", "未选择词元"],
  tokens: ["tokens", "个词元"],
};

/** @typedef {keyof typeof kStrings} Key */

/**
 * @param {Language} language
 * @param {Key} key
 */
export function say(language, key) {
  return kStrings[key][language === "zh" ? 1 : 0];
}

const kRoles = new Map([
  ["pronoun", "代词"],
  ["verb-object", "动宾"],
  ["adjective", "形容词"],
  ["subject", "主语"],
  ["punctuation", "标点"],
  ["neighbour", "邻近"],
  ["uniform", "均匀"],
  ["mixed", "混合"],
  ["degenerate", "退化"],
]);

/**
 * @param {Language} language
 * @param {string} role
 */
export function sayRole(language, role) {
  return language === "zh" ? (kRoles.get(role) ?? role) : role;
}

/**
 * "layer 1 · head 2".
 * @param {Language} language
 * @param {number} layer
 * @param {number} head
 */
export function headName(language, layer, head) {
  return language === "zh"
    ? `层 ${layer} · 头 ${head}`
    : `layer ${layer} · head ${head}`;
}
