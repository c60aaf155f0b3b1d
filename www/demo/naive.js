// The left side: what many pages do. No key, no memory, no waiting; the code between the markers is what the page shows.

import source from "./naive.js?raw";
import { shown } from "./shown.js";

/**
 * @param {string} url
 * @param {RequestInit} order
 * @returns {Promise<boolean>} whether the customer is told that it worked
 */
async function send(url, order) {
  // <shown>
  for (let tries = 0; tries < 3; tries++) try {
    if ((await fetch(url, order)).ok) return true;
  } catch {}
  // </shown>
  return false;
}

export const naiveCode = shown(source);

// The loop itself has no end when the server never answers. Only "Reset everything" needs one, so it comes from outside.
let over = new AbortController();

export function endNaive() {
  over.abort();
  over = new AbortController();
}

/**
 * Orders on the route that ignores keys, as most servers do.
 * @param {unknown} order
 */
export function orderNaively(order) {
  return send("/orders-plain", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(order),
    signal: over.signal,
  });
}
