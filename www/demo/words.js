// An intent in the words of the contract (§6.8). Used for the list and for what is announced, so that both say the same.

/** @import { Intent } from "resubmit" */

/** @typedef {"busy" | "waiting" | "good" | "bad" | "over"} Tone */

/**
 * @param {Intent} intent
 * @returns {{ label: string, tone: Tone }}
 */
export function stateOf(intent) {
  switch (intent.state) {
    case "sending":
      return { label: intent.attempt > 1 ? `Trying again, attempt ${intent.attempt}` : "Sending", tone: "busy" };
    case "pending":
      return { label: waiting(intent), tone: "waiting" };
    case "delivered":
      return { label: "Delivered", tone: "good" };
    case "cancelled":
      // Given up is not undone: what an attempt brought to the server stays there.
      return intent.maybeDelivered
        ? { label: "Cancelled, but may already have been received", tone: "waiting" }
        : { label: "Cancelled", tone: "over" };
    case "refused":
      return { label: "Needs your attention", tone: "bad" };
    case "parked":
      // That it may have arrived is what the person must know before deciding; why it stopped is said beside it.
      return { label: intent.maybeDelivered ? "May already have been received" : "Needs your attention", tone: "bad" };
  }
}

/** @param {Intent} intent */
function waiting({ durable, reason, attempt }) {
  if (!durable) return "Not saved: keep this page open";
  if (reason === "unauthorized") return "Waiting for you to sign in";
  if (reason === "queued") return "Saved on this device, waiting for its turn";
  if (reason === "offline" || reason === "network-failure") return "Saved on this device, waiting for the network";
  return attempt > 0 ? `Trying again, attempt ${attempt + 1}` : "Sending";
}

/** Every reason there is. A `Record`, so that the type check finds one that was added. */
/** @type {Record<NonNullable<Intent["reason"]>, string>} */
const REASONS = {
  "network-failure": "the connection failed",
  "attempt-timeout": "no answer came in time",
  offline: "this device is offline",
  "server-busy": "the server failed or is busy",
  "still-running": "the server is still at the first attempt",
  "not-acknowledged": "the answer did not confirm it",
  unauthorized: "the server asks for a sign-in",
  "not-sent": "it was not sent after all",
  queued: "others come before it",
  invalid: "the server refused it",
  forbidden: "the server does not allow it",
  conflict: "it conflicts with what the server has",
  "attempts-exhausted": "every attempt failed",
  "max-age": "it has waited too long",
  "key-expired": "the key is too old to be sent again",
  "retry-after-too-long": "the server asks for too long a wait",
  "outcome-unknown": "it is not known whether it arrived",
  redirected: "the answer came from elsewhere",
  unexpected: "the answer makes no sense",
  "replayed-failure": "the server repeats a stored failure",
  "blocked-by-csp": "this page’s policy forbids the address",
  "body-lost": "the browser lost what was ordered",
  "hook-failed": "the answer could not be judged",
  discarded: "given up",
  superseded: "a newer one took its place",
  cleared: "cleared",
  expired: "forgotten: nobody came back to it",
};

/**
 * Why it stands where it stands, with the status that was answered.
 * @param {Intent} intent
 */
export function whyOf({ state, reason, evidence, receipt }) {
  const status = receipt?.status ?? evidence?.status;
  const why = reason === null ? "" : REASONS[reason];
  // The answer is not why a person gave it up.
  if (state === "cancelled") return status === undefined ? why : `${why}; the last answer was ${status}`;
  if (status === undefined) return why;
  return why === "" ? `answered ${status}` : `${why} (${status})`;
}

/** @param {Intent} intent */
export function attemptsOf({ state, attempt, maxAttempts }) {
  if (state === "sending") return `attempt ${attempt} of ${maxAttempts}`;
  if (attempt === 0) return "not sent yet";
  if (state === "pending") return `after attempt ${attempt} of ${maxAttempts}`;
  return attempt === 1 ? "after one attempt" : `after ${attempt} attempts`;
}

/**
 * Where it is, unless it is over or the state says so already.
 * @param {Intent} intent
 */
export function whereOf(intent) {
  const { label } = stateOf(intent);
  if (intent.state === "delivered" || intent.state === "cancelled" || /saved/i.test(label)) return "";
  return intent.durable ? "saved on this device" : "in this page only";
}

/**
 * What was ordered, as the intent's `meta` brought it through the reload.
 * @param {unknown} meta
 */
export function orderOf(meta) {
  const { customer = "?", item = "?", quantity = "?" } = /** @type {Record<string, unknown>} */ (meta ?? {});
  return `${quantity} × ${item} for ${customer}`;
}
