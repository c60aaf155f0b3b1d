// What this page itself remembers, so that it survives the reload it invites you to make.

const PREFIX = "resubmit-demo:";

/** @typedef {"naive" | "ours"} Side */
/** @type {readonly Side[]} */
export const SIDES = ["naive", "ours"];

/**
 * @template T
 * @param {Storage} storage
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
function read(storage, name, otherwise) {
  try {
    return JSON.parse(storage.getItem(PREFIX + name) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

/**
 * One remembered value.
 * @template T
 * @param {Storage} storage
 * @param {string} name
 * @param {T} otherwise
 */
function remembered(storage, name, otherwise) {
  let value = read(storage, name, otherwise);
  return {
    get: () => value,
    /** @param {T} next */
    set(next) {
      value = next;
      try {
        storage.setItem(PREFIX + name, JSON.stringify(next));
      } catch {
        // Full or forbidden: the page goes on and forgets at the reload.
      }
    },
  };
}

/** How many orders the visitor asked for, per side. */
export const wanted = remembered(localStorage, "wanted", { naive: 0, ours: 0 });

/** The keys of the orders that were given up, for what had arrived of them by then. */
export const givenUp = remembered(localStorage, "given-up", /** @type {string[]} */ ([]));

/** The fault preset in force, and when a timed one ends. */
export const preset = remembered(localStorage, "preset", { id: "fine", until: /** @type {number | null} */ (null) });

// Of this tab only: another tab tells its own story.

/** @typedef {{ at: number, text: string, key: string | null }} LogLine */
/** The last events. */
export const eventLines = remembered(sessionStorage, "events", /** @type {LogLine[]} */ ([]));

/** @typedef {{ act: string, step: number, key: string | null, left: string, end: string }} Telling */
/** Where the guided story is. */
export const telling = remembered(sessionStorage, "story", /** @type {Telling | null} */ (null));
