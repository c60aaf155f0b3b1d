import { Loop } from "#glue";
import { ResubmitError, fromCore } from "./error.js";
import { init, whenTrapped } from "./load.js";

/**
 * @param {(attempt: any) => Promise<Response>} send
 * @param {string | null} [key]
 * @param {AbortSignal | null} [signal]
 * @param {any} [policy]
 */
export async function submitWithRetry(send, key, signal, policy) {
  if (typeof send !== "function") throw new ResubmitError("bad-option", "send: expected a function");
  if (signal?.aborted) throw signal.reason;
  /** @type {{ over: boolean, loop?: Loop | undefined }} */
  const run = { over: false };
  let abort = () => {};
  let untrap = () => {};
  const ended = new Promise((_, reject) => {
    abort = () => reject(signal?.reason);
    untrap = whenTrapped((error) => {
      // Of no use any more, not even to be ended.
      run.loop = undefined;
      reject(error);
    });
  });
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([ended, start(send, key, policy, run)]);
  } finally {
    run.over = true;
    run.loop?.abort();
    untrap();
    signal?.removeEventListener("abort", abort);
  }
}

/**
 * @param {Function} send
 * @param {string | null | undefined} key
 * @param {any} policy
 * @param {{ over: boolean, loop?: Loop | undefined }} run
 */
async function start(send, key, policy, run) {
  await init();
  // Aborted while the module was loading.
  if (run.over) return new Promise(() => {});
  try {
    run.loop = new Loop(send, key ?? undefined, policy);
    return await run.loop.outcome();
  } catch (error) {
    throw fromCore(error);
  }
}
