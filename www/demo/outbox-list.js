// The outbox as a live list. Rows are kept and changed in place, so that focus and selection stay where they are.

import { alertOnce, announce, hushAbout } from "./announce.js";
import { byId, el, say, shortKey } from "./dom.js";
import { attemptsOf, orderOf, stateOf, whereOf, whyOf } from "./words.js";

/** @import { Intent, Outbox } from "resubmit" */

/** @typedef {{ intent: Intent, label: string, acted: boolean, node: HTMLElement, parts: Record<string, any> }} Row */

/** @type {Map<string, Row>} */
const rows = new Map();
let first = true;

/** Called when a person has given an order up that was not known to be delivered. @type {(key: string) => void} */
let givenUp = () => {};

const BUTTONS = /** @type {const} */ (["retry", "cancel", "discard", "seen"]);

/**
 * Draws the list now and at every change.
 * @param {Outbox} outbox
 * @param {(key: string) => void} onGivenUp
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
    const focused = row.node.contains(document.activeElement);
    row.node.remove();
    rows.delete(key);
    hushAbout(key);
    if (focused) byId("outbox-title").focus();
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
  const button = (/** @type {string} */ text, /** @type {() => Promise<unknown>} */ act) =>
    el("button", { type: "button", "aria-label": `${text}: ${orderOf(intent.meta)}`, onclick: () => press(row, act) }, text);
  const parts = {
    order: el("strong"),
    key: el("code", { title: key }, shortKey(key)),
    label: el("span", { className: "label" }),
    // A timer is not a live region: a screen reader finds it, and is not told every second.
    countdown: el("span", { className: "countdown", role: "timer" }),
    facts: el("p", { className: "facts" }),
    retry: button("Retry", () => retry(outbox, key)),
    cancel: button("Cancel", () => cancel(outbox, key)),
    discard: button("Discard", () => discard(outbox, intent)),
    seen: button("Seen, remove", () => outbox.acknowledge(key)),
  };
  const node = el(
    "li",
    { tabIndex: -1 },
    el("p", { className: "order" }, parts.order, " ", parts.key),
    el("p", { className: "state" }, parts.label, " ", parts.countdown),
    parts.facts,
    el("div", { className: "buttons" }, ...BUTTONS.map((name) => parts[name])),
  );
  /** @type {Row} */
  const row = { intent, label: "", acted: false, node, parts };
  rows.set(key, row);
  return row;
}

/** @param {Row} row @param {() => Promise<unknown>} act */
async function press(row, act) {
  row.acted = true;
  await act().catch(failed);
  // What it changed is told in the same task, before or after.
  setTimeout(() => (row.acted = false));
}

/** @param {Row} row @param {Intent} intent */
function fill(row, intent) {
  const { parts, node } = row;
  const { label, tone } = stateOf(intent);
  row.intent = intent;
  node.dataset.tone = tone;
  say(parts.order, orderOf(intent.meta));
  say(parts.label, label);
  const facts = [attemptsOf(intent), whyOf(intent), whereOf(intent)];
  if (intent.maybeDelivered && (intent.state === "pending" || intent.state === "refused")) facts.push("may already have been received");
  say(parts.facts, facts.filter((fact) => fact !== "").join(" · "));
  const stopped = intent.state === "parked" || intent.state === "refused";
  const under = intent.state === "pending" || intent.state === "sending";
  offer(row, stopped ? ["retry", "discard"] : under ? ["cancel"] : ["seen"]);
  // What is found on opening the page is read from the list; announced is what changes from then on.
  if (row.label !== label && !(first && row.label === "")) announce(`${orderOf(intent.meta)}: ${label}.`, intent.key);
  row.label = label;
}

/**
 * Shows those buttons alone. Focus does not fall to the page with the one that goes: where a person pressed it, the next
 * one has it; where the state changed by itself, the row, so that no key press meant for one button reaches another.
 * @param {Row} row
 * @param {(typeof BUTTONS)[number][]} offered
 */
function offer(row, offered) {
  const { node, parts } = row;
  const focused = BUTTONS.find((name) => parts[name] === document.activeElement);
  for (const name of BUTTONS) parts[name].hidden = !offered.includes(name);
  if (focused === undefined || offered.includes(focused)) return;
  (row.acted ? parts[offered[0] ?? "seen"] : node).focus();
}

/** The countdowns, each in its own node. */
function tick() {
  for (const { intent, parts } of rows.values()) say(parts.countdown, countdown(intent));
  // The list may be below the fold; the state of its newest order stands with the buttons that order, too.
  const [latest] = byId("outbox").children;
  byId("ours-now").hidden = !latest;
  byId("ours-says").hidden = Boolean(latest);
  if (latest) say(byId("ours-latest"), `${latest.querySelector(".state").textContent.trim()}.`);
}

/** @param {Intent} intent */
function countdown(intent) {
  return intent.state === "pending" && intent.nextAttemptAt !== null ? next(intent, intent.nextAttemptAt) : "";
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
  if (cancelled) givenUp(key);
}

/** @param {Outbox} outbox @param {Intent} intent */
async function discard(outbox, { key, meta }) {
  await outbox.discard(key);
  givenUp(key);
  announce(`${orderOf(meta)}: Discarded.`);
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
    if (code !== "needs-may-repeat") throw error;
    if (await mayRepeat()) await outbox.retry(key, { mayRepeat: true });
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

/** @param {unknown} error */
function failed(error) {
  console.error(error);
  announce(`That did not work: ${error instanceof Error ? error.message : error}`);
}
