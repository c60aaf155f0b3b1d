// submitWithRetry: the loop for code that owns its `send`. Nothing is stored; nothing stays.
import assert from "node:assert/strict";
import { beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { faults, gotoBare } from "./support.mjs";

const on = stage();
let server, page;
beforeEach(async () => {
  server = on.server;
  page = await on.context.newPage();
  await gotoBare(page, server);
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

test("submitWithRetry: a send that is none, or that brings no response, is told at once", async () => {
  const ends = await page.evaluate(() => {
    const sends = [5, async () => undefined, async () => "x", async () => ({ data: 1, status: 201, headers: {} })];
    return Promise.all(sends.map((send) => resubmit.submitWithRetry(send).catch(({ code, message }) => [code, message])));
  });
  const none = ["bad-request", "send: expected a promise of a Response"];
  assert.deepEqual(ends, [["bad-option", "send: expected a function"], none, none, none]);
});

test("submitWithRetry: aborted in every phase, by identity, and no listener, timer or request stays", async () => {
  faults(server, "/hangs", [{ type: "hang" }]);
  const results = await page.evaluate(async () => {
    const policy = { baseMs: 60_000, ceilingMs: 60_000, jitter: "none" };
    const reason = { any: "reason" };
    const results = {};
    const aborted = async (name, send, until) => {
      const controller = new AbortController();
      const { signal } = controller;
      let listeners = 0;
      for (const [method, change] of [["addEventListener", 1], ["removeEventListener", -1]]) {
        signal[method] = (...args) => ((listeners += change), EventTarget.prototype[method].apply(signal, args));
      }
      let ofAttempt;
      const ended = resubmit.submitWithRetry((attempt) => ((ofAttempt = attempt.signal), send(attempt)), null, signal, policy);
      await until();
      controller.abort(reason);
      const same = await ended.catch((error) => error === reason);
      await new Promise((resolve) => setTimeout(resolve));
      results[name] = [same, listeners, ofAttempt?.aborted ?? null];
    };
    let began;
    const hangs = () => (began(), new Promise(() => {}));
    await aborted("at once", hangs, async () => {});
    await aborted("sending", hangs, () => new Promise((resolve) => (began = resolve)));
    await aborted("waiting", async () => (setTimeout(began, 20), new Response(null, { status: 503 })), () => new Promise((resolve) => (began = resolve)));
    // The request of an attempt that is passed on ends with it.
    await aborted("fetching", ({ signal }) => (setTimeout(began, 100), fetch("/hangs", { method: "POST", signal })), () => new Promise((resolve) => (began = resolve)));
    const early = await resubmit.submitWithRetry(hangs, null, AbortSignal.abort(reason)).catch((error) => error === reason);
    return { ...results, early };
  });
  assert.deepEqual(results, {
    "at once": [true, 0, null],
    sending: [true, 0, true],
    // The attempt was over.
    waiting: [true, 0, false],
    fetching: [true, 0, true],
    early: true,
  });
});
