// The last events of the outbox. Kept for the tab, so that the reload shows as a line among them.

import { byId, clock, el, shortKey } from "./dom.js";
import { eventLines } from "./state.js";
import { whyOf } from "./words.js";

/** @import { Outbox, OutboxEventDetail } from "resubmit" */

const KEPT = 12;

/** @param {Outbox} outbox */
export function drawEvents(outbox) {
  if (eventLines.get().length > 0) note("the page was loaded again", null);
  for (const type of /** @type {const} */ (["stored", "attempted", "waiting", "settled"])) {
    outbox.addEventListener(type, ({ detail }) => note(`${type}: ${said(type, detail)}`, detail.key));
  }
  outbox.addEventListener("degraded", ({ detail }) => note(`degraded: ${detail.reason}`, null));
  draw();
}

/** @param {string} type @param {OutboxEventDetail} detail */
function said(type, { intent, stored, outcome }) {
  switch (type) {
    case "stored":
      return stored?.durable ? "on this device’s disk" : `in this page only (${stored?.reason})`;
    case "attempted":
      return `attempt ${intent?.attempt ?? "?"} begins`;
    case "waiting":
      return intent ? `attempt ${intent.attempt + 1} at ${clock(intent.nextAttemptAt ?? 0)}; ${whyOf(intent)}` : "";
    default:
      return outcome ? `${outcome.status} after ${outcome.attempts} attempt${outcome.attempts === 1 ? "" : "s"}` : "";
  }
}

/** @param {string} text @param {string | null} key */
function note(text, key) {
  eventLines.set([{ at: Date.now(), text, key }, ...eventLines.get()].slice(0, KEPT));
  draw();
}

export function forgetEvents() {
  eventLines.set([]);
  draw();
}

function draw() {
  const lines = eventLines.get();
  byId("events").replaceChildren(
    ...lines.map(({ at, text, key }) =>
      el("li", {}, el("time", {}, clock(at)), " ", ...(key ? [el("code", { title: key }, shortKey(key)), " "] : []), text),
    ),
  );
  byId("events-empty").hidden = lines.length > 0;
}
