// Orders wanted and orders made, and what the difference means.

import { byId, say } from "./dom.js";
import { givenUp, SIDES, wanted } from "./state.js";

/** @import { Side } from "./state.js" */

/** @typedef {Record<Side, number> & { late: number }} Counts `late`: those of `ours` that were made before they were given up */
/** @typedef {{ under: number, stopped: number }} Open how many are under way, and how many wait for a person */

/**
 * @param {Counts} made
 * @param {Record<Side, Open>} open
 */
export function drawCounters(made, open) {
  for (const side of SIDES) {
    say(byId(`${side}-wanted`), wanted.get()[side]);
    say(byId(`${side}-made`), made[side]);
    const late = side === "ours" ? made.late : 0;
    const { text, tone } = balance(wanted.get()[side], made[side] - late, open[side]);
    const tooLate = `${late} made before you gave ${late === 1 ? "it" : "them"} up`;
    say(byId(`${side}-balance`), late === 0 ? text : wanted.get()[side] === 0 ? tooLate : `${text}; ${tooLate}`);
    byId(`${side}-balance`).dataset.tone = late > 0 && tone !== "bad" ? "waiting" : tone;
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
  const late = givenUp.get().filter((key) => orders.some((order) => order.key === key)).length;
  return { naive, ours: orders.length - naive, late };
}

/** @param {Side} side @param {number} more */
export function want(side, more) {
  wanted.set({ ...wanted.get(), [side]: Math.max(0, wanted.get()[side] + more) });
}
