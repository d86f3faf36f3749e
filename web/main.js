// The script of every page: finds the embedded pictures and shows them.

import { attentionView } from "./attention_view.js";
import { say } from "./strings.js";

/** @returns {import("./strings.js").Language} */
function preferred() {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function main() {
  const states = Array.from(document.querySelectorAll("script.attention-data")).map((data) => {
    const parent = document.createElement("div");
    data.after(parent);
    return attentionView(parent, JSON.parse(data.textContent ?? ""), preferred());
  });
  if (states.length === 0) return;
  states[0].restore(window.location.hash);
  const { language } = states[0];
  const toggle = document.querySelector("#language");
  /** @param {import("./strings.js").Language} wanted */
  const apply = (wanted) => {
    document.documentElement.lang = wanted;
    if (toggle !== null) toggle.textContent = say(wanted, "language");
    const title = document.querySelector("#attention-title");
    if (title !== null) title.textContent = say(wanted, "attention");
    for (const state of states) state.set({ language: wanted });
  };
  toggle?.addEventListener("click", () => apply(states[0].language === "zh" ? "en" : "zh"));
  apply(language);
}

main();
