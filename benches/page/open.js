// Opening an outbox over many waiting rows against opening an empty one.
import { createOutbox } from "/dist/index.js";
import { order } from "./submit.js";
import { pairs } from "./pairs.js";

/** @param {number} rounds */
export async function opening(rounds) {
  await waiting("full", 10_000);
  await waiting("empty", 0);
  return pairs(rounds, () => reopen("full"), () => reopen("empty"));
}

/** From `createOutbox` until it is ready and knows what is due. @param {string} name */
async function reopen(name) {
  const queried = firstQuery();
  const outbox = createOutbox({ name });
  await outbox.ready;
  await queried;
  return () => outbox.close();
}

/** Resolves when the next transaction that only reads is complete: the outbox asking what is due. */
function firstQuery() {
  const { transaction } = IDBDatabase.prototype;
  return new Promise((resolve) => {
    IDBDatabase.prototype.transaction = function (stores, mode, ...rest) {
      const begun = transaction.call(this, stores, mode, ...rest);
      if (mode !== "readonly") return begun;
      IDBDatabase.prototype.transaction = transaction;
      begun.addEventListener("complete", resolve);
      return begun;
    };
  });
}

/**
 * Fills an outbox with rows that wait for hours. The library writes one itself, since its server is busy; the others are
 * copies of that one under other keys and at other times.
 * @param {string} name
 * @param {number} count
 */
async function waiting(name, count) {
  const outbox = createOutbox({ name });
  const submission = outbox.submit("/busy", { json: order });
  await new Promise((resolve) => submission.addEventListener("waiting", resolve, { once: true }));
  outbox.close();
  const database = await new Promise((/** @type {(database: IDBDatabase) => void} */ resolve, reject) => {
    const request = indexedDB.open("resubmit:" + name);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const transaction = database.transaction(["intents", "bodies"], "readwrite");
  const intents = transaction.objectStore("intents");
  const bodies = transaction.objectStore("bodies");
  const id = ["anonymous", submission.key];
  const row = intents.get(id);
  const body = bodies.get(id);
  body.onsuccess = () => {
    intents.clear();
    bodies.clear();
    for (let n = 0; n < count; n++) {
      const key = crypto.randomUUID();
      const { createdAt, nextAttemptAt, schedule } = row.result;
      const later = { nextAttemptAt: nextAttemptAt + n, schedule: { ...schedule, lengthMs: schedule.lengthMs + n } };
      intents.put({ ...row.result, key, createdAt: createdAt - n, ...later });
      bodies.put(body.result, ["anonymous", key]);
    }
  };
  await new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  database.close();
}
