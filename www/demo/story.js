// The guided tour. It only presses the page's own buttons and then tells what really happened, so a fault in the library
// would show here as well.

import { byId, el, shortKey } from "./dom.js";
import { telling } from "./state.js";
import { stateOf } from "./words.js";

/** @import { Intent, Outbox } from "resubmit" */
/** @import { Telling } from "./state.js" */

/** In the wait after this attempt the page is loaded again. */
const RELOAD_AFTER = 3;

/** @type {Record<string, { title: string, preset: string, begin: string }>} */
const ACTS = {
  lost: {
    title: "Answers get lost",
    preset: "story-lost",
    begin: "The next three orders are made, but answered with 502; then comes a 503; then the server works.",
  },
  busy: {
    title: "The server is overloaded",
    preset: "story-busy",
    begin: "The next four orders are answered with 503 and not made; then the server works.",
  },
};

/**
 * What the page lends to the story.
 * @typedef {object} Stage
 * @property {Outbox} outbox
 * @property {() => Promise<unknown>} reset
 * @property {(preset: string) => Promise<unknown>} choose
 * @property {() => Promise<{ key: string, naive: Promise<boolean> }>} orderBoth
 * @property {() => Promise<{ naive: number, ours: number }>} count orders made
 */

/** @param {Stage} stage */
export function drawStory(stage) {
  for (const [act, { title }] of Object.entries(ACTS)) {
    byId("story-buttons").append(el("button", { type: "button", className: "primary", onclick: () => begin(act, stage) }, title));
  }
  stage.outbox.addEventListener("waiting", ({ detail: { key, intent } }) => {
    const now = telling.get();
    if (now?.key !== key || now.step !== 2 || intent?.attempt !== RELOAD_AFTER) return;
    tell({ step: 3 });
    // Long enough to be read, and well within the wait of three seconds.
    setTimeout(() => location.reload(), 1200);
  });
  if (telling.get()?.step === 3) tell({ step: 4 });
  draw();
  stage.outbox.intents.subscribe((intents) => {
    const now = telling.get();
    const intent = intents.find(({ key }) => key === now?.key);
    if (intent && now && now.step < 5 && intent.nextAttemptAt === null && intent.state !== "sending") end(intent, stage);
  });
}

/** @param {string} act @param {Stage} stage */
async function begin(act, stage) {
  await stage.reset();
  telling.set({ act, step: 0, key: null, left: "", end: "" });
  draw();
  await stage.choose(ACTS[act]?.preset ?? "fine");
  const { key, naive } = await stage.orderBoth();
  tell({ step: 1, key });
  const told = await naive;
  const { naive: made } = await stage.count();
  tell({
    step: 2,
    left: `Left: ${told ? "the loop ended well" : "three tries at once, all failed"}. Orders made: ${made}. The customer is told that it ${told ? "worked" : "failed"}.`,
  });
}

/** @param {Intent} intent @param {Stage} stage */
async function end(intent, stage) {
  tell({ step: 5 });
  const made = await stage.count();
  tell({
    step: 6,
    end: `Right: ${stateOf(intent).label} after ${intent.attempt} attempts under one key, ${shortKey(intent.key)} One order wanted: ${made.ours} made on the right, ${made.naive} on the left.`,
  });
}

/** What was told is no longer on the counters. */
export function forgetStory() {
  telling.set(null);
  draw();
}

/** @param {Partial<Telling>} change */
function tell(change) {
  const now = telling.get();
  if (now === null) return;
  telling.set({ ...now, ...change });
  draw();
}

function draw() {
  const now = telling.get();
  const steps = byId("story-steps");
  steps.hidden = now === null;
  if (now === null) return;
  const lines = [
    ACTS[now.act]?.begin ?? "",
    "One order is placed, on both sides at once.",
    now.left || "Left: the loop tries.",
    `Right: attempts fail too, but between them it waits. In the wait after attempt ${RELOAD_AFTER} the page is loaded again.`,
    "The page is new. The left side has forgotten everything; the right goes on where it was, from the disk.",
    now.end || "Right: it arrives.",
  ];
  steps.replaceChildren(
    ...lines.map((line, at) =>
      el("li", at === now.step ? { "aria-current": "step" } : { className: at < now.step ? "done" : "" }, line),
    ),
  );
}
