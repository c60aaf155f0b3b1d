import { Loop } from "#glue";
import { fromCore } from "./error.js";
import { init, whenTrapped } from "./load.js";

/**
 * @param {(attempt: any) => Promise<Response>} send
 * @param {string | null} [key]
 * @param {AbortSignal | null} [signal]
 * @param {any} [policy]
 */
export async function submitWithRetry(send, key, signal, policy) {
  signal?.throwIfAborted();
  /** @type {(() => void)[]} */
  const undo = [];
  try {
    return await Promise.race([
      new Promise((_, reject) => {
        const abort = () => reject(signal?.reason);
        signal?.addEventListener("abort", abort);
        undo.push(whenTrapped(reject), () => signal?.removeEventListener("abort", abort));
      }),
      run(send, key, policy, undo),
    ]);
  } finally {
    for (const each of undo) each();
  }
}

/**
 * @param {Function} send
 * @param {string | null | undefined} key
 * @param {any} policy
 * @param {(() => void)[]} undo What ends the loop.
 */
async function run(send, key, policy, undo) {
  let over = false;
  undo.push(() => (over = true));
  await init();
  // Aborted while the module was loading.
  if (over) return new Promise(() => {});
  try {
    const loop = new Loop(send, key ?? undefined, policy);
    undo.push(() => loop.abort());
    return await loop.outcome();
  } catch (error) {
    throw fromCore(error);
  }
}
