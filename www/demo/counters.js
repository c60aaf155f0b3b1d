// Orders wanted and orders made, and what the difference means.

import { byId, say } from "./dom.js";
import { SIDES, wanted } from "./state.js";

/** @import { Side } from "./state.js" */

/** @typedef {Record<Side, number>} Counts */
/** @typedef {{ under: number, stopped: number }} Open how many are under way, and how many wait for a person */

/**
 * @param {Counts} made
 * @param {Record<Side, Open>} open
 */
export function drawCounters(made, open) {
  for (const side of SIDES) {
    say(byId(`${side}-wanted`), wanted.get()[side]);
    say(byId(`${side}-made`), made[side]);
    const { text, tone } = balance(wanted.get()[side], made[side], open[side]);
    say(byId(`${side}-balance`), text);
    byId(`${side}-balance`).dataset.tone = tone;
  }
}

/**
 * @param {number} wanted
 * @param {number} made
 * @param {Open} open
 */
function balance(wanted, made, { under, stopped }) {
  if (made > wanted) return { text: `${made - wanted} too many`, tone: "bad" };
  if (wanted === 0) return { text: "no order yet", tone: "over" };
  if (made === wanted) {
    return { text: under > 0 ? "as wanted, but the answer was lost" : stopped > 0 ? "as wanted, but not known here" : "as wanted", tone: "good" };
  }
  const missing = wanted - made - under - stopped;
  const parts = [];
  if (missing > 0) parts.push(`${missing} missing`);
  if (stopped > 0) parts.push(`${stopped} waiting for your decision`);
  if (under > 0) parts.push(`${under} under way`);
  return { text: parts.join(", "), tone: missing > 0 || stopped > 0 ? "bad" : "waiting" };
}

/** @param {readonly { key: string | null }[]} orders @returns {Counts} */
export function countMade(orders) {
  // The bare side sends no key, and ours always sends one.
  const naive = orders.filter(({ key }) => key === null).length;
  return { naive, ours: orders.length - naive };
}

/** @param {Side} side @param {number} more */
export function want(side, more) {
  wanted.set({ ...wanted.get(), [side]: Math.max(0, wanted.get()[side] + more) });
}
