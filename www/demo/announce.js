// The two live regions. What is said changes with the state of an order, never with a countdown, and not more often than
// somebody can listen to.

import { byId, say } from "./dom.js";

const MINUTE = 60_000;
const AT_MOST = 6;

/** States that pass within this time are not worth saying: the last one is. */
const SETTLE = 300;

/** @type {number[]} */
let said = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let later;
/** Which order it is about that is said, or will be. @type {string | null} */
let about = null;

/**
 * Says it in the status region; where six things were said within a minute already, the latest is said when it may be.
 * @param {string} text
 * @param {string | null} [key] of the order whose state it is: with the order goes what was said of it
 */
export function announce(text, key = null) {
  clearTimeout(later);
  about = key;
  const now = Date.now();
  said = said.filter((at) => now - at < MINUTE);
  const [first] = said;
  const wait = said.length >= AT_MOST && first !== undefined ? first + MINUTE - now : SETTLE;
  // What stands there is no longer true. To empty the region is not announced.
  say(byId("status"), "");
  later = setTimeout(() => {
    said.push(Date.now());
    say(byId("status"), text);
  }, wait);
}

/** Takes back what was said, and what was about to be. */
export function hush() {
  clearTimeout(later);
  about = null;
  say(byId("status"), "");
}

/**
 * The order is no longer on the list.
 * @param {string} key
 */
export function hushAbout(key) {
  if (about === key) hush();
}

/**
 * What needs a person, once; empty when nothing does any more.
 * @param {string} text
 */
export function alertOnce(text) {
  say(byId("alert"), text);
}
