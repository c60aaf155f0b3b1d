// Attempts that end without an answer that script may see: other origins, policies of the page, extensions, networks that come
// and go. All of them are one TypeError to a page; what the server has seen differs.
import assert from "node:assert/strict";
import { afterEach, beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { faults, gotoPage, openPage, quick, startServer } from "./support.mjs";

const on = stage();
/** A server of another origin. */
let other;
beforeEach(async () => {
  other = await startServer();
});
afterEach(() => other.close());

const policy = { ...quick, delaysMs: [20], jitter: "none", maxAttempts: 3 };
const open = (more = {}) => openPage(on.context, on.server, { policy, ...more });
const posts = (server) => server.log.entries().filter(({ method }) => method === "POST");
const preflights = (server) => server.log.entries().filter(({ method }) => method === "OPTIONS");

const submit = (page, url, init = { json: { item: "tea" } }, options = {}) =>
  page.evaluate(({ url, init, options }) => endOf((window.submission = outbox.submit(url, init, options))), { url, init, options });

/** Submits and resolves with the intent in its first wait. */
const waiting = (page, url, options = {}) =>
  page.evaluate(({ url, options }) => next((window.submission = outbox.submit(url, { json: { item: "tea" } }, options)), "waiting"), { url, options });

test("another origin, committed, and a gateway's 502 without CORS headers: not known, so the same key again", async () => {
  const page = await open();
  faults(other, "/orders", [{ type: "commit-status", status: 502, cors: false }]);
  const first = await waiting(page, other.url + "/orders");
  assert.deepEqual([first.reason, first.maybeDelivered, first.evidence.status], ["network-failure", true, undefined]);
  const ended = await page.evaluate(() => endOf(submission));
  assert.deepEqual([ended.status, ended.attempts], ["delivered", 2]);
  assert.deepEqual(other.ledger(), [{ key: first.key, arrivals: 2, orders: 1 }]);
});

test("case 14: a preflight that refuses the key: nothing arrives, the key is never dropped, and the page is given a hint", async () => {
  const page = await open();
  other.cors.settings.allowKey = false;
  // Something else succeeds, so the network is there.
  assert.equal((await submit(page, "/orders")).status, "delivered");
  const ended = await submit(page, other.url + "/orders");
  assert.deepEqual([ended.status, ended.reason, ended.attempts], ["parked", "attempts-exhausted", 3]);
  assert.equal(ended.evidence.hint, "blocked-or-cors");
  assert.equal(posts(other).length, 0);
  assert.ok(preflights(other).length >= 1);
  // The way out: the key in the body makes it a simple request.
  const simple = await page.evaluate((url) => {
    const own = resubmit.createOutbox({ name: "simple", keyField: "idempotency_key" });
    return endOf(own.submit(url, { body: new URLSearchParams({ item: "tea" }) }));
  }, other.url + "/orders");
  const asked = preflights(other).length;
  assert.equal(simple.status, "delivered");
  assert.deepEqual(other.ledger(), [{ key: simple.key, arrivals: 1, orders: 1 }]);
  assert.equal(preflights(other).length, asked);
});

test("the page's connect-src forbids the URL: nothing is sent, said at once, and never tried again", async () => {
  const strict = await startServer({ headers: { "content-security-policy": "connect-src 'self'" } });
  const page = await openPage(on.context, strict, { policy });
  const ended = await submit(page, other.url + "/orders");
  assert.deepEqual([ended.status, ended.reason, ended.attempts, ended.maybeDelivered], ["parked", "blocked-by-csp", 1, true]);
  assert.deepEqual(other.log.entries(), []);
  // The page's own origin goes on as before.
  assert.equal((await submit(page, "/orders")).status, "delivered");
  await strict.close();
  // A policy that only reports forbids nothing.
  const lenient = await startServer({ headers: { "content-security-policy-report-only": "connect-src 'self'" } });
  faults(other, "/orders", [{ type: "drop" }]);
  const reporting = await openPage(on.context, lenient, { policy });
  assert.equal((await submit(reporting, other.url + "/orders")).status, "delivered");
  await lenient.close();
});

test("the page's connect-src forbids where the answer redirects to: the order was made, and nobody says that it was not", async () => {
  const strict = await startServer({ headers: { "content-security-policy": "connect-src 'self'" } });
  const page = await openPage(on.context, strict, { policy });
  faults(strict, "/orders", [{ type: "commit-redirect", location: other.url + "/problems" }]);
  const ended = await submit(page, "/orders");
  assert.equal(strict.orders().length, 1);
  // The browser reports this one under the URL that was asked, too.
  assert.deepEqual([ended.status, ended.reason, ended.maybeDelivered], ["parked", "blocked-by-csp", true]);
  assert.deepEqual(strict.ledger(), [{ key: ended.key, arrivals: ended.attempts, orders: 1 }]);
  await strict.close();
});

test("case 12: blocked by an extension: tried as often as the policy says, then a person's, with a hint; the data stays", async () => {
  const page = await open();
  const session = await on.context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setBlockedURLs", { urls: ["*/orders?banner"] });
  assert.equal((await submit(page, "/orders")).status, "delivered");
  const ended = await submit(page, "/orders?banner");
  assert.deepEqual([ended.status, ended.reason, ended.attempts, ended.evidence.hint], ["parked", "attempts-exhausted", 3, "blocked-or-cors"]);
  assert.equal(posts(on.server).length, 1);
  await session.send("Network.setBlockedURLs", { urls: [] });
  const again = await page.evaluate(async (key) => endOf(await outbox.retry(key)), ended.key);
  assert.deepEqual([again.status, again.key], ["delivered", ended.key]);
});

test("case 25: one that always fails holds nobody up", async () => {
  const page = await open({ policy: { ...policy, maxAttempts: 5 } });
  faults(on.server, "/refuses", [{ type: "status", status: 400 }], "repeat-last");
  faults(on.server, "/drops", [{ type: "drop" }], "repeat-last");
  const ends = await page.evaluate(() => {
    const urls = ["/refuses", "/drops", "/refuses", "/drops", "/orders", "/orders"];
    return Promise.all(urls.map((url) => endOf(outbox.submit(url, { json: { item: "tea" } }))));
  });
  assert.deepEqual(ends.map(({ status, reason, attempts }) => [status, reason, attempts]), [
    ["refused", "invalid", 1],
    ["parked", "attempts-exhausted", 5],
    ["refused", "invalid", 1],
    ["parked", "attempts-exhausted", 5],
    ["delivered", undefined, 1],
    ["delivered", undefined, 1],
  ]);
  assert.equal(on.server.orders().length, 2);
});

test("case 26: the attempt's timeout is retried; the caller's own timeout ends it, with its reason", async () => {
  const page = await open({ policy: { ...policy, attemptTimeoutMs: 400 } });
  faults(on.server, "/orders", [{ type: "hang" }], "repeat-last");
  const spent = await page.evaluate(() => endOf(outbox.submit("/orders", {}, { signal: AbortSignal.timeout(10_000) })));
  assert.deepEqual([spent.status, spent.reason, spent.attempts], ["parked", "attempts-exhausted", 3]);
  assert.equal(posts(on.server).length, 3);
  const aborted = await page.evaluate(async () => {
    const signal = AbortSignal.timeout(500);
    const policy = { delaysMs: [10], attemptTimeoutMs: 200, maxAttempts: 1_000 };
    const submission = outbox.submit("/orders", {}, { signal, policy });
    const reason = await submission.outcome.catch((reason) => reason);
    return [Object.is(reason, signal.reason), reason.name];
  });
  assert.deepEqual(aborted, [true, "TimeoutError"]);
});

test("offline: the first attempt is made, not spent, and nothing left; reconnecting sends it", async () => {
  const page = await open({ policy: { ...policy, maxAttempts: 1, reconnectSpreadMs: 50 } });
  await page.evaluate(() => outbox.ready);
  await on.context.setOffline(true);
  try {
    const intent = await waiting(page, "/orders");
    assert.deepEqual([intent.reason, intent.attempt, intent.maybeDelivered, intent.durable], ["offline", 1, false, true]);
    // Without the event it would be tried in five minutes.
    assert.ok(intent.nextAttemptAt - intent.createdAt > 200_000);
    assert.equal(posts(on.server).length, 0);
  } finally {
    await on.context.setOffline(false);
  }
  const ended = await page.evaluate(() => endOf(submission));
  assert.deepEqual([ended.status, ended.attempts], ["delivered", 2]);
});

test("case 28: navigator.onLine says false and the network is there", async () => {
  await on.context.addInitScript(() => {
    if (location.hash === "#liar") Object.defineProperty(Navigator.prototype, "onLine", { get: () => false });
  });
  const page = await on.context.newPage();
  await page.goto(on.server.url + "/t/index.html#liar");
  await page.waitForFunction(() => "resubmit" in window);
  assert.equal(await page.evaluate(() => navigator.onLine), false);
  await page.evaluate((policy) => open_({ policy }), policy);
  assert.equal((await submit(page, "/orders")).status, "delivered");
  // What says so while answers come proves nothing: a failure may have arrived.
  faults(on.server, "/orders", [{ type: "commit-drop" }], "repeat-last");
  const intent = await waiting(page, "/orders");
  assert.deepEqual([intent.reason, intent.maybeDelivered], ["offline", true]);
});

test("online cuts a wait short, once, and never below the server's floor; flapping costs one attempt", async () => {
  const waits = { ...quick, delaysMs: [60_000], jitter: "none", reconnectSpreadMs: 100 };
  const page = await open({ policy: waits });
  const flap = () => page.evaluate(() => Array.from({ length: 5 }, () => (dispatchEvent(new Event("offline")), dispatchEvent(new Event("online")))).length);
  faults(on.server, "/orders", [{ type: "status", status: 503 }], "repeat-last");
  await waiting(page, "/orders");
  const second = page.evaluate(() => new Promise((resolve) => submission.addEventListener("waiting", ({ detail }) => detail.intent.attempt === 2 && resolve(detail.intent))));
  await flap();
  const { nextAttemptAt, evidence } = await second;
  assert.equal(nextAttemptAt - evidence.at, 60_000);
  assert.equal(posts(on.server).length, 2);
  await page.evaluate(() => submission.cancel());
  // A floor stands, and so does the wait after an answer that is no failure of the network. (Each at an origin of its own:
  // the gate of this one is closed.)
  for (const fault of [{ type: "status", status: 503, headers: { "retry-after": "60" } }, { type: "status", status: 429 }]) {
    const own = await startServer();
    await gotoPage(page, own, { policy: waits });
    faults(own, "/orders", [fault]);
    const before = await waiting(page, "/orders");
    await flap();
    // Behind whatever that did to the rows.
    await page.evaluate(() => outbox.submit("/orders", { json: {} }).stored);
    const after = await page.evaluate(async (key) => (await listed((all) => all.some((intent) => intent.key === key))).find((intent) => intent.key === key), before.key);
    assert.ok(after.nextAttemptAt >= before.evidence.at + 60_000, JSON.stringify(fault));
    assert.equal(posts(own).length, 1);
    await own.close();
  }
});

test("case 49: an attempt that saw the network go is not waited for", async () => {
  const page = await open({ policy: { ...policy, attemptTimeoutMs: 120_000, reconnectSpreadMs: 50 } });
  faults(on.server, "/orders", [{ type: "hang" }]);
  await page.evaluate(() => (window.submission = outbox.submit("/orders")).key);
  await on.arrived();
  await page.evaluate(() => (dispatchEvent(new Event("offline")), dispatchEvent(new Event("online"))));
  const ended = await page.evaluate(() => endOf(submission));
  assert.deepEqual([ended.status, ended.attempts], ["delivered", 2]);
  assert.deepEqual(on.server.ledger(), [{ key: ended.key, arrivals: 2, orders: 1 }]);
});
