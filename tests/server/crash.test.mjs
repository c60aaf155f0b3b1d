// SIGKILL in the middle of writing, and a new process on the same file.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { control, post } from "./support.mjs";

const MAIN = fileURLToPath(new URL("../../www/server/main.mjs", import.meta.url));

/**
 * @param {import("node:test").TestContext} t
 * @param {string} db
 */
async function start(t, db) {
  const child = spawn(process.execPath, [MAIN, "--port", "0", "--db", db], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  const [line] = await once(createInterface(child.stdout), "line");
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
  assert.ok(url, line);
  return { url, child, exited, kill: () => (child.kill("SIGKILL"), exited) };
}

/** @param {import("node:test").TestContext} t */
async function freshFile(t) {
  const dir = await mkdtemp(join(tmpdir(), "resubmit-"));
  t.after(() => rm(dir, { recursive: true }));
  return join(dir, "orders.db");
}

/**
 * Keys without their order and orders without their key.
 * @param {string} file
 */
function halves(file) {
  const db = new Database(file);
  try {
    return db.prepare(`
      SELECT key FROM keys WHERE order_id NOT IN (SELECT id FROM orders)
      UNION ALL SELECT key FROM orders WHERE id NOT IN (SELECT order_id FROM keys)`).all();
  } finally {
    db.close();
  }
}

test("what was answered outlives SIGKILL, key and order together, and every retry ends in one order", { timeout: 120_000 }, async (t) => {
  const db = await freshFile(t);
  /** @type {Map<string, string>} key -> order id, as acknowledged */
  const acknowledged = new Map();
  /** @type {Set<string>} */
  const sent = new Set();
  for (let round = 0; round < 6; round++) {
    const server = await start(t, db);
    let left = 25 + round * 7;
    let next = 0;
    const worker = async () => {
      for (;;) {
        const key = `r${round}-${next++}`;
        sent.add(key);
        try {
          const response = await post(server, { key, body: JSON.stringify({ key, filler: "x".repeat(4000) }) });
          acknowledged.set(key, (await response.json()).id);
          if (--left === 0) server.child.kill("SIGKILL");
        } catch {
          return; // the server is gone
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    assert.equal((await server.exited)[1], "SIGKILL");
    assert.deepEqual(halves(db), []);
  }
  assert.ok(sent.size > acknowledged.size, "some requests were under way when the server was killed");

  const server = await start(t, db);
  for (const key of sent) {
    const response = await post(server, { key, body: JSON.stringify({ key, filler: "x".repeat(4000) }) });
    assert.equal(response.status, 201);
    const id = acknowledged.get(key);
    if (id === undefined) continue;
    assert.equal(response.headers.get("idempotent-replayed"), "true", key);
    assert.equal((await response.json()).id, id);
  }
  /** @type {{ key: string, orders: number }[]} */
  const ledger = await (await control(server, "ledger")).json();
  assert.equal(ledger.length, sent.size);
  assert.deepEqual(ledger.filter((line) => line.orders !== 1), []);
  await server.kill();
});

test("a key that was running when the process died is free", { timeout: 60_000 }, async (t) => {
  const db = await freshFile(t);
  const first = await start(t, db);
  await control(first, "faults", "PUT", { route: "/orders", script: [{ type: "process-slow", ms: 2 ** 31 - 1 }] });
  const lost = assert.rejects(post(first, { key: "k1" }));
  for (let left = 1; left > 0; ) left = (await (await control(first, "faults")).json())[0].script.length;
  // The script's only entry is taken, so this one meets the running key and nothing else.
  assert.equal((await post(first, { key: "k1" })).status, 409);
  await first.kill();
  await lost;
  assert.deepEqual(halves(db), []);

  const second = await start(t, db);
  const response = await post(second, { key: "k1" });
  assert.equal(response.status, 201);
  assert.equal(response.headers.get("idempotent-replayed"), null);
  await second.kill();
});

test("SIGTERM ends the process although a request hangs", { timeout: 60_000 }, async (t) => {
  const server = await start(t, await freshFile(t));
  await control(server, "faults", "PUT", { route: "/orders", script: [{ type: "hang" }] });
  const hung = assert.rejects(post(server, { key: "k1" }));
  for (let answered = null; answered !== "hung"; ) answered = (await (await control(server, "log")).json())[0]?.answered ?? null;
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, [0, null]);
  await hung;
});

test("a bad option is an error that names it", async () => {
  const child = spawn(process.execPath, [MAIN, "--port", "many"], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [code] = await once(child, "close");
  assert.equal(code, 2);
  assert.match(errors, /--port must be a whole number/);
});
