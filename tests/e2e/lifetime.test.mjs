// An outbox that is closed, kept off the disk, or whose module panics: what is told, and that no trace stays.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoBare, openPage, quick } from "./support.mjs";

const on = stage();

const policy = { ...quick, delaysMs: [20], jitter: "none" };
const open = (options = { policy }) => openPage(on.context, on.server, options);
const busy = { type: "status", status: 503 };

test("promises that nobody reads raise nothing", async () => {
  const page = await open();
  faults(on.server, "/orders", [{ type: "status", status: 422 }, { type: "hang" }]);
  await page.evaluate(async () => {
    outbox.submit("/orders", { json: {} });
    outbox.submit("http://user:secret@127.0.0.1/");
    outbox.submit("/orders", {}, { nonsense: 1 });
    outbox.submit("/orders", {}, { key: "no key" });
    outbox.submit("/orders", {}, { signal: AbortSignal.abort() });
    outbox.submission("nobody");
    outbox.submit("/orders", { json: {} }).detach();
    const controller = new AbortController();
    outbox.submit("/orders", { json: {} }, { signal: controller.signal });
    controller.abort();
    resubmit.createOutbox({ name: "bad", policy: "none" });
    outbox.submit("/orders", { json: {} }).cancel();
    await listed((all) => all.some(({ state }) => state === "refused"));
    outbox.submit("/orders", { json: {} });
    outbox.close();
    outbox.submit("/orders", { json: {} });
    await new Promise((resolve) => setTimeout(resolve, 100));
  });
  // `stage` looks at what was uncaught.
});

test("storage \"memory\" and durable false keep the disk out of it, and say so", async () => {
  const page = await open({ name: "on-disk", policy });
  faults(on.server, "/orders", [busy, busy]);
  const ends = await page.evaluate(async (policy) => {
    await outbox.ready;
    const memory = resubmit.createOutbox({ name: "memory", storage: "memory", policy });
    const ready = await memory.ready;
    const submissions = [memory.submit("/orders", { json: {} }), outbox.submit("/orders", { json: {} }, { durable: false })];
    const stored = await Promise.all(submissions.map(({ stored }) => stored));
    const list = await listed(([intent]) => intent !== undefined, memory);
    const ends = await Promise.all(submissions.map(endOf));
    const names = (await indexedDB.databases()).map(({ name }) => name);
    return { ready, stored, durable: list[0].durable, ends: ends.map(({ status, attempts }) => [status, attempts]), names };
  }, policy);
  const not = { durable: false, reason: "asked" };
  assert.deepEqual(ends, { ready: not, stored: [not, not], durable: false, ends: [["delivered", 2], ["delivered", 2]], names: ["resubmit:on-disk"] });
  assert.deepEqual(await dump(page, "on-disk"), { intents: [], bodies: [] });
});

test("close ends this page's part in every phase; the next page goes on", async () => {
  const quickly = { ...quick, delaysMs: [300], jitter: "none", attemptTimeoutMs: 500 };
  const page = await open({ policy: quickly });
  faults(on.server, "/orders", [{ type: "hang" }, busy]);
  const { keys, errors } = await page.evaluate(async () => {
    const sending = outbox.submit("/orders", { json: { n: 1 } });
    await next(sending, "attempted");
    const waiting = outbox.submit("/orders", { json: { n: 2 } });
    await next(waiting, "waiting");
    const early = outbox.submit("/orders", { json: { n: 3 } });
    outbox.close();
    outbox.close();
    const late = outbox.submit("/orders", { json: { n: 4 } });
    const ends = await Promise.all([sending, waiting, early, late].map(endOf));
    return { keys: [sending.key, waiting.key], errors: [...ends.map(({ error }) => error), await outbox.retry(waiting.key).catch(({ code }) => code)] };
  });
  assert.deepEqual(errors, Array(5).fill("closed"));
  // By then the wait of the second is over.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 600)));
  assert.equal(on.posts().length, 2);
  await page.evaluate((policy) => void open_({ policy }), quickly);
  await page.evaluate((keys) => listed((all) => keys.every((key) => all.some((intent) => intent.key === key && intent.state === "delivered"))), keys);
  assert.deepEqual(on.server.ledger(), keys.map((key) => ({ key, arrivals: 2, orders: 1 })));
});

test("case 119: after a panic what is open is told, what is stored is safe, and the next submission goes", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [1_000] } });
  const lines = [];
  page.on("console", (message) => message.type() === "error" && message.text().startsWith("resubmit:") && lines.push(message.text()));
  faults(on.server, "/orders", [busy]);
  const ends = await page.evaluate(async () => {
    const stored = outbox.submit("/orders", { json: { n: 1 } });
    await next(stored, "waiting");
    let traps;
    await new Promise((sending) => (traps = resubmit.submitWithRetry(() => new Promise(sending)).catch(({ code }) => code)));
    // An exception of a foreign script's clock crosses the module and leaves it half way: the next call panics. The first
    // look at the clock dates the intent, the second is the state machine's.
    const { now } = Date;
    Date.now = () => {
      Date.now = () => {
        Date.now = now;
        throw new Error("a clock that throws");
      };
      return now();
    };
    const first = outbox.submit("/orders", { json: { n: 2 } });
    while (Date.now !== now) await new Promise((resolve) => setTimeout(resolve, 1));
    const second = outbox.submit("/orders", { json: { n: 3 } });
    const ends = [(await endOf(first)).error, (await endOf(second)).error, (await endOf(stored)).error, await traps];
    const third = outbox.submit("/orders", { json: { n: 4 } });
    return { ends, third: (await endOf(third)).status, keys: [stored.key, third.key], storedEnd: await endOf(outbox.submission(stored.key)) };
  });
  assert.deepEqual(ends.ends, Array(4).fill("panicked"));
  assert.equal(ends.third, "delivered");
  assert.equal(ends.storedEnd.status, "delivered");
  assert.deepEqual(on.server.ledger(), [{ key: ends.keys[0], arrivals: 2, orders: 1 }, { key: ends.keys[1], arrivals: 1, orders: 1 }]);
  assert.equal(lines.length, 1);
  assert.match(lines[0], /what was stored is safe/);
  // The listeners of the dead instance hear of this too.
  await page.close();
  const uncaught = on.uncaught.splice(0);
  assert.match(uncaught[0], /clock that throws/);
  // What the dead instance had still to come is refused, not run.
  assert.ok(uncaught.slice(1).every((error) => /unreachable|previous WASM instance/.test(error)), uncaught.join("\n"));
});

test("cases 116 and 121: outboxes come and go, and no listener, timer or memory stays", async () => {
  const page = await on.context.newPage();
  await page.addInitScript(() => {
    // Counts what is there; calls through.
    window.counted = { listeners: 0, timers: new Set(), memory: null };
    const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype;
    const global = (target) => target === window || target === document;
    EventTarget.prototype.addEventListener = function (...args) {
      if (global(this ?? window)) counted.listeners++;
      return add.apply(this, args);
    };
    EventTarget.prototype.removeEventListener = function (...args) {
      if (global(this ?? window)) counted.listeners--;
      return remove.apply(this, args);
    };
    const { setTimeout: set, clearTimeout: clear } = window;
    window.setTimeout = (callback, ...rest) => {
      const id = set((...args) => (counted.timers.delete(id), callback(...args)), ...rest);
      counted.timers.add(id);
      return id;
    };
    window.clearTimeout = (id) => (counted.timers.delete(id), clear(id));
    const start = WebAssembly.instantiateStreaming;
    WebAssembly.instantiateStreaming = async (...args) => {
      const result = await start(...args);
      counted.memory = Object.values(result.instance.exports).find((exported) => exported instanceof WebAssembly.Memory);
      return result;
    };
  });
  await gotoBare(page, on.server);
  faults(on.server, "/orders", [busy], "repeat-last");
  const grown = await page.evaluate(async () => {
    const cycle = async (phase) => {
      const outbox = resubmit.createOutbox({ name: "leaks", storage: "memory" });
      outbox.intents.subscribe(() => {});
      const submission = outbox.submit("/orders", { json: {} });
      if (phase) await next(submission, phase);
      outbox.close();
    };
    await resubmit.init();
    const rounds = async (count) => {
      for (let i = 0; i < count; i++) await cycle(["", "stored", "attempted", "waiting"][i % 4]);
      await new Promise((resolve) => setTimeout(resolve, 50));
      return [counted.listeners, counted.timers.size, counted.memory.buffer.byteLength];
    };
    return [await rounds(40), await rounds(400)];
  });
  assert.deepEqual(grown[1], grown[0]);
});
