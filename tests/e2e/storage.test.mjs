// What is on the disk, when, and that nothing is lost or done twice when the disk, the page or the browser gives way.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoBare, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();

const policy = { ...quick, delaysMs: [20], jitter: "none" };
const open = (options = { policy }) => openPage(on.context, on.server, options);
const busy = { type: "status", status: 503 };
const brief = (intents) => intents.map(({ key, state, reason }) => [key, state, reason]);
const settled = async (page) => brief(await page.evaluate(() => allSettled()));
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Loads the test page after `spy` was installed in it. */
async function openSpied(spy, options = { policy }) {
  const page = await on.context.newPage();
  await page.addInitScript(spy);
  await gotoPage(page, on.server, options);
  return page;
}

test("cases 62, 71, 73: intent and verdict are strict and committed at once, and complete before the first byte", async () => {
  const page = await openSpied(() => {
    // Notes what happens; calls through.
    window.noted = [];
    window.listened = [];
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (stores, mode, options) {
      const made = transaction.call(this, stores, mode, options);
      if (mode !== "readwrite") return made;
      const name = `${options?.durability ?? "default"} write`;
      const { commit } = made;
      made.commit = function () {
        noted.push(`${name} committed`);
        return commit.call(this);
      };
      made.addEventListener("complete", () => noted.push(`${name} complete`));
      return made;
    };
    const { fetch } = window;
    window.fetch = (...args) => {
      if (args[1]?.method === "POST") noted.push("fetch");
      return fetch(...args);
    };
    const { addEventListener } = EventTarget.prototype;
    EventTarget.prototype.addEventListener = function (type, ...rest) {
      listened.push(type);
      return addEventListener.call(this, type, ...rest);
    };
  });
  const noted = await page.evaluate(async () => {
    await outbox.ready;
    await new Promise((resolve) => setTimeout(resolve, 200));
    noted.length = 0;
    const submission = outbox.submit("/orders", { json: { item: "tea" } });
    submission.addEventListener("stored", () => noted.push("stored"));
    await listed(([intent]) => intent?.state === "delivered");
    return noted;
  });
  assert.deepEqual(noted, [
    "strict write committed",
    "strict write complete",
    // Sent first, told then: no listener holds it up.
    "fetch",
    "stored",
    "strict write committed",
    "strict write complete",
  ]);
  const listened = await page.evaluate(() => listened);
  assert.ok(!listened.includes("unload") && !listened.includes("beforeunload"), listened.join());
});

test("case 53: a full disk: not durable is said, the order goes all the same, and durability returns", async () => {
  const page = await on.context.newPage();
  const session = await on.context.newCDPSession(page);
  const quota = (quotaSize) => session.send("Storage.overrideQuotaForOrigin", { origin: on.server.url, quotaSize });
  // Before the database is there: the browser remembers for a while how much it may grow.
  await quota(1_000_000);
  await gotoPage(page, on.server, { policy });
  const ended = await page.evaluate(async () => {
    const degraded = [];
    outbox.addEventListener("degraded", ({ detail }) => degraded.push(detail.reason));
    // Random, since zeros are compressed and fit.
    const body = new Uint8Array(3_000_000);
    for (let at = 0; at < body.length; at += 60_000) crypto.getRandomValues(body.subarray(at, at + 60_000));
    const submission = outbox.submit("/orders", { body });
    return { stored: await submission.stored, status: (await submission.outcome).status, degraded };
  });
  assert.deepEqual(ended, { stored: { durable: false, reason: "storage-failed" }, status: "delivered", degraded: ["storage-failed"] });
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
  await quota(undefined);
  assert.deepEqual(await page.evaluate(() => outbox.submit("/orders", { json: {} }).stored), { durable: true });
  await settled(page);
  assert.deepEqual(on.server.ledger().map(({ arrivals, orders }) => [arrivals, orders]), [[1, 1], [1, 1]]);
});

test("case 54: the page dies in the middle of an attempt: the row stays, and the next page goes on when the lease is over", async () => {
  const page = await open({ policy: { ...policy, attemptTimeoutMs: 1_000 } });
  faults(on.server, "/orders", [{ type: "hang" }]);
  const key = await page.evaluate(() => (window.submission = outbox.submit("/orders", { json: {} })).key);
  await on.arrived();
  await page.close();
  const next = await open();
  assert.deepEqual(await next.evaluate(async () => (await listed((all) => all.length > 0)).map(({ key, state, attempt }) => [key, state, attempt])), [[key, "sending", 1]]);
  assert.deepEqual(await settled(next), [[key, "delivered", null]]);
  assert.deepEqual(on.server.ledger(), [{ key, arrivals: 2, orders: 1 }]);
  // The timeout, and the grace twice, from the claim on, which is a little before the arrival.
  const [first, second] = on.posts().map(({ time }) => Date.parse(time));
  assert.ok(second - first >= 4_800, `${second - first} ms`);
});

test("case 55: answered, and the page dies before the verdict is on the disk: one more arrival, the same key, one order", async () => {
  const page = await open({ policy: { ...policy, attemptTimeoutMs: 500 } });
  const other = await on.context.newPage();
  await gotoBare(other, on.server);
  faults(on.server, "/orders", [{ type: "process-slow", ms: 300 }]);
  const key = await page.evaluate(() => (window.submission = outbox.submit("/orders", { json: {} })).key);
  await on.arrived();
  await other.evaluate(() => holdStores());
  await on.server.log.until((entries) => entries.some(({ answered }) => answered === 201));
  await page.close();
  await other.evaluate(() => void letGo());
  const next = await open();
  assert.deepEqual(await settled(next), [[key, "delivered", null]]);
  for (let i = 0; i < 2; i++) {
    await gotoPage(next, on.server, { policy });
    assert.deepEqual(await settled(next), [[key, "delivered", null]]);
  }
  assert.deepEqual(on.server.ledger(), [{ key, arrivals: 2, orders: 1 }]);
  assert.equal(on.posts().at(-1).replayed, true);
});

test("case 57: the connection closed behind the module's back: opened again, and durable all the same", async () => {
  const page = await openSpied(() => {
    window.connections = [];
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function (...args) {
      const request = open.apply(this, args);
      request.addEventListener("success", () => connections.push(request.result));
      return request;
    };
  });
  const ended = await page.evaluate(async () => {
    await outbox.ready;
    connections[0].close();
    const submission = outbox.submit("/orders", { json: {} });
    return { stored: await submission.stored, status: (await submission.outcome).status, connections: connections.length };
  });
  assert.deepEqual(ended, { stored: { durable: true }, status: "delivered", connections: 2 });
  assert.deepEqual(on.server.ledger().map(({ arrivals, orders }) => [arrivals, orders]), [[1, 1]]);
});

test("a store that does not answer: sent from memory, said so, nothing on the disk of it, and what waits there goes on later", async () => {
  const page = await on.context.newPage();
  await page.clock.install();
  await gotoPage(page, on.server, { policy: { ...policy, delaysMs: [5_000] } });
  faults(on.server, "/orders", [busy]);
  const waiting = await page.evaluate(() => next(outbox.submit("/orders", { json: { n: 1 } }), "waiting"));
  const other = await on.context.newPage();
  await gotoBare(other, on.server);
  await other.evaluate(() => holdStores());
  // Due, and asked for in vain.
  await page.clock.fastForward(6_000);
  await page.evaluate(() => {
    window.degraded = [];
    outbox.addEventListener("degraded", ({ detail }) => degraded.push(detail.reason));
    window.submission = outbox.submit("/orders", { json: { n: 2 } });
    window.unanswered = outbox.submission("anybody").outcome.catch(({ code }) => code);
    // Until the request is read and the write is on its way.
    return new Promise((resolve) => setTimeout(resolve, 50));
  });
  await page.clock.fastForward(10_000);
  const told = await page.evaluate(async () => ({
    stored: await submission.stored,
    status: (await submission.outcome).status,
    unanswered: await unanswered,
    degraded,
  }));
  assert.deepEqual(told, { stored: { durable: false, reason: "storage-silent" }, status: "delivered", unanswered: "storage-failed", degraded: ["storage-silent"] });
  await other.evaluate(() => void letGo());
  assert.deepEqual(await page.evaluate(() => outbox.submit("/orders", { json: { n: 3 } }).stored), { durable: true });
  await page.clock.fastForward(30_000);
  await page.evaluate((key) => listed((all) => all.some((intent) => intent.key === key && intent.state === "delivered")), waiting.key);
  assert.ok((await dump(page)).intents.every(({ state }) => state === "delivered"));
  assert.equal(on.server.orders().length, 3);
  assert.ok(on.server.ledger().every(({ orders }) => orders === 1));
});

test("cases 59, 60: the bytes of a file are those of the submit, whatever becomes of the file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "resubmit-file-"));
  const file = join(folder, "photo.bin");
  await writeFile(file, "the bytes that were chosen");
  const page = await open({ policy: { ...policy, delaysMs: [400] } });
  faults(on.server, "/orders", [busy]);
  await page.evaluate(() => (document.body.innerHTML = "<form><input type=file name=photo></form>"));
  await page.setInputFiles("input", file);
  await page.evaluate(() => outbox.submit("/orders", { body: new FormData(document.querySelector("form")) }).stored);
  await writeFile(file, "something else, and longer than it was");
  await gotoPage(page, on.server, { policy });
  assert.deepEqual((await settled(page)).map(([, state]) => state), ["delivered"]);
  const bodies = on.posts().map(({ seq }) => on.server.log.body(seq).toString());
  assert.equal(bodies.length, 2);
  assert.equal(bodies[0], bodies[1]);
  assert.match(bodies[1], /filename="photo\.bin"[\s\S]*the bytes that were chosen/);
  await page.evaluate(() => (document.body.innerHTML = "<form><input type=file name=photo></form>"));
  await page.setInputFiles("input", file);
  await rm(folder, { recursive: true });
  // It cannot be read any more: said at once, and nothing of it is stored or sent.
  const error = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { body: new FormData(document.querySelector("form")) });
    const stored = await submission.stored.catch(({ code, message }) => [code, message]);
    return [...stored, (await endOf(submission)).error];
  });
  assert.deepEqual([error[0], error[2]], ["bad-request", "bad-request"]);
  assert.match(error[1], /^body: /);
  assert.equal(on.posts().length, 2);
});

test("case 120: 20 MB, several at once, and the same bytes after a reload", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [60_000] } });
  faults(on.server, "/orders", [busy], "repeat-last");
  const { hashes, keys } = await page.evaluate(async () => {
    const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const bodies = [20_000_000, 9_000_000].map((length) => {
      const body = new Uint8Array(length);
      for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(body.subarray(at, at + 65_536));
      return body;
    });
    // The second with a key of the application's, whose bytes the module reads as well.
    const submissions = bodies.map((body, at) => outbox.submit("/orders", { body }, at ? { key: "mine" } : {}));
    const hashes = await Promise.all(bodies.map(async (body) => hex(await crypto.subtle.digest("SHA-256", body))));
    await listed((all) => all.length === 2 && all.every(({ state }) => state === "pending"));
    return { hashes, keys: submissions.map(({ key }) => key) };
  });
  await gotoPage(page, on.server, { policy });
  on.server.faults.clear();
  await page.evaluate((keys) => Promise.all(keys.map((key) => outbox.retry(key))), keys);
  assert.deepEqual((await settled(page)).map(([, state]) => state), ["delivered", "delivered"]);
  const seen = on.posts().map(({ bodySha256 }) => bodySha256);
  assert.deepEqual(seen.toSorted(), [...hashes, ...hashes].sort());
  assert.equal(on.server.orders().length, 2);
});

test("case 76: past its age it is parked, readable after a reload, and sent when a person says so", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [300], maxAgeMs: 200 } });
  faults(on.server, "/orders", [busy]);
  const ended = await page.evaluate(() => endOf(outbox.submit("/orders", { json: {} })));
  assert.deepEqual([ended.status, ended.reason, ended.attempts], ["parked", "max-age", 1]);
  await gotoPage(page, on.server, { policy });
  const [intent] = await page.evaluate(() => allSettled());
  assert.deepEqual([intent.key, intent.state, intent.reason, intent.evidence.status, intent.nextAttemptAt], [ended.key, "parked", "max-age", 503, null]);
  assert.equal((await page.evaluate(async (key) => endOf(await outbox.retry(key)), ended.key)).status, "delivered");
  assert.deepEqual(on.server.ledger(), [{ key: ended.key, arrivals: 2, orders: 1 }]);
});

test("case 8: a key that the server may have forgotten is not sent again, unless it was never sent", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [300], keyTtlMs: 200 } });
  faults(on.server, "/orders", [{ type: "commit-status", status: 503 }]);
  const ended = await page.evaluate(() => endOf(outbox.submit("/orders", { json: {} })));
  assert.deepEqual([ended.status, ended.reason, ended.attempts, ended.maybeDelivered], ["parked", "key-expired", 1, true]);
  // It is parked since no attempt would be in time; the key itself has a moment left.
  await page.waitForFunction((from) => Date.now() > from + 250, await page.evaluate(() => Date.now()));
  const denied = await page.evaluate((key) => outbox.retry(key).catch(({ code, message }) => [code, message]), ended.key);
  assert.equal(denied[0], "needs-may-repeat");
  assert.match(denied[1], /mayRepeat/);
  // A 429 proves that nothing was done: that one may still go.
  faults(on.server, "/orders", [{ type: "status", status: 429 }]);
  const late = await page.evaluate(() => endOf(outbox.submit("/orders", { json: {} })));
  assert.deepEqual([late.status, late.attempts], ["delivered", 2]);
  assert.equal(on.server.orders().length, 2);
});

test("a restart keeps the schedule: nothing is tried early because the page is new", async () => {
  const page = await open({ policy: { ...policy, delaysMs: [3_000] } });
  faults(on.server, "/orders", [busy]);
  const intent = await page.evaluate(() => next(outbox.submit("/orders", { json: {} }), "waiting"));
  for (let i = 0; i < 3; i++) await gotoPage(page, on.server, { policy });
  const again = await page.evaluate(async () => (await listed((all) => all.length > 0))[0]);
  assert.deepEqual([again.nextAttemptAt, again.createdAt, again.attempt], [intent.nextAttemptAt, intent.createdAt, 1]);
  assert.deepEqual(await settled(page), [[intent.key, "delivered", null]]);
  const [first, second] = on.posts().map(({ time }) => Date.parse(time));
  assert.ok(second - first >= 2_990, `${second - first} ms`);
  assert.equal(on.posts().length, 2);
  assert.equal(sha256(on.server.log.body(on.posts()[0].seq)), on.posts()[1].bodySha256);
});
