// The right side: all there is to using the library. The code between the markers is what the page shows.

import { createOutbox } from "resubmit";
import source from "./ours.js?raw";
import { shown } from "./shown.js";

/**
 * Short waits without jitter, so that the countdowns can be watched; in earnest, leave `policy` out.
 * @type {import("resubmit").Policy}
 */
const shortWaits = { delaysMs: [1000, 2000, 3000, 4000, 5000], jitter: "none", maxAttempts: 8, attemptTimeoutMs: 4000 };

// <shown>
const outbox = createOutbox({ policy: shortWaits });
// </shown>

/** @param {import("resubmit").Json} order */
export function submitOrder(order) {
  // `outcome` is not awaited here: the receipt then stays on the list until somebody has seen it.
  return (
    // <shown>
    outbox.submit("/orders", { json: order }, { meta: order })
    // </shown>
  );
}

export const oursCode = shown(source);
export { outbox };
