// What other origins may send and read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { control, post, serve } from "./support.mjs";

const ORIGIN = "http://shop.example";

/** @param {{ url: string }} server @param {string} asked */
async function preflight(server, asked) {
  const response = await fetch(`${server.url}/orders`, {
    method: "OPTIONS",
    headers: { origin: ORIGIN, "access-control-request-method": "POST", "access-control-request-headers": asked },
  });
  assert.equal(response.status, 204);
  assert.equal(response.headers.get("access-control-allow-origin"), ORIGIN);
  assert.match(response.headers.get("access-control-allow-methods") ?? "", /\bPOST\b/);
  assert.equal(response.headers.get("access-control-max-age"), "0");
  return (response.headers.get("access-control-allow-headers") ?? "").split(", ");
}

test("a preflight allows the headers that it asks for", async (t) => {
  const server = await serve(t);
  assert.deepEqual(await preflight(server, "content-type,idempotency-key,x-csrf-token"), ["content-type", "idempotency-key", "x-csrf-token"]);
  assert.deepEqual(server.log.entries().map((e) => [e.method, e.answered]), [["OPTIONS", 204]]);
});

test("the key header can be refused, at once and again allowed", async (t) => {
  const server = await serve(t);
  assert.equal((await control(server, "cors", "PUT", { allowKey: false })).status, 200);
  assert.deepEqual(await preflight(server, "content-type,Idempotency-Key"), ["content-type"]);
  await control(server, "cors", "PUT", { allowKey: true });
  assert.deepEqual(await preflight(server, "idempotency-key"), ["idempotency-key"]);
});

test("answers can be read by the origin that asked, with the exposed headers unless switched off", async (t) => {
  const server = await serve(t);
  const open = await post(server, { key: "k1", headers: { origin: ORIGIN } });
  assert.equal(open.headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(open.headers.get("vary"), "Origin");
  assert.equal(open.headers.get("access-control-expose-headers"), "Retry-After, Location, Idempotent-Replayed, Date");
  const refused = await post(server, { headers: { origin: ORIGIN } });
  assert.deepEqual([refused.status, refused.headers.get("access-control-allow-origin")], [400, ORIGIN]);
  await control(server, "cors", "PUT", { expose: false });
  assert.equal((await post(server, { key: "k1", headers: { origin: ORIGIN } })).headers.get("access-control-expose-headers"), null);
  assert.equal((await post(server, { key: "k1" })).headers.get("access-control-allow-origin"), null);
});

test("a setting that does not exist is refused with its name", async (t) => {
  const server = await serve(t);
  for (const [input, field] of /** @type {[unknown, string][]} */ ([[{ allow: true }, "allow"], [{ expose: "no" }, "expose"], [[], "body"], ["x", "body"]])) {
    const response = await control(server, "cors", "PUT", input);
    assert.deepEqual([response.status, (await response.json()).field], [400, field]);
  }
  assert.deepEqual(await (await control(server, "cors")).json(), { allowKey: true, expose: true });
});

test("a fault can act on the preflight", async (t) => {
  const server = await serve(t);
  server.faults.put({ route: "/orders", method: "OPTIONS", script: [{ type: "no-cors", status: 403 }] });
  const response = await fetch(`${server.url}/orders`, { method: "OPTIONS", headers: { origin: ORIGIN } });
  assert.deepEqual([response.status, response.headers.get("access-control-allow-origin")], [403, null]);
});
