// Where the time of a durable submit goes: what the page asks of the browser, and how long after what came before.
import { order, opened, submitOurs } from "./submit.js";
import { submitByHand } from "./by-hand.js";
import { median, rest } from "./pairs.js";

/** @type {[step: string, at: number][]} */
let marks = [];
/** @param {string} step */
const mark = (step) => marks.push([step, performance.now()]);

/**
 * The median of each step, of either side.
 * @param {number} rounds
 */
export async function steps(rounds) {
  const { outbox, database } = await opened();
  const undo = watch();
  /** @type {Map<string, { side: string, step: string, times: number[] }>} */
  const found = new Map();
  const sides = {
    ours: () => submitOurs(outbox, "/orders"),
    "by hand": async () => {
      const response = await submitByHand(database, "/orders", order);
      return () => response.text();
    },
  };
  for (let round = -20; round < rounds; round++) {
    for (const [side, submit] of Object.entries(sides)) {
      await rest();
      marks = [];
      mark("submit");
      const untimed = await submit();
      mark("delivered");
      const seen = marks;
      await untimed();
      if (round >= 0) note(side, seen);
    }
  }
  undo();
  return [...found.values()].map(({ side, step, times }) => ({ side, step, ms: median(times) }));

  /** @param {string} side @param {typeof marks} seen */
  function note(side, seen) {
    const add = (/** @type {string} */ name, /** @type {string} */ step, /** @type {number} */ ms) => {
      const known = found.get(name) ?? { side, step, times: [] };
      found.set(name, known);
      known.times.push(ms);
    };
    seen.slice(1).forEach(([step, at], n) => {
      const [before, since] = seen[n] ?? [step, at];
      add(`${side} ${n}`, `${before} → ${step}`, at - since);
    });
    add(side, "in all", (seen.at(-1)?.[1] ?? NaN) - (seen[0]?.[1] ?? NaN));
  }
}

/** Marks what is called. Returns what ends that. */
function watch() {
  const { transaction } = IDBDatabase.prototype;
  const { put, get } = IDBObjectStore.prototype;
  const { fetch } = window;
  IDBDatabase.prototype.transaction = function (...args) {
    mark("transaction");
    const begun = transaction.apply(this, args);
    mark("(begun)");
    begun.addEventListener("complete", () => mark("committed"));
    return begun;
  };
  for (const [name, method] of /** @type {const} */ ([["put", put], ["get", get]])) {
    IDBObjectStore.prototype[name] = function (/** @type {any[]} */ ...args) {
      mark(name);
      return /** @type {any} */ (method).apply(this, args);
    };
  }
  window.fetch = (...args) => {
    mark("fetch");
    const sent = fetch(...args);
    mark("(sent)");
    sent.then(() => mark("response"));
    return sent;
  };
  return () => {
    Object.assign(IDBDatabase.prototype, { transaction });
    Object.assign(IDBObjectStore.prototype, { put, get });
    window.fetch = fetch;
  };
}
