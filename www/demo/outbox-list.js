// The outbox as a live list. Rows are kept and changed in place, so that focus and selection stay where they are.

import { alertOnce, announce } from "./announce.js";
import { byId, el, say, shortKey } from "./dom.js";
import { attemptsOf, orderOf, stateOf, whyOf } from "./words.js";

/** @import { Intent, Outbox } from "resubmit" */

/** @typedef {{ intent: Intent, label: string, node: HTMLElement, parts: Record<string, any> }} Row */

/** @type {Map<string, Row>} */
const rows = new Map();
let first = true;

/** Called when a person has given an order up that was not known to be delivered. */
let givenUp = () => {};

/**
 * Draws the list now and at every change.
 * @param {Outbox} outbox
 * @param {() => void} onGivenUp
 */
export function drawOutbox(outbox, onGivenUp) {
  givenUp = onGivenUp;
  outbox.intents.subscribe((intents) => show(outbox, intents));
  setInterval(tick, 250);
}

/** @param {Outbox} outbox @param {readonly Intent[]} intents */
function show(outbox, intents) {
  const list = byId("outbox");
  const present = new Set(intents.map(({ key }) => key));
  for (const [key, row] of rows) {
    if (present.has(key)) continue;
    row.node.remove();
    rows.delete(key);
  }
  intents.forEach((intent, at) => {
    const row = rows.get(intent.key) ?? newRow(outbox, intent);
    // The same object says that nothing changed.
    if (row.intent !== intent || row.label === "") fill(row, intent);
    if (list.children[at] !== row.node) list.insertBefore(row.node, list.children[at] ?? null);
  });
  byId("outbox-empty").hidden = intents.length > 0;
  const needing = intents.filter(({ state }) => state === "parked" || state === "refused");
  alertOnce(needing.length === 0 ? "" : needing.length === 1 ? "One order needs your attention." : `${needing.length} orders need your attention.`);
  first &&= intents.length === 0;
  tick();
}

/** @param {Outbox} outbox @param {Intent} intent @returns {Row} */
function newRow(outbox, intent) {
  const { key } = intent;
  const parts = {
    order: el("strong"),
    key: el("code", { title: key }, shortKey(key)),
    label: el("span", { className: "label" }),
    // A timer is not a live region: a screen reader finds it, and is not told every second.
    countdown: el("span", { className: "countdown", role: "timer" }),
    facts: el("p", { className: "facts" }),
    retry: el("button", { type: "button", onclick: () => retry(outbox, key) }, "Retry"),
    discard: el("button", { type: "button", onclick: () => act(outbox.discard(key).then(givenUp)) }, "Discard"),
    cancel: el("button", { type: "button", onclick: () => act(cancel(outbox, key)) }, "Cancel"),
    seen: el("button", { type: "button", onclick: () => act(outbox.acknowledge(key)) }, "Seen, remove"),
  };
  for (const name of /** @type {const} */ (["retry", "discard", "cancel", "seen"])) {
    parts[name].setAttribute("aria-label", `${parts[name].textContent}: ${orderOf(intent.meta)}`);
  }
  const node = el(
    "li",
    {},
    el("p", { className: "order" }, parts.order, " ", parts.key),
    el("p", { className: "state" }, parts.label, " ", parts.countdown),
    parts.facts,
    el("div", { className: "buttons" }, parts.retry, parts.cancel, parts.discard, parts.seen),
  );
  const row = { intent, label: "", node, parts };
  rows.set(key, row);
  return row;
}

/** @param {Row} row @param {Intent} intent */
function fill(row, intent) {
  const { parts, node } = row;
  const { label, tone } = stateOf(intent);
  row.intent = intent;
  node.dataset.tone = tone;
  say(parts.order, orderOf(intent.meta));
  say(parts.label, label);
  const facts = [attemptsOf(intent), whyOf(intent), intent.durable ? "saved on this device" : "in this page only"];
  if (intent.maybeDelivered && (intent.state === "pending" || intent.state === "refused")) facts.push("may already have been received");
  say(parts.facts, facts.filter((fact) => fact !== "").join(" · "));
  const stopped = intent.state === "parked" || intent.state === "refused";
  const under = intent.state === "pending" || intent.state === "sending";
  parts.retry.hidden = !stopped;
  parts.discard.hidden = !stopped;
  parts.cancel.hidden = !under;
  parts.seen.hidden = stopped || under;
  // What is found on opening the page is read from the list; announced is what changes from then on.
  if (row.label !== label && !(first && row.label === "")) announce(`${orderOf(intent.meta)}: ${label}.`);
  row.label = label;
}

/** The countdowns, each in its own node. */
function tick() {
  for (const { intent, parts } of rows.values()) {
    say(parts.countdown, intent.state === "pending" && intent.nextAttemptAt !== null ? next(intent, intent.nextAttemptAt) : "");
  }
}

/** @param {Intent} intent @param {number} due */
function next(intent, due) {
  if (stateOf(intent).label.startsWith("Trying again")) return until(due);
  // The network's return comes before the deadline.
  return `· next attempt ${until(due)}${intent.reason === "offline" ? " at the latest" : ""}`;
}

/** @param {number} due */
function until(due) {
  const seconds = Math.ceil((due - Date.now()) / 1000);
  if (seconds <= 0) return "now";
  return seconds < 60 ? `in ${seconds} s` : `in ${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** @param {Outbox} outbox @param {string} key */
async function cancel(outbox, key) {
  // A finished answer wins: then it was delivered after all, and the list says so.
  const { cancelled } = await outbox.submission(key).cancel();
  if (cancelled) givenUp();
}

/**
 * Retries, and asks first where the library says that it may be done twice.
 * @param {Outbox} outbox
 * @param {string} key
 */
async function retry(outbox, key) {
  try {
    await outbox.retry(key);
  } catch (error) {
    const code = /** @type {{ code?: string }} */ (error).code;
    if (code !== "needs-may-repeat") return failed(error);
    if (await mayRepeat()) await act(outbox.retry(key, { mayRepeat: true }));
  }
}

/** @returns {Promise<boolean>} */
function mayRepeat() {
  /** @type {HTMLDialogElement} */
  const dialog = byId("repeat");
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** @param {Promise<unknown>} doing */
const act = (doing) => doing.catch(failed);

/** @param {unknown} error */
function failed(error) {
  console.error(error);
  announce(`That did not work: ${error instanceof Error ? error.message : error}`);
}
