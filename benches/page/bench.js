// The two sides of each pair, in the page.
import { createOutbox, init } from "/dist/index.js";
import { open, submitByHand } from "/page/by-hand.js";

await init();

/** Runs the two alternately and times each. */
async function pairs(rounds, ours, theirs) {
  const times = { ours: [], theirs: [] };
  const warmUp = Math.ceil(rounds / 10);
  for (let round = -warmUp; round < rounds; round++) {
    const order = round % 2 === 0 ? ["ours", "theirs"] : ["theirs", "ours"];
    for (const side of order) {
      const began = performance.now();
      await (side === "ours" ? ours : theirs)();
      if (round >= 0) times[side].push(performance.now() - began);
    }
  }
  return times;
}

const order = { item: "tea", quantity: 2 };

window.bench = {
  async "durable submit"(rounds) {
    const outbox = createOutbox({ name: "durable" });
    await outbox.ready;
    const database = await open("by-hand");
    const times = await pairs(
      rounds,
      async () => {
        const { outcome } = outbox.submit("/orders", { json: order });
        if ((await outcome).status !== "delivered") throw new Error("not delivered");
      },
      () => submitByHand(database, "/orders", order),
    );
    return { ...times, target: 1.15, what: "submit to delivered, against strict put, fetch, strict put by hand" };
  },

  async "non-durable submit"(rounds) {
    const outbox = createOutbox({ name: "memory", storage: "memory" });
    await outbox.ready;
    const times = await pairs(
      rounds,
      async () => {
        const { outcome } = outbox.submit("/orders", { json: order });
        if ((await outcome).status !== "delivered") throw new Error("not delivered");
      },
      async () => {
        const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
        const response = await fetch("/orders", { method: "POST", headers, body: JSON.stringify(order) });
        if (!response.ok) throw new Error("not delivered");
      },
    );
    return { ...times, target: 1.05, what: "submit to delivered with storage: memory, against a bare fetch" };
  },

  async "open over 10,000 waiting"(rounds) {
    await waiting("full", 10_000);
    await waiting("empty", 0);
    const reopen = async (name) => {
      const outbox = createOutbox({ name });
      await outbox.ready;
      outbox.close();
    };
    const times = await pairs(Math.ceil(rounds / 6), () => reopen("full"), () => reopen("empty"));
    return { ...times, target: 1.5, what: "createOutbox to ready, 10,000 rows waiting, against none" };
  },
};

/** Fills an outbox with rows that wait for hours: copies of one that the library itself wrote. */
async function waiting(name, count) {
  const outbox = createOutbox({ name });
  const { stored, key, cancel } = outbox.submit("/orders", { json: order });
  await stored;
  await new Promise((resolve) => outbox.addEventListener("settled", resolve, { once: true }));
  outbox.close();
  const database = await open("resubmit:" + name, null);
  const transaction = database.transaction(["intents", "bodies"], "readwrite");
  const [intents, bodies] = ["intents", "bodies"].map((store) => transaction.objectStore(store));
  intents.get(["anonymous", key]).onsuccess = ({ target }) => {
    const row = target.result;
    intents.clear();
    for (let n = 0; n < count; n++) {
      const now = Date.now();
      const copy = { ...row, key: crypto.randomUUID(), state: "pending", receipt: undefined, settledAt: undefined, forgetAt: undefined };
      delete copy.forgetAt;
      Object.assign(copy, { createdAt: now - n, nextAttemptAt: now + 4e6 + n, schedule: { writtenAt: now, lengthMs: 4e6 + n } });
      intents.put(copy);
      bodies.put(new Uint8Array(40), ["anonymous", copy.key]);
    }
  };
  await new Promise((resolve, reject) => Object.assign(transaction, { oncomplete: resolve, onabort: () => reject(transaction.error) }));
  database.close();
}
