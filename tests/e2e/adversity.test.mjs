// What a tester did to lose an order, to send one twice, or to be told a lie.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();

const policy = { ...quick, delaysMs: [20], jitter: "none" };
const waits = { policy: { ...quick, delaysMs: [60_000], jitter: "none" } };
const open = (options = { policy }) => openPage(on.context, on.server, options);
const busy = { type: "status", status: 503 };
const bodies = () => on.posts().map(({ key, seq }) => [key, on.server.log.body(seq).toString()]);

test("a retry under a new key sends the same bytes, also from memory", async () => {
  const page = await open();
  faults(on.server, "/orders", [{ type: "status", status: 422 }]);
  const keys = await page.evaluate(async () => {
    const first = outbox.submit("/orders", { json: { item: "tea" } }, { durable: false });
    await first.outcome;
    const second = await outbox.retry(first.key);
    await second.outcome;
    return [first.key, second.key];
  });
  assert.deepEqual(bodies(), keys.map((key) => [key, '{"item":"tea"}']));
});

test("a retry in the page that has the headers sends them", async () => {
  const page = await open();
  faults(on.server, "/orders", [{ type: "status", status: 422 }]);
  const status = await page.evaluate(async () => {
    const first = outbox.submit("/orders", { json: {}, headers: { authorization: "Bearer x" } });
    await first.outcome;
    return (await (await outbox.retry(first.key)).outcome).status;
  });
  assert.equal(status, "delivered");
  assert.deepEqual(on.posts().map(({ headers }) => headers.authorization), ["Bearer x", "Bearer x"]);
});

test("a row whose body is gone is parked, not sent without it", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [1_000] } });
  faults(on.server, "/orders", [busy]);
  await page.evaluate(async () => {
    await next(outbox.submit("/orders", { json: {} }), "waiting");
    const open = indexedDB.open("resubmit:resubmit");
    await new Promise((resolve) => (open.onsuccess = resolve));
    const clear = open.result.transaction("bodies", "readwrite");
    clear.objectStore("bodies").clear();
    await new Promise((resolve) => (clear.oncomplete = resolve));
    open.result.close();
  });
  await gotoPage(page, on.server, { policy });
  assert.deepEqual(await page.evaluate(async () => (await allSettled()).map(({ state, reason }) => [state, reason])), [["parked", "body-lost"]]);
  assert.equal(on.posts().length, 1);
});

test("stored is not said before it is so, whoever asks", async () => {
  const page = await open();
  const other = await open({ name: "other" });
  await page.evaluate(() => outbox.ready);
  await other.evaluate(() => holdStores());
  const early = await page.evaluate(async () => {
    const one = outbox.submit("/orders", { json: {} }, { key: "order-17" });
    const two = outbox.submit("/orders", { json: {} }, { key: "order-17" });
    const three = outbox.submission("order-17");
    window.all = Promise.all([one.stored, two.stored, three.stored]);
    return Promise.race([one.stored, two.stored, three.stored, new Promise((resolve) => setTimeout(resolve, 100, "nobody"))]);
  });
  assert.equal(early, "nobody");
  await other.evaluate(() => void letGo());
  assert.deepEqual(await page.evaluate(() => window.all), Array(3).fill({ durable: true }));
});

test("an abort ends its own submission, and no other that has the key", async () => {
  const page = await open(waits);
  faults(on.server, "/orders", [busy]);
  const ended = await page.evaluate(async () => {
    const tea = outbox.submit("/orders", { json: { item: "tea" } }, { key: "order-17" });
    await next(tea, "waiting");
    const aborted = outbox.submit("/orders", { json: { item: "coffee" } }, { key: "order-17", signal: AbortSignal.abort("enough") });
    const why = await aborted.outcome.catch((error) => error);
    // (Behind whatever the other might still do.)
    await outbox.submission("order-17").stored;
    return [why, (await outbox.retry("order-17").then(endOf)).status];
  });
  assert.deepEqual(ended, ["enough", "delivered"]);
});

test("a cancel of what is still being read ends what an earlier page stored under the key", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [1_000] } });
  faults(on.server, "/orders", [busy]);
  await page.evaluate(() => next(outbox.submit("/orders", { json: {} }, { key: "order-17" }), "waiting"));
  await gotoPage(page, on.server, { policy });
  const truth = await page.evaluate(async () => {
    await outbox.ready;
    const submission = outbox.submit("/orders", { json: {} }, { key: "order-17" });
    return submission.cancel();
  });
  assert.deepEqual(truth, { cancelled: true, maybeDelivered: true });
  assert.deepEqual((await dump(page)).intents.map(({ state }) => state), ["cancelled"]);
  assert.equal(on.posts().length, 1);
});

test("of two signals, neither keeps its listener when it is over", async () => {
  const page = await open();
  const left = await page.evaluate(async () => {
    let left = 0;
    const signals = [new AbortController(), new AbortController()].map(({ signal }) => signal);
    for (const signal of signals) {
      signal.addEventListener = (type, listener, options) => {
        left++;
        options.signal.addEventListener("abort", () => left--);
        EventTarget.prototype.addEventListener.call(signal, type, listener, options);
      };
    }
    await outbox.submit("/orders", { json: {}, signal: signals[0] }, { signal: signals[1] }).outcome;
    return left;
  });
  assert.equal(left, 0);
});

test("what is discarded in another tab and submitted anew there is sent as it is there", async () => {
  // Long enough for what the other tab does meanwhile.
  const first = await open({ policy: { ...policy, delaysMs: [4_000] } });
  faults(on.server, "/orders", [busy, busy]);
  await first.evaluate(() => next(outbox.submit("/orders", { json: { item: "old" } }, { key: "cart-1" }), "waiting"));
  const second = await open({ policy: { ...policy, delaysMs: [300] } });
  await second.evaluate(async () => {
    await outbox.discard("cart-1");
    await next(outbox.submit("/orders", { json: { item: "new" } }, { key: "cart-1" }), "waiting");
  });
  await second.close();
  await on.arrived(3);
  await first.evaluate(() => listed((all) => all.some(({ state }) => state === "delivered")));
  assert.deepEqual(bodies().map(([, body]) => JSON.parse(body).item), ["old", "new", "new"]);
  assert.deepEqual(on.server.orders().map(({ text }) => text), ['{"item":"new"}']);
});

test("a cancel that the disk refuses is kept to: nothing is sent, and it is written later", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [200] } });
  faults(on.server, "/orders", [busy]);
  await page.clock.install();
  await page.evaluate(async () => {
    window.controller = new AbortController();
    window.submission = outbox.submit("/orders", { json: {} }, { signal: controller.signal });
    await next(submission, "waiting");
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (stores, mode, ...rest) {
      const made = transaction.call(this, stores, mode, ...rest);
      if (mode === "readwrite") {
        IDBDatabase.prototype.transaction = transaction;
        made.abort();
      }
      return made;
    };
    controller.abort("gave up");
    await submission.outcome.catch(() => {});
  });
  await page.clock.fastForward(40_000);
  await page.evaluate(() => listed((all) => all.every(({ state }) => state === "cancelled")));
  assert.deepEqual((await dump(page)).intents.map(({ state }) => state), ["cancelled"]);
  assert.equal(on.posts().length, 1);
});

test("an intent that vanished elsewhere ends here with the answer that this page has", async () => {
  const page = await open();
  faults(on.server, "/orders", [{ type: "process-slow", ms: 300 }]);
  const key = await page.evaluate(() => (window.submission = outbox.submit("/orders", { json: {} })).key);
  await on.arrived();
  const other = await open();
  await other.evaluate((key) => outbox.discard(key), key);
  assert.equal((await page.evaluate(() => endOf(submission))).status, "delivered");
});

test("a fetch that was wrapped badly is a failure like any", async () => {
  const page = await open();
  const status = await page.evaluate(async () => {
    const { fetch } = window;
    const odd = [() => { throw new TypeError("blocked"); }, () => undefined, async () => ({ status: 200 }), fetch];
    window.fetch = (...args) => (args[1]?.signal ? odd.shift() ?? fetch : fetch)(...args);
    return (await outbox.submit("/orders", { json: {} }).outcome).status;
  });
  assert.equal(status, "delivered");
  assert.equal(on.server.orders().length, 1);
});

test("a listener that takes its time does not come between a claim and its attempt", async () => {
  const page = await open();
  faults(on.server, "/orders", [{ type: "hang" }]);
  const order = await page.evaluate(async () => {
    const order = [];
    const { fetch } = window;
    window.fetch = (...args) => (order.push("fetch"), fetch(...args));
    const submission = outbox.submit("/orders", { json: {} });
    for (const type of ["stored", "attempted"]) {
      submission.addEventListener(type, () => {
        order.push(type);
        const until = performance.now() + 3_000;
        while (performance.now() < until);
      });
    }
    await next(submission, "attempted");
    return order;
  });
  assert.deepEqual(order, ["fetch", "stored", "attempted"]);
});

test("an init of any kind is read as fetch reads it", async () => {
  const page = await open();
  await page.evaluate(async () => {
    class Init {
      get method() {
        return "POST";
      }
      get body() {
        return "item=class";
      }
    }
    const request = new Request("/elsewhere", { method: "POST", body: "item=request" });
    for (const init of [new Init(), Object.create({ body: "item=inherited" }), request]) await outbox.submit("/orders", init).outcome;
  });
  assert.deepEqual(bodies().map(([, body]) => body), ["item=class", "item=inherited", "item=request"]);
});

test("a load that failed for several calls at once is one load afterwards", async () => {
  on.server.faults.put({ method: "GET", route: "/dist/resubmit.wasm", script: [busy] });
  faults(on.server, "/orders", [busy, busy, busy], "repeat-last");
  const page = await on.context.newPage();
  await gotoPage(page, on.server, waits);
  const cancelled = await page.evaluate(async () => {
    const all = ["a", "b", "c"].map((x) => outbox.submit("/orders", { json: { x } }, { durable: false }));
    await Promise.all(all.map((each) => next(each, "waiting")));
    return Promise.all(all.map(async (each) => (await each.cancel()).cancelled));
  });
  assert.deepEqual(cancelled, [true, true, true]);
});

test("a database that could not be opened once is opened with the next submission", async () => {
  const page = await on.context.newPage();
  await page.addInitScript(() => {
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function () {
      IDBFactory.prototype.open = open;
      throw new DOMException("not now", "UnknownError");
    };
  });
  await gotoPage(page, on.server, { policy });
  const stored = await page.evaluate(async () => [await outbox.ready, await outbox.submit("/orders", { json: {} }).stored]);
  assert.deepEqual(stored, [{ durable: false, reason: "no-storage" }, { durable: true }]);
});

test("what cannot be sent or read from here starves nothing", async () => {
  const page = await open(waits);
  faults(on.server, "/orders", [{ type: "status", status: 500 }], "repeat-last");
  await page.evaluate(async () => {
    const waiting = Array.from({ length: 20 }, () => next(outbox.submit("/orders", { json: {}, headers: { authorization: "Bearer x" } }), "waiting"));
    await Promise.all(waiting);
    outbox.close();
    // All are due; and so are as many of a newer build, in the line of what can be sent.
    const open = indexedDB.open("resubmit:resubmit");
    await new Promise((resolve) => (open.onsuccess = resolve));
    const write = open.result.transaction("intents", "readwrite");
    const rows = write.objectStore("intents");
    rows.getAll().onsuccess = ({ target }) => {
      for (const row of target.result) {
        const due = { ...row, nextAttemptAt: 1, schedule: { writtenAt: 1, lengthMs: 0 } };
        rows.put(due);
        rows.put({ ...due, key: row.key + "-newer", v: 2, needs: "" });
      }
    };
    await new Promise((resolve) => (write.oncomplete = resolve));
    open.result.close();
  });
  await gotoPage(page, on.server, { policy: { ...policy, delaysMs: [300] } });
  faults(on.server, "/orders", [busy]);
  const status = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} });
    await next(submission, "waiting");
    return (await submission.outcome).status;
  });
  assert.equal(status, "delivered");
  assert.equal(await page.evaluate(() => outbox.unreadable), 20);
});
