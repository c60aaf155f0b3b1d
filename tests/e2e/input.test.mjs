// What can't be sent is the caller's error: said with the field's name, before anything is stored or sent.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { dump, faults, newProfile, openPage, quick, startServer } from "./support.mjs";

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
  page = await openPage(context, server, { policy: quick, maxBodyBytes: 100_000 });
});
afterEach(async () => {
  await page.close();
  await server.close();
});

const posts = () => server.log.entries().filter(({ method }) => method === "POST");

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
  ["JSON that is none", () => ["/orders", { json: () => {} }], "bad-option", /^init\.json: /],
  ["an unknown option", () => ["/orders", {}, { retries: 3 }], "bad-option", /^options\.retries: /],
  ["a key with a space", () => ["/orders", {}, { key: "a b" }], "bad-option", /^options\.key: /],
  ["a policy of no name", () => ["/orders", {}, { policy: "eager" }], "bad-option", /^options\.policy: /],
  ["a policy's wrong type", () => ["/orders", {}, { policy: { maxAttempts: "3" } }], "bad-option", /^options\.policy\.maxAttempts: /],
  ["a policy that never tries", () => ["/orders", {}, { policy: { maxAttempts: 0 } }], "bad-option", /^options\.policy\.maxAttempts: /],
  ["a fraction of a millisecond", () => ["/orders", {}, { policy: { baseMs: 0.5 } }], "bad-option", /^options\.policy\.baseMs: /],
  ["meta above 4 KiB", () => ["/orders", {}, { meta: "x".repeat(5_000) }], "bad-option", /^options\.meta: /],
  ["an option of what is to come", () => ["/orders", {}, { coalesceKey: "x" }], "bad-option", /^options\.coalesceKey: /],
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

test("every kind of body is buffered: all attempts have the same bytes and type", async () => {
  const kinds = {
    text: () => ({ body: "tea" }),
    json: () => ({ json: { item: "tea" } }),
    bytes: () => ({ body: new Uint8Array([1, 2, 3]) }),
    blob: () => ({ body: new Blob(["tea"], { type: "text/x-tea" }) }),
    search: () => ({ body: new URLSearchParams({ item: "tea & milk" }) }),
    form: () => {
      const body = new FormData();
      body.append("item", new File(["tea"], "t.txt"));
      return { body };
    },
    stream: () => ({ body: new Blob(["streamed tea"]).stream(), headers: { "content-type": "text/plain" } }),
    request: () => ({ request: new Request("/orders", { method: "POST", body: "requested tea" }) }),
  };
  for (const [name, make] of Object.entries(kinds)) {
    server.log.clear?.();
    faults(server, "/orders", [{ type: "status", status: 503 }, { type: "status", status: 503 }]);
    const before = posts().length;
    const status = await page.evaluate(async (source) => {
      const { request = "/orders", ...init } = (0, eval)(source)();
      return (await outbox.submit(request, init).outcome).status;
    }, `(${make})`);
    assert.equal(status, "delivered", name);
    const mine = posts().slice(before);
    assert.ok(mine.length >= 3, name);
    assert.equal(new Set(mine.map(({ bodySha256, contentType, bodyLength }) => [bodySha256, contentType, bodyLength].join())).size, 1, name);
    assert.equal(new Set(mine.map(({ idempotencyKey }) => idempotencyKey)).size, 1, name);
    assert.ok(mine[0].bodyLength > 0, name);
  }
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

test("where the key goes: header names and forms, and a field of the body", async () => {
  const keys = await page.evaluate(async () => {
    const submit = async (options, init) => {
      const own = resubmit.createOutbox({ name: JSON.stringify(options), ...options });
      const submission = own.submit("/orders", init);
      const outcome = await submission.outcome;
      return [submission.key, outcome.status, outcome.reason];
    };
    const form = new FormData();
    form.append("item", "tea");
    return [
      await submit({ keyFormat: "sf-string" }, { json: {} }),
      await submit({ keyField: "idempotency_key" }, { body: form }),
      await submit({ keyField: "idempotency_key" }, { body: new URLSearchParams({ item: "tea" }) }),
    ];
  });
  for (const [, status, reason] of keys) assert.equal(status, "delivered", reason);
  const [quoted, multipart, urlencoded] = posts();
  assert.equal(quoted.idempotencyKey, `"${keys[0][0]}"`);
  assert.deepEqual([multipart.idempotencyKey ?? null, urlencoded.idempotencyKey ?? null], [null, null]);
  assert.deepEqual([multipart.key, urlencoded.key], [keys[1][0], keys[2][0]]);
  const [code, message] = await page.evaluate(async () => {
    const own = resubmit.createOutbox({ name: "json-field", keyField: "k" });
    return own.submit("/orders", { body: "text" }).outcome.catch(({ code, message }) => [code, message]);
  });
  assert.equal(code, "bad-option");
  assert.match(message, /^options\.keyField: /);
});

test("meta comes back on the intent, its events, and after a reload", async () => {
  faults(server, "/orders", [{ type: "status", status: 503 }], "repeat-last");
  const meta = { order: 17, items: ["tea", null], deep: { yes: true } };
  const told = await page.evaluate(async (meta) => {
    const submission = outbox.submit("/orders", { json: {} }, { meta, formKey: "form-1", policy: { delaysMs: [60_000], jitter: "none" } });
    return new Promise((resolve) => submission.addEventListener("waiting", ({ detail }) => resolve([detail.intent.meta, detail.intent.formKey])));
  }, meta);
  assert.deepEqual(told, [meta, "form-1"]);
  await page.reload();
  await page.waitForFunction(() => "resubmit" in window);
  const read = await page.evaluate(() => new Promise((resolve) => open_({}).intents.subscribe(([intent]) => intent && resolve([intent.meta, intent.formKey, Object.isFrozen(intent)]))));
  assert.deepEqual(read, [meta, "form-1", true]);
});
