// What is sent: the same bytes with every attempt, the key where the server looks for it, and what comes back of `meta`.
import assert from "node:assert/strict";
import { beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { faults, gotoPage, openPage, quick, startServer } from "./support.mjs";

const on = stage();
let server, page;
beforeEach(async () => {
  server = on.server;
  page = await openPage(on.context, server, { policy: quick });
});

const posts = () => on.posts();

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

test("keyHeader renames the header, and goes with the row", async () => {
  const own = await startServer({ keyHeader: "X-Request-Key" });
  faults(own, "/orders", [{ type: "status", status: 503 }]);
  const options = { keyHeader: "X-Request-Key", keyFormat: "sf-string", policy: { ...quick, delaysMs: [400], jitter: "none" } };
  await gotoPage(page, own, options);
  const key = await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: {} });
    await next(submission, "waiting");
    return submission.key;
  });
  // The next page has other options; the row keeps its own.
  await gotoPage(page, own, {});
  await page.evaluate(() => allSettled());
  assert.deepEqual(own.ledger(), [{ key, arrivals: 2, orders: 1 }]);
  const sent = own.log.entries().filter(({ method }) => method === "POST").map(({ headers }) => [headers["x-request-key"], headers["idempotency-key"]]);
  assert.deepEqual(sent, Array(2).fill([`"${key}"`, undefined]));
  await own.close();
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
