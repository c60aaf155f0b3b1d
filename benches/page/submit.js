// Submitting: the library against the same work by hand.
import { createOutbox } from "/dist/index.js";
import { fetchByHand, openByHand, storeByHand, submitByHand } from "./by-hand.js";
import { pairs } from "./pairs.js";

export const order = { item: "tea", quantity: 2 };

/** Both sides' databases, open. */
export async function opened() {
  const outbox = createOutbox({ name: "bench" });
  await outbox.ready;
  return { outbox, database: await openByHand("by-hand") };
}

/**
 * `submit` to delivered. The body is read afterwards on either side, so that the connection is free for the next.
 * @param {import("resubmit").Outbox} outbox
 * @param {string} url
 * @param {import("resubmit").SubmitOptions} [options]
 */
export async function submitOurs(outbox, url, options) {
  const outcome = await outbox.submit(url, { json: order }, options).outcome;
  if (outcome.status !== "delivered") throw new Error(outcome.status);
  return () => outcome.response?.text();
}

/** @param {Promise<Response>} sent */
async function read(sent) {
  const response = await sent;
  return () => response.text();
}

/** @param {number} rounds @param {string} [url] @param {boolean} [reading] */
export async function durable(rounds, url = "/orders", reading = false) {
  const { outbox, database } = await opened();
  return pairs(
    rounds,
    () => submitOurs(outbox, url),
    () => read(submitByHand(database, url, order, reading)),
  );
}

/** @param {number} rounds @param {string} [url] */
export async function notDurable(rounds, url = "/orders") {
  const { outbox } = await opened();
  return pairs(
    rounds,
    () => submitOurs(outbox, url, { durable: false }),
    () => read(fetchByHand(url, order)),
  );
}

/** @param {number} rounds */
export async function stored(rounds) {
  const { outbox, database } = await opened();
  return pairs(
    rounds,
    async () => {
      const { stored, outcome } = outbox.submit("/orders", { json: order });
      if (!(await stored).durable) throw new Error("not durable");
      return () => outcome;
    },
    async () => {
      await storeByHand(database, "/orders", order);
    },
  );
}
