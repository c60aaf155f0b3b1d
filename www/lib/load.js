import initModule, { on_panic, __wbg_reset_state } from "#glue";
import { ResubmitError } from "./error.js";

/** @type {Promise<void> | undefined} */
let loading;
/** The number of instances that trapped so far. */
let traps = 0;
/** @type {Set<(error: ResubmitError) => void>} */
const onTrap = new Set();

/** Whether there is a browser here: a page or a worker. A server has no `location`. */
export const inBrowser = typeof location !== "undefined" && typeof addEventListener === "function";

/**
 * Loads the module. Memoised; a load that failed may be tried again.
 * @param {any} [wasm]
 * @returns {Promise<void>}
 */
export function init(wasm) {
  if (!inBrowser) {
    return Promise.reject(new ResubmitError("no-browser", "there is no browser here: nothing is stored or sent"));
  }
  loading ??= load(wasm).catch((cause) => {
    loading = undefined;
    const error = new ResubmitError("load-failed", "the module could not be loaded: " + cause, { cause });
    console.error("resubmit:", error.message, "(a Content-Security-Policy needs 'wasm-unsafe-eval')");
    throw error;
  });
  return loading;
}

/** @param {any} wasm */
async function load(wasm) {
  if (traps > 0) __wbg_reset_state();
  await initModule({ module_or_path: wasm ?? new URL("./resubmit.wasm", import.meta.url) });
  on_panic((/** @type {string} */ text, /** @type {string} */ file, /** @type {number} */ line) => {
    const error = new ResubmitError("panicked", `${text} (${file}:${line}); what was stored is safe`);
    console.error("resubmit:", error);
    trapped(error);
  });
}

/**
 * The instance is of no use any more. What is open is rejected; the next use starts a fresh one.
 * @param {ResubmitError} error
 */
function trapped(error) {
  traps++;
  loading = undefined;
  for (const listener of [...onTrap]) listener(error);
}

/**
 * Calls back when the instance trapped.
 * @param {(error: ResubmitError) => void} listener
 */
export function whenTrapped(listener) {
  onTrap.add(listener);
  return () => onTrap.delete(listener);
}
