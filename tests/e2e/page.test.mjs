// What a page sees of its outbox: the list, the events, and what a person may do about an intent.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();

const policy = { ...quick, delaysMs: [20], jitter: "none", maxAttempts: 2 };
const waits = { policy: { ...quick, delaysMs: [60_000], jitter: "none" } };
const open = (options = { policy }) => openPage(on.context, on.server, options);
const busy = { type: "status", status: 503 };

/** Submits an order and resolves with how it ended. */
const submit = (page, options = {}) =>
  page.evaluate((options) => endOf((window.submission = outbox.submit("/orders", { json: { item: "tea" } }, options))), options);

/**
 * Submits so many orders, one after the other, and resolves with their keys once all of them wait. (A 500 is one route's own
 * failure: the gate of the origin stays open.)
 */
async function submitWaiting(page, count) {
  faults(on.server, "/orders", [{ type: "status", status: 500 }], "repeat-last");
  return page.evaluate(async (count) => {
    const keys = [];
    for (let i = 0; i < count; i++) {
      const submission = outbox.submit("/orders", { json: { i } }, { meta: { i } });
      await next(submission, "waiting");
      keys.push(submission.key);
    }
    return keys;
  }, count);
}

test("the list: newest first, frozen, the same objects while nothing changed, and the same after a reload", async () => {
  const page = await open(waits);
  const keys = await submitWaiting(page, 3);
  const seen = await page.evaluate(async (keys) => {
    const calls = [];
    const first = await listed((all) => all.length === 3);
    const stop = outbox.intents.subscribe((intents) => calls.push(intents));
    const same = outbox.intents.current === first && calls[0] === first;
    await outbox.discard(keys[1]);
    const second = await listed((all) => all.length === 2);
    stop();
    const before = calls.length;
    await outbox.discard(keys[0]);
    await listed((all) => all.length === 1);
    return {
      order: first.map(({ key }) => key),
      frozen: Object.isFrozen(first) && first.every((intent) => Object.isFrozen(intent)),
      same,
      kept: second[0] === first[0] && second[1] === first[2],
      last: calls.at(-1) === second,
      stopped: calls.length === before,
      intent: first[0],
    };
  }, keys);
  const { intent, ...rest } = seen;
  assert.deepEqual(rest, { order: keys.toReversed(), frozen: true, same: true, kept: true, last: true, stopped: true });
  const { createdAt, nextAttemptAt, evidence, ...fields } = intent;
  assert.deepEqual(fields, {
    key: keys[2],
    state: "pending",
    reason: "server-busy",
    attempt: 1,
    maxAttempts: 8,
    method: "POST",
    url: on.server.url + "/orders",
    meta: { i: 2 },
    formKey: null,
    lane: null,
    durable: true,
    maybeDelivered: true,
    receipt: null,
  });
  assert.equal(evidence.status, 500);
  assert.ok(createdAt <= evidence.at && nextAttemptAt - evidence.at === 60_000);
  const more = await submitWaiting(page, 2);
  const now = await page.evaluate(async () => JSON.stringify(await listed((all) => all.length === 3)));
  await gotoPage(page, on.server, waits);
  const then = await page.evaluate(async () => JSON.stringify(await listed((all) => all.length === 3)));
  assert.equal(then, now);
  assert.deepEqual(JSON.parse(then).map(({ key }) => key), [more[1], more[0], keys[2]]);
});

test("the events of a submission and of its outbox, in order, with what a status line needs", async () => {
  const page = await open();
  faults(on.server, "/orders", [busy]);
  const told = await page.evaluate(async () => {
    const told = { outbox: [], submission: [] };
    const submission = outbox.submit("/orders", { json: {} });
    for (const [name, target] of Object.entries({ outbox, submission })) {
      for (const type of ["stored", "attempted", "waiting", "settled"]) {
        target.addEventListener(type, ({ detail: { key, intent, stored, outcome } }) => {
          told[name].push([type, key === submission.key, intent.state, intent.attempt, intent.nextAttemptAt !== null, stored?.durable ?? outcome?.status ?? null]);
        });
      }
    }
    await submission.outcome;
    return told;
  });
  assert.deepEqual(told.submission, [
    // While it is being sent there is nothing to count down to.
    ["stored", true, "sending", 1, false, true],
    ["attempted", true, "sending", 1, false, null],
    ["waiting", true, "pending", 1, true, null],
    ["attempted", true, "sending", 2, false, null],
    ["settled", true, "delivered", 2, false, "delivered"],
  ]);
  assert.deepEqual(told.outbox, told.submission);
});

test("who follows later is told what is known, and nobody is told twice", async () => {
  const page = await open(waits);
  faults(on.server, "/orders", [busy, { type: "status", status: 422 }]);
  const told = await page.evaluate(async () => {
    const told = { outbox: [], first: [], later: [] };
    const hear = (name, target) => {
      for (const type of ["stored", "waiting", "settled"]) target.addEventListener(type, () => told[name].push(type));
    };
    hear("outbox", outbox);
    const first = outbox.submit("/orders", { json: {} });
    hear("first", first);
    await next(first, "waiting");
    const later = outbox.submission(first.key);
    hear("later", later);
    await later.stored;
    await outbox.retry(first.key);
    await later.outcome;
    const ended = outbox.submission(first.key);
    return { ...told, ended: [(await ended.stored).durable, (await ended.outcome).status] };
  });
  assert.deepEqual(told, {
    outbox: ["stored", "waiting", "waiting", "settled"],
    first: ["stored", "waiting", "waiting", "settled"],
    later: ["stored", "waiting", "settled"],
    ended: [true, "refused"],
  });
});

test("a key that is submitted again as soon as it was delivered is a new intent, and one that is given up ends whole", async () => {
  const page = await open(waits);
  faults(on.server, "/busy", [busy], "repeat-last");
  const ends = await page.evaluate(async () => {
    const submit = () => outbox.submit("/orders", { json: 7 }, { key: "again" });
    await submit().outcome;
    const ends = [];
    for (const task of [() => {}, () => new Promise((resolve) => setTimeout(resolve))]) {
      await task();
      const submission = submit();
      ends.push([(await submission.stored).durable, (await submission.outcome).status]);
    }
    const parked = outbox.submit("/busy", { json: 8 }, { key: "given-up" });
    await next(parked, "waiting");
    const discarded = outbox.discard("given-up");
    const late = outbox.submit("/busy", { json: 8 }, { key: "given-up" });
    await discarded;
    return [...ends, [typeof (await late.stored).durable, (await late.outcome).status]];
  });
  assert.deepEqual(ends, [[true, "delivered"], [true, "delivered"], ["boolean", "cancelled"]]);
  assert.equal(on.server.orders().length, 1);
});

test("the calls that go out as values work as values", async () => {
  const page = await open();
  const seen = await page.evaluate(async () => {
    const { fetch, intents: { subscribe } } = outbox;
    let calls = 0;
    const stop = subscribe(() => calls++);
    const { status } = await fetch("/orders", { method: "POST", body: "x" });
    stop();
    return [status, calls > 0];
  });
  assert.deepEqual(seen, [201, true]);
});

test("a listener that throws takes nothing away from the others, or from the submission", async () => {
  const page = await open();
  const heard = await page.evaluate(async () => {
    const heard = [];
    const thrower = () => {
      throw new Error("a listener's own");
    };
    for (const type of ["stored", "attempted", "settled"]) outbox.addEventListener(type, thrower);
    outbox.intents.subscribe((intents) => intents.length > 0 && thrower());
    outbox.intents.subscribe((intents) => intents.length > 0 && heard.push("listed"));
    outbox.addEventListener("settled", () => heard.push("settled"));
    await outbox.submit("/orders", { json: {} }).outcome;
    await new Promise((resolve) => setTimeout(resolve));
    return [heard.includes("listed"), heard.includes("settled")];
  });
  assert.deepEqual(heard, [true, true]);
  assert.equal(on.server.orders().length, 1);
  assert.ok(on.uncaught.length >= 4, "they are reported");
  assert.ok(on.uncaught.splice(0).every((error) => error.includes("a listener's own")));
});

test("retry: the key stays while it may decide the outcome, with a full new budget", async () => {
  const page = await open();
  faults(on.server, "/orders", [busy, busy]);
  const parked = await submit(page);
  assert.deepEqual([parked.status, parked.reason, parked.attempts], ["parked", "attempts-exhausted", 2]);
  faults(on.server, "/orders", [busy]);
  // In another page life.
  await gotoPage(page, on.server, { policy });
  const again = await page.evaluate(async (key) => {
    const submission = await outbox.retry(key);
    const [{ maxAttempts }] = await listed((all) => all.length === 1);
    return [maxAttempts, submission.key, submission.newKey ?? null, (await endOf(submission)).status, (await submission.stored).durable];
  }, parked.key);
  assert.deepEqual(again, [4, parked.key, null, "delivered", true]);
  assert.deepEqual(on.server.ledger(), [{ key: parked.key, arrivals: 4, orders: 1 }]);
});

test("retry: a new key when the server refused, and only with mayRepeat when it may be done twice", async () => {
  const page = await open();
  faults(on.server, "/orders", [{ type: "status", status: 422 }]);
  const refused = await submit(page);
  const renewed = await page.evaluate(async (key) => {
    const submission = await outbox.retry(key);
    return { ...(await endOf(submission)), newKey: submission.newKey };
  }, refused.key);
  assert.equal(renewed.status, "delivered");
  assert.equal(renewed.newKey, renewed.key);
  assert.notEqual(renewed.key, refused.key);
  assert.deepEqual(on.server.ledger(), [{ key: refused.key, arrivals: 1, orders: 0 }, { key: renewed.key, arrivals: 1, orders: 1 }]);
  assert.equal(new Set(on.posts().map(({ bodySha256 }) => bodySha256)).size, 1);

  on.server.reset();
  faults(on.server, "/orders", [{ type: "replayed", status: 500 }]);
  const failed = await submit(page);
  assert.equal(failed.reason, "replayed-failure");
  const [denied, allowed] = await page.evaluate(async (key) => {
    const denied = await outbox.retry(key).catch(({ code }) => code);
    return [denied, await endOf(await outbox.retry(key, { mayRepeat: true }))];
  }, failed.key);
  assert.equal(denied, "needs-may-repeat");
  assert.equal(allowed.status, "delivered");
  assert.notEqual(allowed.key, failed.key);
});

test("retryAll: what is parked goes again, but not what might be done twice", async () => {
  const page = await open();
  faults(on.server, "/orders", [busy, busy], "repeat-last");
  const busies = [await submit(page), await submit(page, { durable: false })];
  faults(on.server, "/orders", [{ type: "status", status: 422 }]);
  const refused = await submit(page);
  faults(on.server, "/orders", [{ type: "replayed", status: 500 }]);
  const replayed = await submit(page);
  on.server.faults.clear();
  assert.deepEqual([...busies, refused, replayed].map(({ reason }) => reason), ["attempts-exhausted", "attempts-exhausted", "invalid", "replayed-failure"]);
  const retried = await page.evaluate(async () => {
    const all = await outbox.retryAll();
    return Promise.all(all.map(async (submission) => [submission.key, (await submission.outcome).status]));
  });
  // Oldest first, of what is on the disk.
  assert.deepEqual(new Map(retried), new Map(busies.map(({ key }) => [key, "delivered"])));
  const rest = await page.evaluate(() => listed((all) => all.length > 0));
  assert.deepEqual(rest.filter(({ state }) => state !== "delivered").map(({ key, state }) => [key, state]), [[replayed.key, "parked"], [refused.key, "refused"]]);
  assert.deepEqual(await page.evaluate(async () => (await outbox.retryAll()).length), 0);
  assert.ok(on.server.ledger().every(({ key, orders }) => orders === (busies.some((busy) => busy.key === key) ? 1 : 0)));
});

test("retry under \"park\" asks for mayRepeat, and keeps the key", async () => {
  const page = await open({ policy, onMaybeDelivered: "park" });
  faults(on.server, "/orders-plain", [{ type: "commit-status", status: 503 }]);
  const [parked, denied, again] = await page.evaluate(async () => {
    const parked = await endOf(outbox.submit("/orders-plain", { json: {} }));
    const denied = await outbox.retry(parked.key).catch(({ code }) => code);
    return [parked, denied, await endOf(await outbox.retry(parked.key, { mayRepeat: true }))];
  });
  assert.deepEqual([parked.reason, denied, again.status, again.key], ["outcome-unknown", "needs-may-repeat", "delivered", parked.key]);
  // The person was told that it may be done twice.
  assert.equal(on.server.orders().length, 2);
});

test("calls about what is not there, or over, say so", async () => {
  const page = await open();
  const codes = await page.evaluate(async () => {
    const code = (promise) => promise.then(() => "fine", ({ code }) => code);
    const delivered = await outbox.submit("/orders", { json: {} }, { key: "once" }).stored.then(() => "once");
    await listed((all) => all.some(({ state }) => state === "delivered"));
    return {
      retry: await code(outbox.retry("nobody")),
      discard: await code(outbox.discard("nobody")),
      acknowledge: await code(outbox.acknowledge("nobody")),
      submission: await code(outbox.submission("nobody").outcome),
      malformed: await code(outbox.submission("not a key").outcome),
      delivered: await code(outbox.retry(delivered)),
    };
  });
  assert.deepEqual(codes, {
    retry: "unknown-key",
    discard: "unknown-key",
    acknowledge: "fine",
    submission: "unknown-key",
    malformed: "unknown-key",
    delivered: "bad-state",
  });
});

test("discard: the outcome says so, and row and body are gone", async () => {
  const page = await open(waits);
  faults(on.server, "/orders", [busy], "repeat-last");
  const ended = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: { item: "tea" } });
    await next(submission, "waiting");
    await outbox.discard(submission.key);
    return [await endOf(submission), (await listed(() => true)).length];
  });
  assert.deepEqual([ended[0].status, ended[0].reason, ended[0].maybeDelivered, ended[1]], ["cancelled", "discarded", true, 0]);
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
  await gotoPage(page, on.server, waits);
  assert.equal(await page.evaluate(async () => (await outbox.ready, (await listed(() => true)).length)), 0);
  assert.equal(on.posts().length, 1);
});

test("a receipt is kept until somebody has seen how it ended, and goes with that", async () => {
  const page = await open();
  // Nobody looks at the outcome.
  const key = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: { item: "tea" } });
    await listed(([intent]) => intent?.state === "delivered");
    return submission.key;
  });
  const kept = await dump(page);
  assert.deepEqual([kept.intents.length, kept.bodies.length], [1, 0]);
  await gotoPage(page, on.server, { policy });
  const ended = await page.evaluate((key) => endOf(outbox.submission(key)), key);
  assert.deepEqual([ended.status, ended.attempts, ended.response], ["delivered", 1, undefined]);
  assert.equal(ended.receipt.status, 201);
  assert.equal(ended.receipt.location, `/orders/${on.server.orders()[0].id}`);
  assert.match(ended.receipt.excerpt, /"item\\":\\"tea\\"/);
  await page.evaluate(() => listed((all) => all.length === 0));
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
  assert.equal(await page.evaluate((key) => outbox.submission(key).outcome.catch(({ code }) => code), key), "unknown-key");
  assert.equal(on.posts().length, 1);
});

test("acknowledge deletes a receipt, and never what has not ended", async () => {
  const page = await open(waits);
  const [waiting] = await submitWaiting(page, 1);
  on.server.faults.clear();
  await page.evaluate(async () => {
    outbox.submit("/orders", { json: {} }, { key: "done" });
    await listed((all) => all.some(({ state }) => state === "delivered"));
  });
  await page.evaluate(async (waiting) => {
    await outbox.acknowledge("done");
    await outbox.acknowledge("done");
    await outbox.acknowledge(waiting);
  }, waiting);
  const { intents } = await dump(page);
  assert.deepEqual(intents.map(({ key, state }) => [key, state]), [[waiting, "pending"]]);
});
