// Ending it: at once, by identity, in every phase, leaving nothing behind.
import assert from "node:assert/strict";
import { beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoBare, openPage, quick } from "./support.mjs";

const on = stage();
const policy = { ...quick, delaysMs: [60_000], jitter: "none", attemptTimeoutMs: 60_000 };
let server, page;
beforeEach(async () => {
  server = on.server;
  page = await openPage(on.context, server, { policy });
});

const posts = () => server.log.entries().filter(({ method }) => method === "POST");

/** Aborts with each kind of reason in a phase, and says what came of it. */
const abortIn = (phase) =>
  page.evaluate(async (phase) => {
    await outbox.ready;
    const reasons = [new Error("mine"), "text", null, { any: "thing" }, undefined];
    const results = [];
    for (const reason of reasons) {
      const controller = new AbortController();
      const submission = outbox.submit("/orders", { json: {} }, { signal: controller.signal });
      if (phase !== "at once") await new Promise((resolve) => submission.addEventListener(phase, resolve, { once: true }));
      controller.abort(reason);
      const task = new Promise((resolve) => setTimeout(resolve, 0, "later"));
      const ended = await Promise.race([submission.outcome.then(() => "resolved", (error) => Object.is(error, controller.signal.reason)), task]);
      results.push(ended);
    }
    return results;
  }, phase);

for (const phase of ["at once", "stored", "attempted", "waiting"]) {
  test(`abort when ${phase}: the signal's reason by identity, within a task, and nothing more is sent`, async () => {
    faults(server, "/orders", [phase === "waiting" ? { type: "status", status: 503 } : { type: "hang" }], "repeat-last");
    assert.deepEqual(await abortIn(phase), [true, true, true, true, true]);
    // The rows say so too, in the store.
    await page.waitForFunction(() => new Promise((resolve) => outbox.intents.subscribe((all) => all.every(({ state }) => state === "cancelled") && resolve(true))));
    const before = posts().length;
    await page.evaluate(() => new Promise((resolve) => (window.dispatchEvent(new Event("online")), setTimeout(resolve, 800))));
    assert.equal(posts().length, before);
    if (phase === "at once") assert.equal(before, 0);
  });
}

test("abort while the module loads: nothing of it is ever stored or sent; what was detached is", async () => {
  server.faults.put({ method: "GET", route: "/dist/resubmit.wasm", script: [{ type: "slow", ms: 500 }] });
  await gotoBare(page, server);
  const ended = await page.evaluate(async (policy) => {
    // Another URL, which is in no cache.
    const outbox = open_({ policy, wasm: "/dist/resubmit.wasm?slow" });
    const controller = new AbortController();
    const aborted = outbox.submit("/orders", { json: { n: 1 } }, { signal: controller.signal });
    const cancelled = outbox.submit("/orders", { json: { n: 2 } });
    const detached = outbox.submit("/orders", { json: { n: 3 } });
    const later = outbox.submit("/orders", { json: { n: 4 } }, { signal: controller.signal, onAbort: "detach" });
    let loaded = false;
    outbox.ready.then(() => (loaded = true));
    const reason = {};
    controller.abort(reason);
    detached.detach();
    const same = [await aborted.outcome.catch((error) => error === reason), await later.outcome.catch((error) => error === reason), !loaded];
    const truth = await cancelled.cancel("mine");
    await listed((all) => all.some(({ key, state }) => key === detached.key && state === "delivered"));
    const list = await listed((all) => all.every(({ state }) => state !== "pending" && state !== "sending"));
    return { same, truth, cancelled: await cancelled.outcome.catch((error) => error), sent: list.map(({ key }) => key), detached: detached.key };
  }, policy);
  assert.deepEqual(ended.same, [true, true, true]);
  assert.deepEqual(ended.truth, { cancelled: true, maybeDelivered: false });
  assert.equal(ended.cancelled, "mine");
  // Not even stored yet, so an abort that would detach ends it too.
  assert.deepEqual(ended.sent, [ended.detached]);
  assert.deepEqual(server.ledger(), [{ key: ended.detached, arrivals: 1, orders: 1 }]);
});

test("abort while it is being stored: at once, though the store is busy; the row ends with it, and nothing is sent", async () => {
  await page.evaluate(() => outbox.ready);
  const other = await on.context.newPage();
  await gotoBare(other, server);
  await other.evaluate(() => holdStores());
  const results = await page.evaluate(async () => {
    const results = [];
    for (const reason of [new Error("mine"), null, undefined]) {
      const controller = new AbortController();
      const submission = outbox.submit("/orders", { json: {} }, { signal: controller.signal });
      // The request is read and the write is on its way.
      await new Promise((resolve) => setTimeout(resolve, 50));
      controller.abort(reason);
      const task = new Promise((resolve) => setTimeout(resolve, 0, "later"));
      results.push(await Promise.race([submission.outcome.catch((error) => Object.is(error, controller.signal.reason)), task]));
    }
    return results;
  });
  assert.deepEqual(results, [true, true, true]);
  await other.evaluate(() => void letGo());
  // Behind them in the store: when this is delivered, they are over.
  assert.equal(await page.evaluate(async () => (await outbox.submit("/orders", { json: {} }).outcome).status), "delivered");
  const { intents, bodies } = await dump(page);
  assert.ok(intents.every(({ state }) => state === "cancelled" || state === "delivered"), JSON.stringify(intents));
  assert.deepEqual(bodies, []);
  assert.equal(posts().length, 1);
});

test("the signal inside a Request is as good as one beside it", async () => {
  faults(server, "/orders", [{ type: "hang" }, { type: "hang" }]);
  const ends = await page.evaluate(async () => {
    const ends = [];
    for (const call of ["fetch", "submit"]) {
      const controller = new AbortController();
      const request = new Request("/orders", { method: "POST", body: "x", signal: controller.signal });
      const attempted = next(outbox, "attempted");
      const called = outbox[call](request);
      await attempted;
      controller.abort("mine");
      ends.push(await (called.outcome ?? called).catch((error) => error));
    }
    return ends;
  });
  assert.deepEqual(ends, ["mine", "mine"]);
});

test("case 41: abort of what waits for a free connection: it never goes", async () => {
  faults(server, "/orders", [{ type: "slow", ms: 600 }, { type: "slow", ms: 600 }, { type: "slow", ms: 600 }, { type: "slow", ms: 600 }]);
  const ended = await page.evaluate(async () => {
    const ahead = Array.from({ length: 4 }, () => outbox.submit("/orders", { json: {} }));
    await Promise.all(ahead.map((each) => next(each, "attempted")));
    const controller = new AbortController();
    const behind = outbox.submit("/orders", { json: { behind: true } }, { signal: controller.signal });
    await behind.stored;
    controller.abort("enough");
    const reason = await behind.outcome.catch((error) => error);
    const truth = await behind.cancel();
    await Promise.all(ahead.map(({ outcome }) => outcome));
    const last = await outbox.submit("/orders", { json: {} }).outcome;
    return { reason, truth, last: last.status };
  });
  assert.deepEqual(ended, { reason: "enough", truth: { cancelled: true, maybeDelivered: false }, last: "delivered" });
  assert.equal(server.orders().length, 5);
  assert.ok(server.orders().every(({ text }) => !text.includes("behind")));
});

test("a signal that is aborted already: nothing is stored or sent", async () => {
  const result = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} }, { signal: AbortSignal.abort("early") });
    const ended = await submission.outcome.catch((reason) => reason);
    await outbox.ready;
    return { ended, stored: await submission.stored.catch((reason) => reason) };
  });
  assert.deepEqual(result, { ended: "early", stored: "early" });
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
  assert.equal(posts().length, 0);
});

test("cancel tells the truth, and a finished answer wins", async () => {
  // (A 500 is the route's own failure: the gate of the origin stays open.)
  faults(server, "/orders", [{ type: "status", status: 500 }]);
  const waiting = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} });
    await new Promise((resolve) => submission.addEventListener("waiting", resolve, { once: true }));
    const truth = await submission.cancel("enough");
    return { truth, ended: await submission.outcome.catch((reason) => reason) };
  });
  assert.deepEqual(waiting, { truth: { cancelled: true, maybeDelivered: true }, ended: "enough" });
  const delivered = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} });
    await new Promise((resolve) => submission.addEventListener("settled", resolve, { once: true }));
    const truth = await submission.cancel();
    const ended = (await submission.outcome).status;
    // Shown, and its receipt gone: no other answer.
    await outbox.acknowledge(submission.key);
    return { truth, ended, late: await submission.cancel() };
  });
  assert.deepEqual(delivered, {
    truth: { cancelled: false, maybeDelivered: true },
    ended: "delivered",
    late: { cancelled: false, maybeDelivered: true },
  });
});

test("cancel in each state: whether it is given up, and whether it may have arrived", async () => {
  faults(server, "/busy", [{ type: "status", status: 425 }]);
  faults(server, "/hangs", [{ type: "hang" }]);
  faults(server, "/refuses", [{ type: "status", status: 422 }]);
  faults(server, "/parks", [{ type: "replayed", status: 500 }]);
  const truths = await page.evaluate(async () => {
    const cancel = async (url, type) => {
      const submission = outbox.submit(url, { json: {} });
      await next(submission, type);
      return [await submission.cancel(), (await submission.outcome.catch((error) => error)).name ?? "outcome"];
    };
    return {
      // A 425 proves that nothing was done.
      waiting: await cancel("/busy", "waiting"),
      sending: await cancel("/hangs", "attempted"),
      refused: await cancel("/refuses", "settled"),
      parked: await cancel("/parks", "settled"),
    };
  });
  assert.deepEqual(truths, {
    waiting: [{ cancelled: true, maybeDelivered: false }, "AbortError"],
    sending: [{ cancelled: true, maybeDelivered: true }, "AbortError"],
    refused: [{ cancelled: false, maybeDelivered: false }, "outcome"],
    parked: [{ cancelled: true, maybeDelivered: true }, "outcome"],
  });
});

test("detach ends the reporting; the intent goes on", async () => {
  const ended = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} });
    const settled = new Promise((resolve) => outbox.addEventListener("settled", ({ detail }) => resolve(detail.outcome.status)));
    submission.detach();
    await submission.outcome.catch(() => {});
    return { code: await submission.outcome.catch(({ code }) => code), settled: await Promise.race([settled, new Promise((resolve) => setTimeout(resolve, 3_000, "never"))]) };
  });
  assert.equal(ended.code, "detached");
  assert.equal(ended.settled, "delivered");
});

test("outbox.fetch: an abort detaches once it is stored, and the order arrives", async () => {
  faults(server, "/orders", [{ type: "slow", ms: 300 }]);
  const ended = await page.evaluate(async () => {
    const controller = new AbortController();
    const settled = new Promise((resolve) => outbox.addEventListener("settled", ({ detail }) => resolve(detail.outcome.status)));
    outbox.addEventListener("attempted", () => controller.abort("impatient"), { once: true });
    const reason = await outbox.fetch("/orders", { json: {}, signal: controller.signal }).catch((reason) => reason);
    return { reason, settled: await settled };
  });
  assert.deepEqual(ended, { reason: "impatient", settled: "delivered" });
  assert.equal(server.orders().length, 1);
});

test("outbox.fetch resolves with the browser's own response, also of a refusal", async () => {
  faults(server, "/orders", [{ type: "status", status: 422, body: "no tea left" }]);
  const answers = await page.evaluate(async () => {
    const refused = await outbox.fetch("/orders", { json: {} });
    const made = await outbox.fetch("/orders", { json: {} });
    return [refused.status, await refused.text(), made.status, made instanceof Response];
  });
  assert.deepEqual(answers, [422, "no tea left", 201, true]);
});
