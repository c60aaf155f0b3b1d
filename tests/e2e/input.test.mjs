// What can't be sent is the caller's error: said with the field's name, before anything is stored or sent.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();
let server, page;
beforeEach(async () => {
  server = on.server;
  page = await openPage(on.context, server, { policy: quick, maxBodyBytes: 100_000 });
});

const posts = () => on.posts();

/** Submits in the page and resolves with `[code, message]` of what both promises reject with. `make`: the arguments. */
const rejected = (make, argument) =>
  page.evaluate(
    async ({ source, argument }) => {
      const args = (0, eval)(source)(argument);
      const submission = outbox.submit(...args);
      const ends = await Promise.all([submission.stored, submission.outcome].map((end) => end.then(() => ["resolved"], ({ code, message }) => [code, message])));
      if (ends[0].join() !== ends[1].join()) throw new Error("the two differ: " + ends);
      return ends[0];
    },
    { source: `(${make})`, argument },
  );

const bad = [
  ["credentials in the URL", () => ["http://user:secret@127.0.0.1/"], "bad-request", /^request: /],
  ["a header with a line break", () => ["/orders", { headers: { x: "a\nb" } }], "bad-request", /^request: /],
  ["GET with a body", () => ["/orders", { method: "GET", body: "x" }], "bad-request", /^request: /],
  ["a body that was read", () => ["/orders", { body: (() => ((window.used = new Response("x")), used.text(), used.body))() }], "bad-request", /^request: /],
  ["no-cors", () => ["/orders", { mode: "no-cors" }], "bad-request", /^mode: /],
  ["a forbidden header", () => ["/orders", { headers: { Host: "example.org" } }], "bad-request", /^host: /],
  ["a scheme that is no http", () => ["data:text/plain,x"], "bad-request", /^url: /],
  ["a body above maxBodyBytes", () => ["/orders", { body: new Uint8Array(100_001) }], "too-large", /^body: /],
  ["options that are null, with a bad scheme", () => ["data:,x", null, null], "bad-request", /^url: /],
  ["a header that is the library's", () => ["/orders", { json: 1, headers: { "Idempotency-Key": "mine" } }], "bad-request", /^idempotency-key: .*options\.key/],
  ["a body beside the JSON", () => ["/orders", { json: 1, body: "x" }], "bad-option", /^init\.json: /],
  ["an end of no meaning", () => ["/orders", {}, { onAbort: "stop" }], "bad-option", /^options\.onAbort: /],
  ["JSON that is none", () => ["/orders", { json: () => {} }], "bad-option", /^init\.json: /],
  ["JSON that goes round in circles", () => ["/orders", { json: (() => ((window.circle = {}), (circle.self = circle)))() }], "bad-option", /^init\.json: /],
  ["meta that JSON can't say", () => ["/orders", {}, { meta: 1n }], "bad-option", /^options\.meta: /],
  ["meta that is a function", () => ["/orders", {}, { meta: () => {} }], "bad-option", /^options\.meta: /],
  ["a Request that was used", () => [(() => ((window.used = new Request("/orders", { method: "POST", body: "x" })), used.text(), used))()], "bad-request", /^request: /],
  ["a URL that is none", () => ["http://"], "bad-request", /^request: /],
  ["a method that is forbidden", () => ["/orders", { method: "CONNECT" }], "bad-request", /^request: /],
  ["an empty key", () => ["/orders", {}, { key: "" }], "bad-option", /^options\.key: /],
  ["a key that is too long", () => ["/orders", {}, { key: "x".repeat(256) }], "bad-option", /^options\.key: /],
  ["onMaybeDelivered of no meaning", () => ["/orders", {}, { onMaybeDelivered: "hope" }], "bad-option", /^options\.onMaybeDelivered: /],
  ["durable that is no boolean", () => ["/orders", {}, { durable: "yes" }], "bad-option", /^options\.durable: /],
  ["a delay of no number", () => ["/orders", {}, { policy: { delaysMs: [1, NaN] } }], "bad-option", /^options\.policy\.delaysMs/],
  ["an endless delay", () => ["/orders", {}, { policy: { baseMs: Infinity } }], "bad-option", /^options\.policy\.baseMs: /],
  ["a preset of no name", () => ["/orders", {}, { policy: { preset: "eager" } }], "bad-option", /^options\.policy\.preset: /],
  ["an unknown option", () => ["/orders", {}, { retries: 3 }], "bad-option", /^options\.retries: /],
  ["a key with a space", () => ["/orders", {}, { key: "a b" }], "bad-option", /^options\.key: /],
  ["a policy of no name", () => ["/orders", {}, { policy: "eager" }], "bad-option", /^options\.policy: /],
  ["a policy's wrong type", () => ["/orders", {}, { policy: { maxAttempts: "3" } }], "bad-option", /^options\.policy\.maxAttempts: /],
  ["a policy that never tries", () => ["/orders", {}, { policy: { maxAttempts: 0 } }], "bad-option", /^options\.policy\.maxAttempts: /],
  ["a fraction of a millisecond", () => ["/orders", {}, { policy: { baseMs: 0.5 } }], "bad-option", /^options\.policy\.baseMs: /],
  ["meta above 4 KiB", () => ["/orders", {}, { meta: "x".repeat(5_000) }], "bad-option", /^options\.meta: /],
  ["a function where data is kept", () => ["/orders", {}, { isDelivered: () => true }], "bad-option", /^options\.isDelivered: /],
];

test("bad input: the code, the field, and nothing stored or sent", async () => {
  for (const [name, make, code, message] of bad) {
    const [is, says] = await rejected(make.toString());
    assert.equal(is, code, `${name}: ${says}`);
    assert.match(says, message, name);
  }
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
  assert.equal(posts().length, 0);
});

test("options of the outbox that are wrong reject ready and every submission", async () => {
  for (const [options, message] of [
    [{ policy: { attempts: 3 } }, /^options\.policy\.attempts: /],
    [{ keyFormat: "quoted" }, /^options\.keyFormat: /],
    [{ keyHeader: "a b" }, /^options\.keyHeader: /],
    [{ persistHeaders: ["Authorization"] }, /^options\.persistHeaders: /],
    [{ storage: "cookies" }, /^options\.storage: /],
    [{ authorise: "x" }, /^options\.authorise: /],
  ]) {
    const said = await page.evaluate(async (options) => {
      const bad = resubmit.createOutbox({ name: JSON.stringify(options), ...options });
      const ready = await bad.ready.catch(({ code, message }) => [code, message]);
      const submitted = await bad.submit("/orders").outcome.catch(({ code, message }) => [code, message]);
      return [ready, submitted];
    }, options);
    assert.match(said[0][1], message);
    assert.equal(said[0][0], "bad-option");
    assert.deepEqual(said[1], said[0]);
  }
  assert.equal(posts().length, 0);
});

test("the application's own key: the same bytes are the same submission, other bytes an error", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }]);
  const said = await page.evaluate(async () => {
    const form = () => {
      const body = new FormData();
      body.append("item", "tea");
      return { body };
    };
    const first = outbox.submit("/orders", form(), { key: "order-17" });
    await first.stored;
    const again = outbox.submit("/orders", form(), { key: "order-17" });
    const other = await outbox.submit("/orders", { body: "coffee" }, { key: "order-17" }).outcome.catch(({ code, key }) => [code, key]);
    return { again: (await again.outcome).status, first: (await first.outcome).status, other };
  });
  assert.deepEqual(said.other, ["key-reused", "order-17"]);
  assert.deepEqual([said.first, said.again], ["delivered", "delivered"]);
  assert.equal(server.orders().length, 1);
});

test("the application's own key is known after a reload, and its bytes still count", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }], "repeat-last");
  const waits = { policy: { ...quick, delaysMs: [60_000], jitter: "none" } };
  await gotoPage(page, server, waits);
  await page.evaluate(() => next(outbox.submit("/orders", { json: { item: "tea" } }, { key: "order-18" }), "waiting"));
  await gotoPage(page, server, waits);
  const said = await page.evaluate(async () => {
    const again = outbox.submit("/orders", { json: { item: "tea" } }, { key: "order-18" });
    const stored = await again.stored;
    const others = [
      outbox.submit("/orders", { json: { item: "coffee" } }, { key: "order-18" }),
      outbox.submit("/orders?x", { json: { item: "tea" } }, { key: "order-18" }),
      outbox.submit("/orders", { method: "PUT", json: { item: "tea" } }, { key: "order-18" }),
      outbox.submit("/orders", { body: '{"item":"tea"}' }, { key: "order-18" }),
    ];
    const errors = await Promise.all(others.map(async (other) => (await endOf(other)).error));
    return { stored, errors, list: (await listed((all) => all.length > 0)).map(({ key, state, attempt }) => [key, state, attempt]) };
  });
  assert.deepEqual(said, { stored: { durable: true }, errors: Array(4).fill("key-reused"), list: [["order-18", "pending", 1]] });
  server.faults.clear();
  assert.equal(await page.evaluate(async () => (await (await outbox.retry("order-18")).outcome).status), "delivered");
  assert.deepEqual(server.ledger(), [{ key: "order-18", arrivals: 2, orders: 1 }]);
});

test("secrets are sent and never stored, whatever their case; others by name", async () => {
  faults(server, "/orders", [{ type: "hang" }]);
  await page.evaluate(() => {
    const own = resubmit.createOutbox({ name: "secrets", persistHeaders: ["X-Tenant"] });
    return own.submit("/orders", {
      json: {},
      headers: { AUTHORIZATION: "Bearer s3cret", "X-CSRF-Token": "s3cret", "x-other": "s3cret", "x-tenant": "42", accept: "application/json" },
    }).stored;
  });
  await server.log.until((entries) => entries.some(({ method }) => method === "POST"));
  const { intents } = await dump(page, "secrets");
  assert.equal(intents.length, 1);
  assert.ok(!JSON.stringify(intents).includes("s3cret"));
  assert.deepEqual(intents[0].leftOut.sort(), ["authorization", "x-csrf-token", "x-other"]);
  assert.deepEqual(Object.fromEntries(intents[0].request.headers), { accept: "application/json", "content-type": "application/json", "x-tenant": "42" });
});

test("what had a header left out is never sent without it: it waits after a reload", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }]);
  const waits = { policy: { ...quick, delaysMs: [300], jitter: "none" } };
  await gotoPage(page, server, waits);
  const key = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: { n: 1 }, headers: { authorization: "Bearer s3cret" } });
    await next(submission, "waiting");
    return submission.key;
  });
  await gotoPage(page, server, waits);
  // One that is due later than the first and goes: what is due had its chance.
  faults(server, "/orders", [{ type: "status", status: 503 }]);
  const state = await page.evaluate(async (key) => {
    await outbox.submit("/orders", { json: { n: 2 } }, { policy: { delaysMs: [600], jitter: "none" } }).outcome;
    return (await listed((all) => all.some((intent) => intent.key === key))).find((intent) => intent.key === key).state;
  }, key);
  assert.equal(state, "pending");
  assert.deepEqual(posts().filter((entry) => entry.key === key).map(({ headers }) => headers.authorization), ["Bearer s3cret"]);
});

test("mixed content: a page that came over https does not submit to http", async () => {
  // The page's own files, under an address that a browser takes for secure.
  await on.context.route("https://shop.test/**", async (route) => {
    const path = new URL(route.request().url()).pathname;
    const contentType = path.endsWith(".wasm") ? "application/wasm" : path.endsWith(".js") ? "text/javascript" : "text/html";
    const file = path.startsWith("/dist/") ? `../../dist/${path.slice(6)}` : `./pages/${path.slice(3)}`;
    await route.fulfill({ contentType, body: await readFile(new URL(file, import.meta.url)) });
  });
  await page.goto("https://shop.test/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
  await page.evaluate(() => void open_({}));
  const [code, message] = await rejected((() => ["http://shop.test/orders", { json: {} }]).toString());
  assert.equal(code, "bad-request");
  assert.match(message, /^url: .*https/);
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
  await on.context.unroute("https://shop.test/**");
});
