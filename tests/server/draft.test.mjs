// The rules of draft-ietf-httpapi-idempotency-key-header, over real HTTP.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fingerprint, parseKey } from "../../www/server/idempotency.mjs";
import { control, post, serve } from "./support.mjs";

/** @param {Response} response @param {number} status @param {string} kind */
async function isProblem(response, status, kind) {
  assert.equal(response.status, status);
  assert.equal(response.headers.get("content-type"), "application/problem+json");
  const document = await response.json();
  assert.equal(document.status, status);
  assert.equal(document.type, `/problems#${kind}`);
  assert.match(response.headers.get("link") ?? "", new RegExp(`</problems#${kind}>; rel="describedby"`));
  return document;
}

test("a request without a key is refused and makes no order", async (t) => {
  const server = await serve(t);
  await isProblem(await post(server), 400, "key-missing");
  assert.deepEqual(server.orders(), []);
});

test("the page that a problem points to describes it", async (t) => {
  const server = await serve(t);
  const page = await (await fetch(`${server.url}/problems`)).text();
  for (const kind of ["key-missing", "key-malformed", "key-reused", "key-running"]) assert.match(page, new RegExp(`id="${kind}"`));
});

test("the first request makes the order that its Location names", async (t) => {
  const server = await serve(t, { now: () => Date.UTC(2026, 0, 2) });
  const response = await post(server, { key: "k1" });
  assert.equal(response.status, 201);
  assert.equal(response.headers.get("idempotent-replayed"), null);
  const order = await response.json();
  assert.equal(order.key, "k1");
  assert.equal(order.createdAt, "2026-01-02T00:00:00.000Z");
  assert.deepEqual(order.fields, [["item", "tea"]]);
  const location = response.headers.get("location");
  assert.equal(location, `/orders/${order.id}`);
  assert.deepEqual(await (await fetch(server.url + location)).json(), order);
  assert.deepEqual(await (await fetch(`${server.url}/orders`)).json(), [order]);
});

test("a repeated request gets the stored answer, marked, and makes nothing", async (t) => {
  const server = await serve(t);
  const first = await post(server, { key: "k1" });
  const again = await post(server, { key: "k1" });
  assert.equal(again.status, 201);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal(again.headers.get("location"), first.headers.get("location"));
  assert.equal(await again.text(), await first.text());
  assert.equal(server.orders().length, 1);
  assert.deepEqual(server.log.entries().map((e) => [e.answered, e.replayed, e.orderId !== null]), [[201, false, true], [201, true, false]]);
});

test("the bare token and the quoted string are one key", async (t) => {
  const server = await serve(t);
  await post(server, { key: "8e03978e-40d5-43dd-bc93-6894a57f9324" });
  const quoted = await post(server, { key: '"8e03978e-40d5-43dd-bc93-6894a57f9324"' });
  assert.equal(quoted.headers.get("idempotent-replayed"), "true");
  assert.equal(server.orders().length, 1);
  assert.deepEqual(server.log.entries().map((e) => e.idempotencyKey), ["8e03978e-40d5-43dd-bc93-6894a57f9324", '"8e03978e-40d5-43dd-bc93-6894a57f9324"']);
});

test("what a key is", () => {
  /** @type {[string, string | null][]} */
  const cases = [
    ["abc", "abc"], [" abc ", "abc"], ['"abc"', "abc"], ['"a b"', "a b"], ['"a\\"b\\\\c"', 'a"b\\c'], ['"abc";v=1', "abc"], ['"abc" ; v', "abc"],
    ["x".repeat(255), "x".repeat(255)], [`"${"x".repeat(255)}"`, "x".repeat(255)],
    ["", null], ['""', null], ["x".repeat(256), null], [`"${"x".repeat(256)}"`, null], ["a b", null], ["a, b", null], ['"a", "b"', null],
    ['"abc', null], ['abc"', null], ['"a\\nb"', null], ["é", null], ['"é"', null], ['"abc"x', null],
  ];
  for (const [sent, key] of cases) assert.equal(parseKey(sent), key, JSON.stringify(sent));
});

test("a malformed key is refused", async (t) => {
  const server = await serve(t);
  await isProblem(await post(server, { key: "two, keys" }), 400, "key-malformed");
  await isProblem(await post(server, { key: "x".repeat(256) }), 400, "key-malformed");
  assert.deepEqual(server.orders(), []);
});

test("one key with other bytes, another Content-Type or another target is a 422 and makes nothing", async (t) => {
  const server = await serve(t);
  await post(server, { key: "k1" });
  await isProblem(await post(server, { key: "k1", body: '{"item": "tea"}' }), 422, "key-reused");
  await isProblem(await post(server, { key: "k1", type: "application/json; charset=utf-8" }), 422, "key-reused");
  await isProblem(await post(server, { key: "k1", path: "/orders?x" }), 422, "key-reused");
  assert.equal(server.orders().length, 1);
  const honest = await post(server, { key: "k1" });
  assert.equal(honest.headers.get("idempotent-replayed"), "true", "a mismatch does not spoil the key");
});

test("no two lists of parts have one fingerprint", () => {
  assert.notEqual(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
  assert.notEqual(fingerprint(["a", ""]), fingerprint(["a"]));
  assert.equal(fingerprint(["é"]), fingerprint([Buffer.from("é")]));
});

test("keys of different accounts never meet", async (t) => {
  const server = await serve(t);
  await post(server, { key: "k1", headers: { "x-account": "ann" } });
  const bob = await post(server, { key: "k1", body: '{"item":"coffee"}', headers: { "x-account": "bob" } });
  assert.equal(bob.status, 201);
  const annByCookie = await post(server, { key: "k1", headers: { cookie: "a=b; account=ann" } });
  assert.equal(annByCookie.headers.get("idempotent-replayed"), "true");
  assert.deepEqual(server.orders().map((o) => o.account), ["ann", "bob"]);
});

test("a key is forgotten at its age, not before, and its order stays", async (t) => {
  let now = 1_000_000;
  const server = await serve(t, { now: () => now, keyTtlMs: 5000 });
  const first = await (await post(server, { key: "k1" })).json();
  now += 4999;
  assert.equal((await post(server, { key: "k1" })).headers.get("idempotent-replayed"), "true");
  now += 1;
  const late = await post(server, { key: "k1" });
  assert.equal(late.status, 201);
  assert.equal(late.headers.get("idempotent-replayed"), null);
  assert.notEqual((await late.json()).id, first.id);
  assert.deepEqual(server.ledger(), [{ key: "k1", arrivals: 3, orders: 2 }]);
});

test("an age of a day is the default", async (t) => {
  let now = 0;
  const server = await serve(t, { now: () => now });
  await post(server, { key: "k1" });
  now = 24 * 3600 * 1000 - 1;
  assert.equal((await post(server, { key: "k1" })).headers.get("idempotent-replayed"), "true");
  now += 1;
  assert.equal((await post(server, { key: "k1" })).headers.get("idempotent-replayed"), null);
});

test("an expired key may come back with other bytes", async (t) => {
  let now = 0;
  const server = await serve(t, { now: () => now, keyTtlMs: 10 });
  await post(server, { key: "k1" });
  now = 10;
  assert.equal((await post(server, { key: "k1", body: "{}" })).status, 201);
});

test("a request that was refused before it ran leaves its key free", async (t) => {
  const server = await serve(t);
  await isProblem(await post(server, { key: "k1", body: "{" }), 400, "body-malformed");
  assert.equal((await post(server, { key: "k1" })).status, 201);
});

test("/orders-plain makes one order per arrival and still shows the key", async (t) => {
  const server = await serve(t);
  for (let i = 0; i < 3; i++) {
    const response = await post(server, { path: "/orders-plain", key: "k1" });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("idempotent-replayed"), null);
  }
  assert.equal((await post(server, { path: "/orders-plain" })).status, 201);
  assert.deepEqual(await (await control(server, "ledger")).json(), [{ key: "k1", arrivals: 3, orders: 3 }]);
  assert.equal(server.orders().length, 4);
});

test("the key header can have another name", async (t) => {
  const server = await serve(t, { keyHeader: "X-Request-Key" });
  assert.equal((await post(server, { key: "k1" })).status, 400);
  assert.equal((await post(server, { headers: { "x-request-key": "k1" } })).status, 201);
  assert.equal((await post(server, { headers: { "x-request-key": "k1" } })).headers.get("idempotent-replayed"), "true");
});

test("an unknown order is a 404", async (t) => {
  const server = await serve(t);
  await isProblem(await fetch(`${server.url}/orders/nothing`), 404, "not-found");
  await isProblem(await fetch(`${server.url}/nowhere`), 404, "not-found");
});

test("with tokens, who brings none of them is refused before the key is looked at", async (t) => {
  const server = await serve(t);
  server.access.tokens = new Set(["t1"]);
  const refused = await post(server, { key: "k1", headers: { authorization: "Bearer t2" } });
  assert.equal(refused.headers.get("www-authenticate"), "Bearer");
  await isProblem(refused, 401, "unauthorized");
  await isProblem(await post(server), 401, "unauthorized");
  assert.deepEqual(server.orders(), []);
  const taken = await post(server, { key: "k1", headers: { authorization: "Bearer t1" } });
  assert.deepEqual([taken.status, taken.headers.get("idempotent-replayed")], [201, null]);
});
