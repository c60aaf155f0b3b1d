// The fault switches: presets are scripts for the reference server, the same for both routes.

import { byId, el, say } from "./dom.js";
import { control } from "./server.js";
import { preset } from "./state.js";

/** @import { Side } from "./state.js" */

/** @type {Record<Side, string>} */
export const ROUTES = { naive: "/orders-plain", ours: "/orders" };

/**
 * @typedef {object} Preset
 * @property {string} name
 * @property {any[]} [script] one entry per arrival
 * @property {"ok" | "repeat-last"} [then]
 * @property {number} [seconds] how long it lasts from the next order on
 * @property {true} [hidden] not a switch: part of the story
 */

const busy = { type: "status", status: 503 };
const madeBut502 = { type: "commit-status", status: 502 };
const times = (/** @type {number} */ count, /** @type {any} */ fault) => Array(count).fill(fault);

/** @type {Record<string, Preset>} */
const PRESETS = {
  fine: { name: "works" },
  busy: { name: "fails twice (503), then works", script: times(2, busy) },
  "made-502": { name: "makes the order but answers 502, twice", script: times(2, madeBut502) },
  // Four: on a connection that was used before the browser repeats the POST by itself, and one attempt meets up to three.
  "made-dropped": { name: "makes the order, then drops the connection, 4 times", script: times(4, { type: "commit-drop" }) },
  dropped: { name: "reads the order, then drops the connection, 4 times", script: times(4, { type: "drop" }) },
  hang: { name: "never answers, twice", script: times(2, { type: "hang" }) },
  later: {
    name: "busy for 10 s, with Retry-After: 10",
    script: [{ ...busy, headers: { "retry-after": "10" } }],
    then: "repeat-last",
    seconds: 10,
  },
  down: { name: "down for 20 s: every connection breaks", script: [{ type: "drop", reset: true }], then: "repeat-last", seconds: 20 },
  refuses: { name: "refuses the order (422)", script: [{ type: "status", status: 422 }], then: "repeat-last" },
  replays: { name: "repeats a stored failure (500)", script: [{ type: "replayed", status: 500 }] },
  always: { name: "fails always (503)", script: [busy], then: "repeat-last" },
  "story-lost": { name: "story", script: [...times(3, madeBut502), busy], hidden: true },
  "story-busy": { name: "story", script: times(4, busy), hidden: true },
};

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

const chosen = () => PRESETS[preset.get().id] ?? /** @type {Preset} */ (PRESETS.fine);

/** @param {Side} side @param {Pick<Preset, "script" | "then">} what */
const put = (side, { script = [], then = "ok" }) => control("PUT", "/control/faults", { route: ROUTES[side], script, then });

/** Draws the switches and goes on with a timed preset that a reload interrupted. */
export function drawFaults() {
  for (const [id, { name, hidden }] of Object.entries(PRESETS)) {
    if (hidden) continue;
    const input = el("input", { type: "radio", name: "preset", value: id, onchange: () => choose(id) });
    byId("presets").append(el("label", {}, input, el("span", {}, name)));
  }
  showChoice();
  if (preset.get().until !== null) endOnTime();
}

function showChoice() {
  for (const input of byId("presets").querySelectorAll("input")) input.checked = input.value === preset.get().id;
}

/**
 * Puts a preset in force on both routes.
 * @param {string} id
 */
export async function choose(id) {
  clearTimeout(timer);
  preset.set({ id, until: null });
  showChoice();
  await rearm(["naive", "ours"]);
}

/**
 * Starts the script anew, so that every order meets all of it. A timed one starts with its first order and is left to
 * run out.
 * @param {readonly Side[]} sides
 */
export async function armFor(sides) {
  const { until, id } = preset.get();
  if (until !== null) return;
  await rearm(sides);
  const { seconds } = chosen();
  if (seconds === undefined) return;
  preset.set({ id, until: Date.now() + seconds * 1000 });
  endOnTime();
}

/** @param {readonly Side[]} sides */
async function rearm(sides) {
  try {
    await Promise.all(sides.map((side) => put(side, chosen())));
  } catch (error) {
    // The server cannot be reached at all, or this device is offline: fault enough, and the order is placed all the same.
    console.warn("the faults could not be scripted:", error);
  }
}

function endOnTime() {
  const left = (preset.get().until ?? 0) - Date.now();
  clearTimeout(timer);
  timer = setTimeout(async () => {
    try {
      await Promise.all([put("naive", {}), put("ours", {})]);
      preset.set({ id: preset.get().id, until: null });
    } catch {
      timer = setTimeout(endOnTime, 1000);
    }
  }, Math.max(0, left));
}

/**
 * Says what the next arrivals will meet.
 * @param {{ route: string, script: any[], then: string }[]} inForce
 */
export function showFaultsLeft(inForce) {
  const { until } = preset.get();
  const { seconds, hidden } = chosen();
  if (until !== null) return say(byId("fault-left"), `Ends in ${Math.max(0, Math.ceil((until - Date.now()) / 1000))} s.`);
  if (seconds !== undefined) return say(byId("fault-left"), `Starts with the next order and lasts ${seconds} s.`);
  if (chosen() === PRESETS.fine) return say(byId("fault-left"), "Every order is served at once.");
  const left = (/** @type {Side} */ side) => {
    const script = inForce.find(({ route }) => route === ROUTES[side]);
    return script?.then === "repeat-last" ? "all" : String(script?.script.length ?? 0);
  };
  const whose = hidden ? "The story’s script is in force." : "Every order starts this anew.";
  say(byId("fault-left"), `${whose} Arrivals still to fail: left ${left("naive")}, right ${left("ours")}.`);
}
