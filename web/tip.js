// The one tooltip of the page, beside the pointer.

import { event, select } from "d3-selection";

/** @type {Selection | null} */
let tip = null;

/** @param {string} text */
export function showTip(text) {
  tip = tip ?? select(document.body).append("div").attr("class", "tip");
  tip
    .text(text)
    .style("display", "block")
    .style("left", `${Math.min(event.pageX + 14, window.scrollX + window.innerWidth - 260)}px`)
    .style("top", `${event.pageY + 14}px`);
}

export function hideTip() {
  if (tip !== null) tip.style("display", "none");
}
