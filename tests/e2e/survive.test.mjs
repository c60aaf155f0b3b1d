// One order, whatever happens on the way: the ledger of the server is the judge.
import assert from "node:assert/strict";
import { beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { faults, gotoPage, openPage, quick, startServer } from "./support.mjs";

const on = stage();
let context, server;
beforeEach(() => {
  ({ context, server } = on);
});

const options = { policy: quick };

/** Submits an order and resolves with its key once it is on the disk. */
const submit = (page, path, more = {}) =>
  page.evaluate(
    async ({ path, more }) => {
      const submission = outbox.submit(path, { json: { item: "tea" } }, more);
      window.submission = submission;
      const stored = await submission.stored;
      if (!stored.durable) throw new Error("not durable: " + stored.reason);
      return submission.key;
    },
    { path, more },
  );

/** How the intents of the page ended, once none of them waits or is sent. */
const settled = async (page) => (await page.evaluate(() => allSettled())).map(({ key, state, reason, attempt }) => ({ key, state, reason, attempt }));

const posts = (route) => on.posts(route);

test("503 twice, then success, with a reload in the wait between", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }, { type: "status", status: 503 }]);
  const page = await openPage(context, server, { policy: { ...quick, delaysMs: [20, 1_500], jitter: "none" } });
  const key = await submit(page, "/orders");
  await server.log.until((entries) => entries.filter(({ method }) => method === "POST").length === 2);
  await page.waitForFunction((key) => {
    outbox.intents.subscribe(() => {})();
    const intent = outbox.intents.current.find((intent) => intent.key === key);
    return intent?.state === "pending" && intent.attempt === 2;
  }, key);
  await gotoPage(page, server, options);
  assert.deepEqual(await settled(page), [{ key, state: "delivered", reason: null, attempt: 3 }]);
  assert.deepEqual(server.ledger(), [{ key, arrivals: 3, orders: 1 }]);
  assert.equal(new Set(posts("/orders").map(({ bodySha256 }) => bodySha256)).size, 1);
});

test("committed, then the connection dropped: the answer comes from the server's memory", async () => {
  faults(server, "/orders", [{ type: "commit-drop" }]);
  const page = await openPage(context, server, options);
  const key = await submit(page, "/orders");
  const outcome = await page.evaluate(async () => {
    const { status, attempts, response } = await submission.outcome;
    return { status, attempts, replayed: response.headers.get("idempotent-replayed") };
  });
  assert.equal(outcome.status, "delivered");
  assert.equal(outcome.replayed, "true");
  const [{ arrivals, ...row }] = server.ledger();
  assert.deepEqual(row, { key, orders: 1 });
  // One attempt may arrive several times: the browser repeats a POST whose reused connection broke.
  assert.ok(arrivals >= 2, `${arrivals} arrivals`);
});

test("the server is down during the submit, and back later", async () => {
  const page = await openPage(context, server, { policy: { ...quick, maxAttempts: 100 } });
  await page.evaluate(() => outbox.ready);
  const { port } = server;
  await server.close();
  const key = await submit(page, "/orders");
  await page.waitForFunction(
    () => new Promise((resolve) => outbox.addEventListener("waiting", ({ detail }) => detail.intent.attempt >= 2 && resolve(true))),
  );
  server = on.server = await startServer({ port });
  assert.equal(await page.evaluate(async () => (await submission.outcome).status), "delivered");
  assert.equal(server.ledger().length, 1);
  assert.equal(server.ledger()[0].key, key);
  assert.equal(server.ledger()[0].orders, 1);
});

test("a Retry-After longer than the page's life is kept by the next page", async () => {
  faults(server, "/orders", [{ type: "status", status: 503, headers: { "retry-after": "2" } }]);
  const page = await openPage(context, server, options);
  const key = await submit(page, "/orders");
  await page.evaluate(() => listed(([intent]) => intent?.reason === "server-busy"));
  await page.close();
  const next = await openPage(context, server, options);
  assert.deepEqual(await settled(next), [{ key, state: "delivered", reason: null, attempt: 2 }]);
  const [first, second] = posts("/orders").map(({ time }) => new Date(time).getTime());
  assert.ok(second - first >= 2_000, `${second - first} ms`);
});

test("a route that ignores the key, with onMaybeDelivered \"park\": never two orders", async () => {
  // Each on a connection of its own, without a preflight: the browser itself repeats a POST whose reused connection
  // broke, and no page can keep it from that.
  for (const fault of [{ type: "commit-drop" }, { type: "drop" }, { type: "status", status: 503 }, { type: "commit-status", status: 502 }, { type: "hang" }]) {
    const own = await startServer();
    faults(own, "/orders-plain", [fault]);
    const page = await context.newPage();
    const policy = { ...quick, attemptTimeoutMs: 300 };
    await gotoPage(page, server, { name: fault.type, policy, onMaybeDelivered: "park", keyField: "idempotency_key" });
    await page.evaluate((url) => {
      window.submission = outbox.submit(url, { body: new URLSearchParams({ item: "tea" }) });
    }, own.url + "/orders-plain");
    const outcome = await page.evaluate(async () => {
      const { status, reason, attempts, maybeDelivered } = await submission.outcome;
      return { status, reason, attempts, maybeDelivered };
    });
    assert.deepEqual(outcome, { status: "parked", reason: "outcome-unknown", attempts: 1, maybeDelivered: true });
    await gotoPage(page, server, { name: fault.type });
    assert.equal((await settled(page))[0].state, "parked");
    assert.ok(own.orders().length <= 1, `${fault.type}: ${own.orders().length} orders`);
    await own.close();
  }
});

test("what never left is retried under \"park\" too", async () => {
  faults(server, "/orders-plain", [{ type: "status", status: 429 }]);
  const page = await openPage(context, server, { ...options, onMaybeDelivered: "park" });
  await submit(page, "/orders-plain");
  assert.equal(await page.evaluate(async () => (await submission.outcome).status), "delivered");
  assert.equal(server.orders().length, 1);
});

test("the row is on the disk before the first byte arrives, bytes and key and all", async () => {
  faults(server, "/orders", [{ type: "hang" }]);
  const page = await openPage(context, server, { policy: { ...quick, attemptTimeoutMs: 60_000 } });
  const key = await page.evaluate(() => (window.submission = outbox.submit("/orders", { json: { item: "tea" } })).key);
  await server.log.until((entries) => entries.some(({ method }) => method === "POST"));
  const [row, body] = await page.evaluate(async (key) => {
    const open = indexedDB.open("resubmit:resubmit");
    await new Promise((resolve) => (open.onsuccess = resolve));
    const read = (store) =>
      new Promise((resolve) => (open.result.transaction(store).objectStore(store).get(["anonymous", key]).onsuccess = ({ target }) => resolve(target.result)));
    const result = [await read("intents"), new TextDecoder().decode(await read("bodies"))];
    open.result.close();
    return result;
  }, key);
  assert.equal(row.key, key);
  assert.equal(row.state, "sending");
  assert.deepEqual([row.v, row.attempts, row.maybeDelivered], [1, 1, true]);
  assert.ok(row.lease.lengthMs > 60_000);
  assert.equal(body, '{"item":"tea"}');
});

test("multipart is the same bytes after a reload, boundary and file and all", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }]);
  const page = await openPage(context, server, { policy: { ...quick, delaysMs: [400], jitter: "none" } });
  await page.evaluate(async () => {
    const form = new FormData();
    form.append("item", "tea\r\nwith milk");
    form.append("file", new File([crypto.getRandomValues(new Uint8Array(5_000))], 'a "quoted" name.bin'));
    form.append("empty", new File([], ""));
    await outbox.submit("/orders", { body: form }).stored;
  });
  await server.log.until((entries) => entries.some(({ method }) => method === "POST"));
  await page.waitForFunction(() => new Promise((resolve) => outbox.intents.subscribe(([intent]) => intent?.state === "pending" && resolve(true))));
  await gotoPage(page, server, options);
  assert.equal((await settled(page))[0].state, "delivered");
  const [first, second] = posts("/orders");
  assert.equal(second.bodySha256, first.bodySha256);
  assert.equal(second.contentType, first.contentType);
  assert.match(first.contentType, /^multipart\/form-data; boundary=/);
});
