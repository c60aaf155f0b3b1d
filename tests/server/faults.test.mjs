// Every fault, seen from the client's end of the socket.

import assert from "node:assert/strict";
import { test } from "node:test";
import { gate, post, serve, socketTo } from "./support.mjs";

/** @import { Server } from "../../www/server/server.mjs" */

/**
 * @param {Server} server
 * @param {...object} script
 */
const script = (server, ...script) => server.faults.put({ route: "/orders", script });

const ORIGIN = { origin: "http://shop.example" };

/** @param {Server} server */
const last = (server) => server.log.entries().at(-1);

test("ok processes", async (t) => {
  const server = await serve(t);
  script(server, { type: "ok" });
  assert.equal((await post(server, { key: "k1" })).status, 201);
  assert.deepEqual(last(server)?.fault, { type: "ok" });
});

test("status answers without processing, with the scripted headers and body", async (t) => {
  const server = await serve(t);
  script(server,
    { type: "status", status: 503, headers: { "Retry-After": "7", "Date": "Sun, 06 Nov 1994 08:49:37 GMT" } },
    { type: "status", status: 422, body: { errors: { item: "unknown" } }, contentType: "application/problem+json" },
    { type: "status", status: 200, body: "<h1>Hotel</h1>", contentType: "text/html" },
    { type: "status", status: 204 },
    { type: "status", status: 429, body: "slow down", headers: { "Set-Cookie": ["a=1", "b=2"] } });
  const busy = await post(server, { key: "k1" });
  assert.deepEqual([busy.status, busy.headers.get("retry-after"), busy.headers.get("date")], [503, "7", "Sun, 06 Nov 1994 08:49:37 GMT"]);
  assert.equal((await busy.json()).status, 503);
  const invalid = await post(server, { key: "k1" });
  assert.deepEqual([invalid.status, invalid.headers.get("content-type"), await invalid.json()], [422, "application/problem+json", { errors: { item: "unknown" } }]);
  const portal = await post(server, { key: "k1" });
  assert.deepEqual([portal.status, portal.headers.get("content-type"), await portal.text()], [200, "text/html", "<h1>Hotel</h1>"]);
  const empty = await post(server, { key: "k1" });
  assert.deepEqual([empty.status, await empty.text()], [204, ""]);
  const limited = await post(server, { key: "k1" });
  assert.deepEqual([limited.headers.get("content-type"), limited.headers.getSetCookie()], ["text/plain; charset=utf-8", ["a=1", "b=2"]]);
  assert.deepEqual(server.orders(), []);
  assert.deepEqual(server.log.entries().map((e) => e.answered), [503, 422, 200, 204, 429]);
  assert.equal((await post(server, { key: "k1" })).status, 201, "after the script: ok");
});

test("slow waits, then processes; the key is not taken meanwhile", async (t) => {
  const { sleep, holds, open, waiting } = gate();
  const server = await serve(t, { sleep });
  script(server, { type: "slow", ms: 1234 });
  const slow = post(server, { key: "k1" });
  await holds(1);
  assert.equal(waiting[0]?.ms, 1234);
  assert.equal(server.orders().length, 0);
  assert.equal((await post(server, { key: "k1" })).status, 201);
  open();
  assert.equal((await slow).headers.get("idempotent-replayed"), "true");
  assert.equal(server.orders().length, 1);
});

test("the default sleep is a real one", async (t) => {
  const server = await serve(t);
  script(server, { type: "slow", ms: 50 });
  const start = performance.now();
  assert.equal((await post(server, { key: "k1" })).status, 201);
  assert.ok(performance.now() - start >= 45);
});

test("process-slow waits on /orders-plain too, and commits after", async (t) => {
  const { sleep, holds, open } = gate();
  const server = await serve(t, { sleep });
  server.faults.put({ route: "/orders-plain", script: [{ type: "process-slow", ms: 5 }] });
  const slow = post(server, { path: "/orders-plain" });
  await holds(1);
  assert.equal(server.orders().length, 0);
  open();
  assert.equal((await slow).status, 201);
  assert.equal(server.orders().length, 1);
});

test("hang never answers, and is ended by the client's leaving, a reset or the server's close", { timeout: 20_000 }, async (t) => {
  const server = await serve(t);
  server.faults.put({ route: "/orders", script: [{ type: "hang" }], then: "repeat-last" });
  const leaver = socketTo(server);
  leaver.post("/orders", { "idempotency-key": "k1" });
  await server.log.until((entries) => entries.filter((e) => e.answered === "hung").length === 1);
  leaver.socket.destroy();
  assert.equal((await leaver.closed).received, "");

  const waiter = socketTo(server);
  waiter.post("/orders", { "idempotency-key": "k2" });
  await server.log.until((entries) => entries.filter((e) => e.answered === "hung").length === 2);
  assert.deepEqual(server.orders(), []);
  server.reset();
  assert.deepEqual(await waiter.closed, { received: "", error: null });

  server.faults.put({ route: "/orders", script: [{ type: "hang" }] });
  const last = socketTo(server);
  last.post("/orders", { "idempotency-key": "k3" });
  await server.log.until((entries) => entries.some((e) => e.answered === "hung"));
  await server.close();
  assert.equal((await last.closed).received, "");
});

test("drop reads the whole body, then closes without a byte and without processing", async (t) => {
  const server = await serve(t);
  script(server, { type: "drop" });
  const client = socketTo(server);
  const body = JSON.stringify({ filler: "x".repeat(200_000) });
  client.post("/orders", { "idempotency-key": "k1" }, body);
  assert.deepEqual(await client.closed, { received: "", error: null });
  const entry = last(server);
  assert.deepEqual([entry?.answered, entry?.bodyLength, entry?.orderId], ["dropped", body.length, null]);
  assert.deepEqual(server.orders(), []);
});

test("drop with reset is a TCP reset", async (t) => {
  const server = await serve(t);
  script(server, { type: "drop", reset: true });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1" });
  assert.deepEqual(await client.closed, { received: "", error: "ECONNRESET" });
});

test("drop on a reused connection: the log shows one socket for both requests", async (t) => {
  const server = await serve(t);
  script(server, { type: "ok" }, { type: "drop" });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1" });
  await client.received(/"createdAt":"[^"]+"}/);
  client.post("/orders", { "idempotency-key": "k2" });
  await client.closed;
  await post(server, { key: "k2" });
  const [first, second, third] = server.log.entries().map((e) => e.connection);
  assert.equal(first, second);
  assert.notEqual(third, second);
});

test("commit-drop makes the order and closes without a byte; the retry gets the answer", async (t) => {
  const server = await serve(t);
  script(server, { type: "commit-drop" });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1" });
  assert.deepEqual(await client.closed, { received: "", error: null });
  assert.equal(server.orders().length, 1);
  assert.deepEqual([last(server)?.answered, last(server)?.orderId], ["dropped", server.orders()[0]?.id]);
  const retry = await post(server, { key: "k1" });
  assert.equal(retry.headers.get("idempotent-replayed"), "true");
  assert.equal((await retry.json()).id, server.orders()[0]?.id);
});

test("commit-drop on /orders-plain makes an order per arrival", async (t) => {
  const server = await serve(t);
  server.faults.put({ route: "/orders-plain", script: [{ type: "commit-drop" }] });
  const client = socketTo(server);
  client.post("/orders-plain", { "idempotency-key": "k1" });
  await client.closed;
  await post(server, { path: "/orders-plain", key: "k1" });
  assert.deepEqual(server.ledger(), [{ key: "k1", arrivals: 2, orders: 2 }]);
});

test("a commit fault on a retry hides the replayed answer", async (t) => {
  const server = await serve(t);
  script(server, { type: "commit-drop" }, { type: "commit-status", status: 502 });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1" });
  await client.closed;
  assert.equal((await post(server, { key: "k1" })).status, 502);
  assert.deepEqual(server.ledger(), [{ key: "k1", arrivals: 2, orders: 1 }]);
  assert.equal(last(server)?.replayed, true);
});

test("truncate commits, sends the whole head and half of the body", async (t) => {
  const server = await serve(t);
  script(server, { type: "truncate" });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1", origin: "http://shop.example" });
  const { received } = await client.closed;
  const [head = "", body = ""] = received.split("\r\n\r\n");
  assert.match(head, /^HTTP\/1\.1 201 Created\r\n/);
  assert.match(head, /^location: \/orders\//im);
  assert.match(head, /^access-control-allow-origin: http:\/\/shop\.example$/im);
  const announced = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
  assert.equal(body.length, Math.floor(announced / 2));
  assert.ok(announced > 100);
  assert.deepEqual([last(server)?.answered, server.orders().length], ["truncated", 1]);

  script(server, { type: "truncate" });
  const response = await post(server, { key: "k2" });
  assert.equal(response.status, 201);
  await assert.rejects(response.text());
});

test("commit-status commits and answers something else, without CORS headers if asked", async (t) => {
  const server = await serve(t);
  script(server, { type: "commit-status", status: 502, cors: false }, { type: "commit-status", status: 504, headers: { "retry-after": "3" } });
  const hidden = await post(server, { key: "k1", headers: ORIGIN });
  assert.equal(hidden.status, 502);
  assert.deepEqual([...hidden.headers.keys()].filter((n) => n.startsWith("access-control-")), []);
  assert.equal(server.orders().length, 1);
  const seen = await post(server, { key: "k2", headers: ORIGIN });
  assert.deepEqual([seen.status, seen.headers.get("retry-after"), seen.headers.get("access-control-allow-origin")], [504, "3", "http://shop.example"]);
  assert.equal(server.orders().length, 2);
  const retry = await post(server, { key: "k1", headers: ORIGIN });
  assert.deepEqual([retry.status, retry.headers.get("idempotent-replayed")], [201, "true"]);
});

test("no-cors answers without CORS headers and without processing", async (t) => {
  const server = await serve(t);
  script(server, { type: "no-cors", status: 502 });
  const response = await post(server, { key: "k1", headers: ORIGIN });
  assert.equal(response.status, 502);
  assert.equal(response.headers.get("access-control-allow-origin"), null);
  assert.deepEqual(server.orders(), []);
});

test("redirect leads to the sign-in page without processing; commit-redirect processes", async (t) => {
  const server = await serve(t);
  script(server, { type: "redirect", location: "/login" }, { type: "redirect", status: 307, location: "http://other.example/orders" }, { type: "commit-redirect", status: 303, location: "/login" });
  const followed = await fetch(`${server.url}/orders`, { method: "POST", body: "{}", headers: { "content-type": "application/json", "idempotency-key": "k1" } });
  assert.deepEqual([followed.status, followed.redirected, followed.url], [200, true, `${server.url}/login`]);
  assert.match(followed.headers.get("content-type") ?? "", /^text\/html/);
  assert.match(await followed.text(), /Sign in/);
  const away = await post(server, { key: "k1" });
  assert.deepEqual([away.status, away.headers.get("location")], [307, "http://other.example/orders"]);
  assert.deepEqual(server.orders(), []);
  const after = await post(server, { key: "k1" });
  assert.deepEqual([after.status, after.headers.get("location")], [303, "/login"]);
  assert.equal(server.orders().length, 1);
});

test("replayed answers a stored failure", async (t) => {
  const server = await serve(t);
  script(server, { type: "replayed", status: 500 });
  const response = await post(server, { key: "k1" });
  assert.deepEqual([response.status, response.headers.get("idempotent-replayed")], [500, "true"]);
  assert.deepEqual(server.orders(), []);
});

test("repeat-last goes on for ever; left shows what remains", async (t) => {
  const server = await serve(t);
  server.faults.put({ route: "/orders", then: "repeat-last", script: [{ type: "ok" }, { type: "status", status: 503 }] });
  assert.equal(server.faults.left()[0]?.script.length, 2);
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await post(server, { key: "k1" })).status);
  assert.deepEqual(statuses, [201, 503, 503, 503]);
  assert.deepEqual(server.faults.left(), [{ method: "POST", route: "/orders", then: "repeat-last", taken: 4, script: [] }]);
});

test("reading orders consumes no fault of POST; faults of other methods and prefixes can be scripted", async (t) => {
  const server = await serve(t);
  script(server, { type: "status", status: 503 });
  assert.equal((await fetch(`${server.url}/orders`)).status, 200);
  assert.equal((await post(server, { key: "k1" })).status, 503);
  server.faults.put({ route: "*", method: "*", then: "repeat-last", script: [{ type: "status", status: 200, body: "portal", contentType: "text/html" }] });
  server.faults.put({ route: "/pkg/*", method: "GET", script: [{ type: "status", status: 404 }] });
  assert.equal((await fetch(`${server.url}/pkg/resubmit.wasm`)).status, 404);
  assert.equal(await (await fetch(`${server.url}/login`)).text(), "portal");
  assert.equal(await (await fetch(`${server.url}/no/such/route`, { method: "POST", body: "x" })).text(), "portal");
  assert.equal((await fetch(`${server.url}/control/log`)).headers.get("content-type"), "application/json; charset=utf-8", "control is out of reach of faults");
});
