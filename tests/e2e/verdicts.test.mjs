// What each answer that a server can give comes to, as a page learns it and as the server's ledger has it.
import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { stage, test } from "./stage.mjs";
import { faults, openPage, quick, startServer } from "./support.mjs";

const on = stage();

/** Delays are their bounds: what lies above them is the server's floor. */
const policy = { ...quick, delaysMs: [20], jitter: "none" };
const open = (more = {}) => openPage(on.context, on.server, { policy, ...more });
const status = (status, more = {}) => ({ type: "status", status, ...more });

/** Submits an order; resolves with how it ended, or with the intent as it waits if `until` says so. */
const submit = (page, url = "/orders", { init = {}, options = {}, until } = {}) =>
  page.evaluate(
    async ({ url, init, options, until }) => {
      window.submission = outbox.submit(url, { json: { item: "tea" }, ...init }, options);
      const ended = endOf(submission);
      const waiting = new Promise((resolve) => {
        submission.addEventListener("waiting", ({ detail: { intent } }) => intent.reason === until && resolve(intent));
      });
      return until ? Promise.race([waiting, ended]) : ended;
    },
    { url, init, options, until },
  );

/** What the scripts lead to: `[what the server does, how the submission ends, orders made]`. */
async function check(page, rows, route = "/orders") {
  for (const [script, expected, orders] of rows) {
    on.server.reset();
    faults(on.server, route, script);
    const label = JSON.stringify(script);
    const { key, ...ended } = await submit(page, route);
    const evidence = { status: ended.evidence?.status, ...ended };
    for (const [field, value] of Object.entries(expected)) assert.equal(evidence[field], value, `${label}: ${field} of ${JSON.stringify(ended)}`);
    assert.equal(on.server.orders().length, orders, label);
    const keys = new Set(on.posts().map((entry) => entry.key));
    assert.deepEqual([...keys], [key], label);
    assert.equal(new Set(on.posts().map(({ bodySha256 }) => bodySha256)).size, 1, label);
  }
}

const delivered = (attempts) => ({ status: "delivered", attempts, maybeDelivered: true });
const refused = (reason, attempts = 1) => ({ status: "refused", reason, attempts });
const parked = (reason, attempts = 1) => ({ status: "parked", reason, attempts });

test("2xx is delivered whatever its body, and is never sent again", async () => {
  const page = await open();
  for (const [fault, body] of [
    [status(204), ""],
    [status(205), ""],
    [status(200), ""],
    [status(201, { body: "made", contentType: "text/plain" }), "made"],
    [status(200, { body: "{", contentType: "application/json" }), "{"],
    [status(202, { body: "<p>hotel login</p>", contentType: "text/html" }), "<p>hotel login</p>"],
    [{ type: "truncate" }, "TypeError"],
  ]) {
    on.server.reset();
    faults(on.server, "/orders", [fault]);
    const ended = await submit(page);
    const label = JSON.stringify(fault);
    assert.equal(ended.status, "delivered", label);
    assert.equal(ended.attempts, 1, label);
    assert.deepEqual(ended.response, { status: fault.status ?? 201, redirected: false, bodyUsed: false }, label);
    assert.equal(ended.receipt.status, fault.status ?? 201, label);
    // The response is the browser's own, unread, and what is wrong with its body is the reader's to see.
    const read = await page.evaluate(async () => (await submission.outcome).response.text().catch(({ name }) => name));
    assert.equal(read, body, label);
    if (body && fault.type !== "truncate") assert.equal(ended.receipt.excerpt, body, label);
    assert.equal(on.posts().length, 1, label);
  }
});

test("a body that never ends does not hold up the verdict for longer than its excerpt may", async () => {
  const page = await open();
  const endless = createHttpServer((request, response) => {
    if (request.method === "POST") arrivals++;
    response.writeHead(201, { "content-type": "text/plain", "access-control-allow-origin": "*", "access-control-allow-headers": "*" });
    if (request.method === "POST") response.write("first line, and the rest never comes");
    else response.end();
  });
  let arrivals = 0;
  await new Promise((resolve) => endless.listen(0, "127.0.0.1", resolve));
  try {
    const ended = await submit(page, `http://127.0.0.1:${endless.address().port}/`);
    // The head came within the attempt's second, so it is an answer, and the page has it.
    assert.deepEqual([ended.status, ended.attempts, ended.response], ["delivered", 1, { status: 201, redirected: false, bodyUsed: false }]);
    assert.equal(arrivals, 1);
  } finally {
    endless.closeAllConnections();
    endless.close();
  }
});

test("what may pass is retried under the same key", async () => {
  const page = await open();
  const codes = [425, 429, 500, 502, 503, 504, 507, 599];
  await check(page, codes.map((code) => [[status(code)], delivered(2), 1]));
  await check(page, [[[status(413, { headers: { "retry-after": "0" } })], delivered(2), 1]]);
  // Committed, and the answer is an error: the stored answer comes with the next attempt.
  await check(page, [[[{ type: "commit-status", status: 500 }], delivered(2), 1]]);
});

test("what the browser itself repeats below fetch arrives under the same key", async () => {
  const page = await open();
  // 408 on a connection that was used before, 421 on any: script sees the last answer only.
  await check(page, [
    [[status(421), status(421)], { ...refused("invalid"), maybeDelivered: false }, 0],
    [[status(421)], delivered(1), 1],
    [[status(408), status(408)], { status: "delivered" }, 1],
    [[{ type: "drop" }], { status: "delivered" }, 1],
    [[{ type: "drop", reset: true }], { status: "delivered" }, 1],
    [[{ type: "commit-drop" }, { type: "commit-drop" }, { type: "commit-drop" }], { status: "delivered" }, 1],
  ]);
});

test("what will not pass is refused at once, with the response", async () => {
  const page = await open();
  const codes = [400, 402, 404, 405, 406, 410, 411, 413, 414, 415, 417, 418, 422, 423, 424, 426, 428, 431, 451];
  await check(page, codes.map((code) => [[status(code)], { ...refused("invalid"), maybeDelivered: false }, 0]));
  await check(page, [
    // A 5xx that means it, and yet says nothing about what was done.
    [[status(501)], { ...refused("invalid"), maybeDelivered: true }, 0],
    [[status(505)], { ...refused("invalid"), maybeDelivered: true }, 0],
    [[status(403)], { ...refused("forbidden"), maybeDelivered: false }, 0],
    [[status(412)], { ...refused("conflict"), maybeDelivered: false }, 0],
  ]);
  on.server.reset();
  faults(on.server, "/orders", [status(422, { body: { title: "no tea left" } })]);
  const ended = await submit(page);
  assert.deepEqual(ended.response, { status: 422, redirected: false, bodyUsed: false });
  assert.equal(ended.evidence.excerpt, '{"title":"no tea left"}');
  assert.deepEqual(await page.evaluate(async () => (await submission.outcome).response.json()), { title: "no tea left" });
});

test("a 4xx that our own first attempt may have caused is a person's to judge", async () => {
  const page = await open();
  await check(page, [
    [[status(503), status(400)], parked("outcome-unknown", 2), 0],
    [[{ type: "commit-status", status: 503 }, status(404)], parked("outcome-unknown", 2), 1],
    [[status(503), status(422)], refused("invalid", 2), 0],
    [[status(503), { type: "replayed", status: 400 }], refused("invalid", 2), 0],
    // A 429 proves that the first attempt did nothing.
    [[status(429), status(400)], refused("invalid", 2), 0],
    [[{ type: "replayed", status: 500 }], parked("replayed-failure"), 0],
    [[status(503), { type: "replayed", status: 503 }], parked("replayed-failure", 2), 0],
  ]);
});

test("409: once more if it is fresh, five times while the first may be running, at once if it is stored", async () => {
  const page = await open();
  const again = Array.from({ length: 6 }, () => status(409));
  await check(page, [
    [[status(409), status(409)], refused("conflict", 2), 0],
    [[status(409)], delivered(2), 1],
    [[{ type: "replayed", status: 409 }], refused("conflict"), 0],
    [[status(503), ...again], parked("outcome-unknown", 7), 0],
    [[status(503), ...again.slice(1)], delivered(7), 1],
    [again.map((fault) => ({ ...fault, headers: { "retry-after": "0" } })), parked("outcome-unknown", 6), 0],
    [[status(503), { type: "replayed", status: 409 }], refused("conflict", 2), 0],
  ]);
});

test("case 6: the client gives up waiting, the server is still at it, then has the answer", async () => {
  // Two attempts are all that may be spent: the waiting between them is not one.
  const page = await open({ policy: { ...policy, maxAttempts: 2, attemptTimeoutMs: 1_000 } });
  faults(on.server, "/orders", [{ type: "process-slow", ms: 3_000 }]);
  const ended = await submit(page);
  assert.equal(ended.status, "delivered");
  assert.equal(ended.response.status, 201);
  const answers = on.posts().map(({ answered, replayed }) => (replayed ? "replayed" : answered));
  assert.equal(answers.at(-1), "replayed");
  assert.ok(answers.slice(1, -1).length >= 1 && answers.slice(1, -1).every((answered) => answered === 409), answers.join());
  assert.deepEqual(on.server.ledger(), [{ key: ended.key, arrivals: answers.length, orders: 1 }]);
});

test("case 6: a key that the server knows with other bytes is final, and no new key is made", async () => {
  const page = await open();
  const ends = await page.evaluate(async () => {
    const other = resubmit.createOutbox({ name: "other" });
    const first = await endOf(outbox.submit("/orders", { body: "tea" }, { key: "order-17" }));
    return [first, await endOf(other.submit("/orders", { body: "coffee" }, { key: "order-17" }))];
  });
  assert.deepEqual(ends.map(({ status, reason, attempts }) => [status, reason, attempts]), [["delivered", undefined, 1], ["refused", "invalid", 1]]);
  assert.match(ends[1].evidence.excerpt, /key-reused/);
  assert.deepEqual(on.server.ledger(), [{ key: "order-17", arrivals: 2, orders: 1 }]);
});

test("sign-in: the intent waits, nothing spent, nothing deleted, and goes on when asked to", async () => {
  const page = await open({ policy: { ...policy, maxAttempts: 1 } });
  for (const fault of [status(401), status(419), { type: "redirect", location: "/login" }, { type: "commit-redirect", location: "/login" }]) {
    on.server.reset();
    faults(on.server, "/orders", [fault]);
    const { state, key } = await submit(page, "/orders", { until: "unauthorized" });
    assert.equal(state, "pending", JSON.stringify(fault));
    const ended = await page.evaluate(async (key) => endOf(await outbox.retry(key)), key);
    assert.equal(ended.status, "delivered", JSON.stringify(fault));
    assert.deepEqual(on.server.ledger(), [{ key, arrivals: 2, orders: 1 }]);
  }
  // A 403 may be about the header that had to be left out; without one it is the last word.
  on.server.reset();
  faults(on.server, "/orders", [status(403)]);
  const intent = await submit(page, "/orders", { init: { headers: { authorization: "Bearer x" } }, until: "unauthorized" });
  assert.equal(intent.state, "pending");
});

test("redirects: post/redirect/get is delivered; another origin, a trailing slash and a failing page are not", async () => {
  const page = await open();
  const other = await startServer();
  faults(on.server, "/orders", [{ type: "commit-redirect", location: "/problems" }]);
  const ended = await submit(page);
  assert.equal(ended.status, "delivered");
  assert.deepEqual(ended.response, { status: 200, redirected: true, bodyUsed: false });
  assert.equal(ended.receipt.url, on.server.url + "/problems");
  const slash = { method: "GET", route: "/orders/", script: [status(200)], then: "repeat-last" };
  for (const [location, expected, orders] of [
    [other.url + "/problems", parked("redirected"), 1],
    [on.server.url + "/orders/", parked("redirected"), 1],
    ["/missing", parked("redirected"), 1],
  ]) {
    on.server.reset();
    on.server.faults.put(slash);
    faults(on.server, "/orders", [{ type: "commit-redirect", location, status: 301 }]);
    const { key, ...ended } = await submit(page);
    for (const [field, value] of Object.entries(expected)) assert.equal(ended[field], value, `${location}: ${JSON.stringify(ended)}`);
    assert.equal(ended.maybeDelivered, true);
    assert.equal(ended.evidence.redirected, true);
    assert.equal(ended.evidence.url, new URL(location, on.server.url).href);
    assert.deepEqual(on.server.ledger(), [{ key, arrivals: 1, orders }]);
  }
  // The page after the POST is unwell: the POST is done, and the stored answer says so.
  on.server.reset();
  on.server.faults.put({ method: "GET", route: "/after", script: [status(503)], then: "repeat-last" });
  await faults(on.server, "/orders", [{ type: "commit-redirect", location: "/after" }]);
  const after = await submit(page);
  assert.equal(after.status, "delivered");
  assert.deepEqual(on.server.ledger(), [{ key: after.key, arrivals: 2, orders: 1 }]);
  await other.close();
});

test("a redirect that cannot be followed or told apart, and a 3xx that arrives, are parked", async () => {
  const page = await open();
  for (const [redirect, expected] of [["manual", parked("unexpected")], ["error", parked("outcome-unknown")]]) {
    on.server.reset();
    faults(on.server, "/orders", [{ type: "commit-redirect", location: "/problems" }]);
    const ended = await submit(page, "/orders", { init: { redirect } });
    for (const [field, value] of Object.entries(expected)) assert.equal(ended[field], value, `${redirect}: ${JSON.stringify(ended)}`);
    assert.equal(ended.maybeDelivered, true);
    assert.equal(on.posts().length, 1);
  }
  await check(page, [[[status(300)], parked("unexpected"), 0], [[status(304)], parked("unexpected"), 0]]);
});
