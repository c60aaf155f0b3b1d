// Bodies as forms send them, the key in a body field, and forms that the browser itself submits.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { post, serve } from "./support.mjs";

const URLENCODED = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data; boundary=----WebKitFormBoundaryAb12";
const PAGE = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

/** @param {string} boundary @param {[string, string][]} fields */
const multipart = (boundary, fields) =>
  fields.map(([n, v]) => `--${boundary}\r\nContent-Disposition: form-data; name="${n}"\r\n\r\n${v}\r\n`).join("") + `--${boundary}--\r\n`;

test("urlencoded fields are read in order, repeated names included", async (t) => {
  const server = await serve(t);
  await post(server, { key: "k1", type: URLENCODED, body: "a=1&b=x+y&a=%C3%A9" });
  assert.deepEqual(server.orders()[0]?.fields, [["a", "1"], ["b", "x y"], ["a", "é"]]);
});

test("multipart fields and files are read as a browser writes them", async (t) => {
  const server = await serve(t);
  const body = [
    "------WebKitFormBoundaryAb12", 'Content-Disposition: form-data; name="note %22é%22"', "", "two\r\nlines",
    "------WebKitFormBoundaryAb12", 'Content-Disposition: form-data; name="file"; filename="ü.txt"', "Content-Type: text/plain", "", "hello",
    "------WebKitFormBoundaryAb12", 'Content-Disposition: form-data; name="none"; filename=""', "Content-Type: application/octet-stream", "", "",
    "------WebKitFormBoundaryAb12--", "",
  ].join("\r\n");
  const response = await post(server, { key: "k1", type: MULTIPART, body });
  assert.equal(response.status, 201);
  const [order] = server.orders();
  assert.equal(order?.contentType, MULTIPART);
  assert.equal(order?.bodySha256, createHash("sha256").update(body).digest("hex"));
  assert.deepEqual(order?.fields, [
    ['note "é"', "two\r\nlines"],
    ["file", { filename: "ü.txt", type: "text/plain", size: 5, sha256: createHash("sha256").update("hello").digest("hex") }],
    ["none", { filename: "", type: "application/octet-stream", size: 0, sha256: createHash("sha256").update("").digest("hex") }],
  ]);
});

test("forms without a single field are orders", async (t) => {
  const server = await serve(t);
  assert.equal((await post(server, { key: "k1", type: MULTIPART, body: multipart("----WebKitFormBoundaryAb12", []) })).status, 201);
  assert.equal((await post(server, { key: "k2", type: URLENCODED, body: "" })).status, 201);
  assert.deepEqual(server.orders().map((o) => o.fields), [[], []]);
});

test("what fetch makes of a FormData is read back", async (t) => {
  const server = await serve(t);
  const form = new FormData();
  form.append('a"b', "x");
  form.append("file", new Blob(["\r\n--x\r\n", new Uint8Array(100_000)]), 'na"me.bin');
  form.append("a\nb", "1\n2");
  assert.equal((await post(server, { key: "k1", type: "", body: form })).status, 201);
  const fields = server.orders()[0]?.fields;
  assert.deepEqual(fields?.map(([name]) => name), ['a"b', "file", "a\r\nb"]);
  assert.deepEqual(fields?.[2]?.[1], "1\r\n2");
  assert.equal(/** @type {import("../../www/server/body.mjs").FileEntry} */ (fields?.[1]?.[1]).size, 100_007);
});

test("a body that is not what its type says is refused, with or without a key honoured", async (t) => {
  const server = await serve(t);
  for (const path of ["/orders", "/orders-plain"]) {
    for (const [type, body] of [["multipart/form-data", multipart("x", [["a", "1"]])], ["multipart/form-data; boundary=y", multipart("x", [["a", "1"]])], ["application/json", "{"]]) {
      const response = await post(server, { path, key: "k1", type: type ?? "", body: body ?? "" });
      assert.deepEqual([response.status, (await response.json()).type], [400, "/problems#body-malformed"], type);
    }
  }
  assert.deepEqual(server.orders(), []);
});

test("other types, and no body at all, are orders too", async (t) => {
  const server = await serve(t);
  assert.equal((await post(server, { key: "k1", type: "text/plain", body: "tea" })).status, 201);
  assert.equal((await post(server, { key: "k2", type: "application/octet-stream", body: new Uint8Array([255, 0]) })).status, 201);
  assert.equal((await fetch(`${server.url}/orders`, { method: "POST", headers: { "idempotency-key": "k3" } })).status, 201);
  assert.deepEqual(server.orders().map((o) => [o.bodyLength, o.contentType, o.fields]), [[3, "text/plain", []], [2, "application/octet-stream", []], [0, null, []]]);
});

test("the key may stand in a body field of each form type, bare or quoted", async (t) => {
  const server = await serve(t);
  /** @type {[string, string][]} */
  const bodies = [
    [URLENCODED, "item=tea&idempotency_key=k1"],
    [MULTIPART, multipart("----WebKitFormBoundaryAb12", [["item", "tea"], ["idempotency_key", "k2"]])],
    ["application/json", '{"item":"tea","idempotency_key":"k3"}'],
    [URLENCODED, "idempotency_key=%22k4%22"],
  ];
  for (const [type, body] of bodies) {
    assert.equal((await post(server, { type, body })).headers.get("idempotent-replayed"), null);
    assert.equal((await post(server, { type, body })).headers.get("idempotent-replayed"), "true");
  }
  assert.deepEqual(server.ledger(), ["k1", "k2", "k3", "k4"].map((key) => ({ key, arrivals: 2, orders: 1 })));
  assert.equal(server.log.entries()[0]?.idempotencyKey, null, "the log keeps what the header said");
});

test("a key in both places must be the same key", async (t) => {
  const server = await serve(t);
  assert.equal((await post(server, { key: "k1", type: URLENCODED, body: "idempotency_key=k1" })).status, 201);
  const both = await post(server, { key: "k1", type: URLENCODED, body: "idempotency_key=k2" });
  assert.deepEqual([both.status, (await both.json()).type], [400, "/problems#key-ambiguous"]);
  for (const body of ["idempotency_key=a+b", "idempotency_key=", "idempotency_key=k1&idempotency_key=k1"]) {
    const malformed = await post(server, { type: URLENCODED, body });
    assert.deepEqual([malformed.status, (await malformed.json()).type], [400, "/problems#key-malformed"], body);
  }
  assert.equal(server.orders().length, 1);
});

test("by default another boundary is other bytes; over entries it is the same form, with or without the key's field", async (t) => {
  const fields = /** @type {[string, string][]} */ ([["item", "tea"]]);
  const first = { key: "k1", type: "multipart/form-data; boundary=x", body: multipart("x", fields) };
  const again = { key: "k1", type: "multipart/form-data; boundary=y", body: multipart("y", fields) };
  const byBrowser = { type: "multipart/form-data; boundary=z", body: multipart("z", [...fields, ["idempotency_key", "k1"]]) };
  const strict = await serve(t);
  await post(strict, first);
  assert.equal((await post(strict, again)).status, 422);
  const lenient = await serve(t, { fingerprintOver: "entries" });
  await post(lenient, first);
  assert.equal((await post(lenient, again)).headers.get("idempotent-replayed"), "true");
  assert.equal((await post(lenient, byBrowser)).headers.get("idempotent-replayed"), "true");
  assert.equal((await post(lenient, { ...again, body: multipart("y", [["item", "coffee"]]) })).status, 422);
  assert.equal((await post(lenient, { key: "k1" })).status, 422, "JSON is compared by its bytes");
});

test("a form that the browser submits itself is led to a page; one sent with the header gets 201", async (t) => {
  const server = await serve(t);
  const native = { type: URLENCODED, body: "item=%3Cb%3E&idempotency_key=k1", headers: PAGE };
  for (const replayed of [null, "true"]) {
    const response = await post(server, native);
    assert.deepEqual([response.status, response.headers.get("idempotent-replayed")], [303, replayed]);
    const page = await fetch(server.url + response.headers.get("location"), { headers: PAGE });
    assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
    assert.match(await page.text(), /<dd>&lt;b&gt;<\/dd>/);
  }
  assert.equal((await post(server, { ...native, key: "k1" })).status, 201);
  assert.equal((await post(server, { path: "/orders-plain", type: URLENCODED, body: "item=tea", headers: PAGE })).status, 303);
  assert.equal((await post(server, { type: URLENCODED, body: "item=tea", headers: PAGE })).status, 400);
});

test("a body above the limit is refused and logged as incomplete", async (t) => {
  const server = await serve(t, { bodyLimit: 100 });
  const response = await post(server, { key: "k1", body: JSON.stringify("x".repeat(200)) });
  assert.equal(response.status, 413);
  assert.equal(response.headers.get("content-type"), "application/problem+json");
  assert.deepEqual(server.log.entries().map((e) => [e.complete, e.answered]), [[false, 413]]);
});
