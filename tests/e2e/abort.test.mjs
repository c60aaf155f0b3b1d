// Ending it: at once, by identity, in every phase, leaving nothing behind.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { faults, newProfile, openPage, quick, startServer } from "./support.mjs";

let profile, context, server, page;

before(async () => {
  profile = await newProfile();
  context = await profile.launch();
});
after(async () => {
  await context.close();
  await profile.remove();
});
beforeEach(async () => {
  server = await startServer();
  page = await openPage(context, server, { policy: { ...quick, delaysMs: [60_000], jitter: "none", attemptTimeoutMs: 60_000 } });
});
afterEach(async () => {
  await page.close();
  await server.close();
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

test("a signal that is aborted already: nothing is stored or sent", async () => {
  const result = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} }, { signal: AbortSignal.abort("early") });
    const ended = await submission.outcome.catch((reason) => reason);
    await outbox.ready;
    return { ended, stored: await submission.stored.catch((reason) => reason), rows: (await indexedDB.databases()).length };
  });
  assert.equal(result.ended, "early");
  assert.equal(result.stored, "early");
  assert.equal(posts().length, 0);
});

test("cancel tells the truth, and a finished answer wins", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }]);
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
    return { truth: await submission.cancel().catch(({ code }) => code), ended: (await submission.outcome).status };
  });
  assert.equal(delivered.ended, "delivered");
  // The receipt is there still, or was shown and is gone.
  assert.ok(delivered.truth === "unknown-key" || delivered.truth.cancelled === false, JSON.stringify(delivered.truth));
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

test("submitWithRetry: one key, its outcomes, its abort, and nothing left", async () => {
  const results = await page.evaluate(async () => {
    const { submitWithRetry } = resubmit;
    const policy = { baseMs: 5, ceilingMs: 10 };
    const keys = new Set();
    const statuses = [503, 0, 201];
    const send = async ({ key, attempt, signal }) => {
      keys.add(key);
      if (!(signal instanceof AbortSignal)) throw new Error("no signal");
      const status = statuses[attempt - 1];
      if (!status) throw new TypeError("any");
      return new Response(null, { status });
    };
    const delivered = await submitWithRetry(send, null, null, policy);
    const parked = await submitWithRetry(async () => new Response(null, { status: 500 }), "my-own", null, policy);
    const refused = await submitWithRetry(async () => new Response("no", { status: 422 }), null, null, policy);
    const timedOut = await submitWithRetry(() => new Promise(() => {}), null, null, { ...policy, attemptTimeoutMs: 50, maxAttempts: 2 });
    let sends = 0;
    const controller = new AbortController();
    const reason = { any: "reason" };
    const aborted = submitWithRetry(async () => (sends++, new Response(null, { status: 503 })), null, controller.signal, { baseMs: 200, ceilingMs: 200, jitter: "none" });
    while (sends === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    controller.abort(reason);
    const same = await aborted.catch((error) => error === reason);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const wrong = await submitWithRetry(send, "not a key!", null, policy).catch(({ code, message }) => [code, message]);
    const unknown = await submitWithRetry(send, null, null, { maxAttempt: 3 }).catch(({ code, message }) => [code, message]);
    return {
      keys: keys.size,
      delivered: [delivered.status, delivered.attempts],
      parked: [parked.status, parked.reason, parked.key, parked.attempts],
      refused: [refused.status, refused.reason, await refused.response.text()],
      timedOut: [timedOut.status, timedOut.reason, timedOut.attempts],
      same,
      sends,
      wrong,
      unknown,
    };
  });
  assert.deepEqual(results, {
    keys: 1,
    delivered: ["delivered", 3],
    parked: ["parked", "attempts-exhausted", "my-own", 4],
    refused: ["refused", "invalid", "no"],
    timedOut: ["parked", "attempts-exhausted", 2],
    same: true,
    sends: 1,
    wrong: ["bad-option", "options.key: expected 1 to 255 characters of A-Z, a-z, 0-9, - and _"],
    unknown: ["bad-option", "policy.maxAttempt: unknown here"],
  });
});
