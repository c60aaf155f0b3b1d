// The control routes: the log, the ledger, scripts that can't be meant, reset, and who may use them.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { control, gate, post, serve, socketTo } from "./support.mjs";

test("the log tells what arrived and what came of it", async (t) => {
  const server = await serve(t, { now: () => Date.UTC(2026, 5, 1) });
  const body = "item=tea&n=1";
  await post(server, { path: "/orders?from=page", key: '"k1"', body, type: "application/x-www-form-urlencoded", headers: { origin: "http://shop.example" } });
  const [entry, ...more] = await (await control(server, "log")).json();
  assert.deepEqual(more, []);
  const { headers, connection, orderId, ...rest } = entry;
  assert.equal(headers.accept, "*/*");
  assert.equal(typeof connection, "number");
  assert.equal(orderId, server.orders()[0]?.id);
  assert.deepEqual(rest, {
    seq: 1,
    time: "2026-06-01T00:00:00.000Z",
    method: "POST",
    path: "/orders",
    url: "/orders?from=page",
    origin: "http://shop.example",
    idempotencyKey: '"k1"',
    key: "k1",
    contentType: "application/x-www-form-urlencoded",
    complete: true,
    bodyLength: body.length,
    bodySha256: createHash("sha256").update(body).digest("hex"),
    fault: null,
    answered: 201,
    replayed: false,
  });
});

test("a body comes back byte for byte", async (t) => {
  const server = await serve(t);
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  await post(server, { key: "k1", body: bytes, type: "application/octet-stream" });
  const kept = await control(server, "log/1/body");
  assert.deepEqual(new Uint8Array(await kept.arrayBuffer()), bytes);
  assert.equal((await control(server, "log/2/body")).status, 404);
});

test("an arrival is logged before its fault acts, and one whose body never ends is logged as incomplete", async (t) => {
  const { sleep, holds } = gate();
  const server = await serve(t, { sleep });
  server.faults.put({ route: "/orders", script: [{ type: "slow", ms: 1 }] });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1" });
  await holds(1);
  assert.deepEqual(server.log.entries().map((e) => [e.complete, e.answered, e.fault?.type]), [[true, null, "slow"]]);
  const half = socketTo(server);
  half.post("/orders", { "idempotency-key": "k2", "content-length": "1000" }, "half");
  // Nothing is announced for a head alone, so the log is asked until it has it.
  while (server.log.entries().length < 2) await fetch(`${server.url}/control/log`);
  half.socket.destroy();
  await half.closed;
  assert.deepEqual(server.log.entries().map((e) => [e.idempotencyKey, e.complete, e.orderId]), [["k1", true, null], ["k2", false, null]]);
  assert.deepEqual(server.ledger(), [{ key: "k1", arrivals: 1, orders: 0 }]);
});

test("scripts that can't be meant are refused with the field's name", async (t) => {
  const server = await serve(t);
  const ok = [{ type: "ok" }];
  /** @type {[unknown, string][]} */
  const cases = [
    [null, "body"], [[], "body"], [{ script: ok }, "route"], [{ route: "orders", script: ok }, "route"], [{ route: "/a*b", script: ok }, "route"],
    [{ route: "/orders", script: ok, method: "post" }, "method"], [{ route: "/orders" }, "script"], [{ route: "/orders", script: {} }, "script"],
    [{ route: "/orders", script: [], then: "repeat-last" }, "script"], [{ route: "/orders", script: ok, then: "stop" }, "then"],
    [{ route: "/orders", script: ok, times: 3 }, "times"],
    [{ route: "/orders", script: [ok[0], "drop"] }, "script[1]"], [{ route: "/orders", script: [{ type: "explode" }] }, "script[0].type"],
    [{ route: "/orders", script: [{ type: "constructor" }] }, "script[0].type"],
    [{ route: "/orders", script: [{ type: "slow" }] }, "script[0].ms"], [{ route: "/orders", script: [{ type: "slow", ms: -1 }] }, "script[0].ms"],
    [{ route: "/orders", script: [{ type: "slow", ms: 2 ** 31 }] }, "script[0].ms"], [{ route: "/orders", script: [{ type: "slow", ms: "5" }] }, "script[0].ms"],
    [{ route: "/orders", script: [{ type: "status" }] }, "script[0].status"], [{ route: "/orders", script: [{ type: "status", status: 199 }] }, "script[0].status"],
    [{ route: "/orders", script: [{ type: "status", status: 600 }] }, "script[0].status"],
    [{ route: "/orders", script: [{ type: "status", status: 503, headers: [] }] }, "script[0].headers"],
    [{ route: "/orders", script: [{ type: "status", status: 503, headers: { "Retry-After": 7 } }] }, "script[0].headers.Retry-After"],
    [{ route: "/orders", script: [{ type: "status", status: 503, headers: { "bad name": "x" } }] }, "script[0].headers.bad name"],
    [{ route: "/orders", script: [{ type: "status", status: 503, headers: { a: "x\ny" } }] }, "script[0].headers.a"],
    [{ route: "/orders", script: [{ type: "status", status: 503, contentType: "html" }] }, "script[0].contentType"],
    [{ route: "/orders", script: [{ type: "status", status: 503, ms: 1 }] }, "script[0].ms"], [{ route: "/orders", script: [{ type: "no-cors", status: 503, cors: true }] }, "script[0].cors"],
    [{ route: "/orders", script: [{ type: "redirect" }] }, "script[0].location"], [{ route: "/orders", script: [{ type: "redirect", location: "/", status: 304 }] }, "script[0].status"],
    [{ route: "/orders", script: [{ type: "drop", reset: 1 }] }, "script[0].reset"],
    [{ route: "/login", script: [{ type: "commit-drop" }] }, "script[0].type"], [{ route: "/orders", method: "GET", script: [{ type: "truncate" }] }, "script[0].type"],
  ];
  for (const [input, field] of cases) {
    const response = await control(server, "faults", "PUT", input);
    const document = await response.json();
    assert.deepEqual([response.status, document.field], [400, field], JSON.stringify(input));
    assert.ok(document.detail.startsWith(field), document.detail);
  }
  assert.equal((await fetch(`${server.url}/control/faults`, { method: "PUT", body: "{" })).status, 400);
  assert.deepEqual(await (await control(server, "faults")).json(), []);
});

test("scripts are put, shown and cleared over HTTP", async (t) => {
  const server = await serve(t);
  const put = { route: "/orders", script: [{ type: "status", status: 503 }, { type: "drop" }], then: "ok" };
  assert.equal((await control(server, "faults", "PUT", put)).status, 200);
  await post(server, { key: "k1" });
  assert.deepEqual(await (await control(server, "faults")).json(), [{ method: "POST", route: "/orders", then: "ok", taken: 1, script: [{ type: "drop" }] }]);
  assert.equal((await control(server, "faults", "DELETE")).status, 204);
  assert.equal((await post(server, { key: "k1" })).status, 201);
});

test("DELETE of the log leaves the orders", async (t) => {
  const server = await serve(t);
  await post(server, { key: "k1" });
  assert.equal((await control(server, "log", "DELETE")).status, 204);
  assert.deepEqual(await (await control(server, "log")).json(), []);
  assert.deepEqual(await (await control(server, "ledger")).json(), [{ key: "k1", arrivals: 0, orders: 1 }]);
});

test("reset empties everything and ends what waits, without processing it", { timeout: 20_000 }, async (t) => {
  const { sleep, holds, open } = gate();
  const server = await serve(t, { sleep });
  await post(server, { key: "k1" });
  server.faults.put({ route: "/orders", script: [{ type: "process-slow", ms: 1 }, { type: "slow", ms: 1 }, { type: "hang" }], then: "ok" });
  const waiting = ["k2", "k3", "k4"].map((key) => {
    const client = socketTo(server);
    client.post("/orders", { "idempotency-key": key });
    return client;
  });
  await holds(2);
  await server.log.until((entries) => entries.some((e) => e.answered === "hung"));
  await control(server, "cors", "PUT", { allowKey: false });

  assert.equal((await control(server, "reset", "POST")).status, 204);
  for (const client of waiting) assert.equal((await client.closed).received, "");
  open();
  for (const path of ["log", "ledger", "faults"]) assert.deepEqual(await (await control(server, path)).json(), []);
  assert.deepEqual(await (await control(server, "cors")).json(), { allowKey: true, expose: true });
  assert.deepEqual(await (await fetch(`${server.url}/orders`)).json(), []);
  for (const key of ["k1", "k2"]) {
    const response = await post(server, { key });
    assert.deepEqual([response.status, response.headers.get("idempotent-replayed")], [201, null], `${key} is free`);
  }
  assert.equal(server.orders().length, 2);
});

test("close is prompt whatever waits", { timeout: 10_000 }, async (t) => {
  const server = await serve(t);
  server.faults.put({ route: "/orders", script: [{ type: "slow", ms: 2 ** 31 - 1 }] });
  const client = socketTo(server);
  client.post("/orders", { "idempotency-key": "k1" });
  const idle = socketTo(server);
  await server.log.until((entries) => entries.some((e) => e.fault !== null));
  await server.close();
  assert.equal((await client.closed).received, "");
  assert.equal((await idle.closed).received, "");
});

test("control refuses pages of other origins and lets loopback pages in", async (t) => {
  const server = await serve(t);
  await post(server, { key: "k1" });
  for (const origin of ["https://evil.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example", "http://notlocalhost", "null"]) {
    for (const [path, method] of [["log", "GET"], ["reset", "POST"], ["faults", "OPTIONS"]]) {
      const response = await control(server, path ?? "", method, undefined, { origin });
      assert.deepEqual([response.status, response.headers.get("access-control-allow-origin")], [403, null], `${method} ${path} from ${origin}`);
    }
  }
  assert.equal(server.orders().length, 1, "nothing was reset");
  for (const origin of ["http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:1", "http://app.localhost"]) {
    const response = await control(server, "log", "GET", undefined, { origin });
    assert.deepEqual([response.status, response.headers.get("access-control-allow-origin")], [200, origin]);
    assert.equal((await control(server, "faults", "OPTIONS", undefined, { origin, "access-control-request-method": "PUT" })).status, 204);
  }
});

test("only the loopback address is bound", async (t) => {
  const server = await serve(t);
  assert.equal(server.url, `http://127.0.0.1:${server.port}`);
  await assert.rejects(fetch(`http://[::1]:${server.port}/orders`));
});

test("a port in use is an error", async (t) => {
  const server = await serve(t);
  await assert.rejects(serve(t, { port: server.port }), { code: "EADDRINUSE" });
});
