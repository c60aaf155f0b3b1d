// One key, many requests at once: in one process, and in two that share a file.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gate, post, serve } from "./support.mjs";

const twenty = Array.from({ length: 20 });

test("twenty requests at once make one order; nineteen get its answer", async (t) => {
  const server = await serve(t);
  const answers = await Promise.all(twenty.map(() => post(server, { key: "k1" })));
  assert.deepEqual(new Set(answers.map((a) => a.status)), new Set([201]));
  assert.equal(answers.filter((a) => a.headers.get("idempotent-replayed") === "true").length, 19);
  const ids = await Promise.all(answers.map(async (a) => (await a.json()).id));
  assert.equal(new Set(ids).size, 1);
  assert.deepEqual(server.ledger(), [{ key: "k1", arrivals: 20, orders: 1 }]);
});

test("while the first is running, the other nineteen get 409 and later the answer", async (t) => {
  const { sleep, holds, open } = gate();
  const server = await serve(t, { sleep });
  server.faults.put({ route: "/orders", script: [{ type: "process-slow", ms: 1000 }] });
  const first = post(server, { key: "k1" });
  await holds(1);
  const others = await Promise.all(twenty.slice(1).map(() => post(server, { key: "k1" })));
  for (const answer of others) {
    assert.equal(answer.status, 409);
    assert.equal(answer.headers.get("retry-after"), "1");
    assert.equal(answer.headers.get("idempotent-replayed"), null);
    assert.equal((await answer.json()).type, "/problems#key-running");
  }
  assert.equal(server.orders().length, 0);
  open();
  assert.equal((await first).status, 201);
  assert.equal((await post(server, { key: "k1" })).headers.get("idempotent-replayed"), "true");
  assert.equal(server.orders().length, 1);
});

test("other bytes under a running key are a 422, not a 409", async (t) => {
  const { sleep, holds, open } = gate();
  const server = await serve(t, { sleep });
  server.faults.put({ route: "/orders", script: [{ type: "process-slow", ms: 1000 }] });
  const first = post(server, { key: "k1" });
  await holds(1);
  assert.equal((await post(server, { key: "k1", body: "{}" })).status, 422);
  assert.equal((await post(server, { key: "k2" })).status, 201, "another key is not held up");
  open();
  assert.equal((await first).status, 201);
});

test("Retry-After of the 409 can be another number or absent", async (t) => {
  for (const [runningRetryAfter, sent] of /** @type {[number | null, string | null][]} */ ([[7, "7"], [null, null]])) {
    const { sleep, holds, open } = gate();
    const server = await serve(t, { sleep, runningRetryAfter });
    server.faults.put({ route: "/orders", script: [{ type: "process-slow", ms: 1000 }] });
    const first = post(server, { key: "k1" });
    await holds(1);
    assert.equal((await post(server, { key: "k1" })).headers.get("retry-after"), sent);
    open();
    await first;
  }
});

test("the client's leaving does not stop the server: the order is made and replayed", async (t) => {
  const { sleep, holds, open } = gate();
  const server = await serve(t, { sleep });
  server.faults.put({ route: "/orders", script: [{ type: "process-slow", ms: 1000 }] });
  const leaving = new AbortController();
  const first = post(server, { key: "k1", signal: leaving.signal });
  await holds(1);
  leaving.abort();
  await assert.rejects(first, { name: "AbortError" });
  open();
  await server.log.until(([entry]) => entry?.orderId != null && entry.answered !== null);
  const again = await post(server, { key: "k1" });
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal(server.orders().length, 1);
});

test("two processes on one file that run the same key make one order", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "resubmit-"));
  t.after(() => rm(dir, { recursive: true }));
  const db = join(dir, "orders.db");
  const a = gate();
  const b = gate();
  const one = await serve(t, { db, sleep: a.sleep });
  const two = await serve(t, { db, sleep: b.sleep });
  for (const server of [one, two]) server.faults.put({ route: "/orders", script: [{ type: "process-slow", ms: 1 }] });
  const first = post(one, { key: "k1" });
  const second = post(two, { key: "k1" });
  await Promise.all([a.holds(1), b.holds(1)]);
  a.open();
  const made = await (await first).json();
  b.open();
  const answer = await second;
  assert.equal(answer.status, 201);
  assert.equal(answer.headers.get("idempotent-replayed"), "true");
  assert.equal((await answer.json()).id, made.id);
  assert.equal(one.orders().length, 1);
});

test("many keys at once make an order each", async (t) => {
  const server = await serve(t);
  await Promise.all(twenty.flatMap((_, i) => [post(server, { key: `k${i}` }), post(server, { key: `k${i}` })]));
  assert.equal(server.orders().length, 20);
  for (const line of server.ledger()) assert.deepEqual([line.arrivals, line.orders], [2, 1]);
});
