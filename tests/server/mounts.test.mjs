// Static folders.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serve, socketTo } from "./support.mjs";

test("mounted folders are served with their types and headers, beside the routes", async (t) => {
  const parent = await mkdtemp(join(tmpdir(), "resubmit-"));
  t.after(() => rm(parent, { recursive: true }));
  const dir = join(parent, "site");
  await mkdir(join(dir, "pkg"), { recursive: true });
  const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  await writeFile(join(dir, "index.html"), "<!doctype html><title>demo</title>");
  await writeFile(join(dir, "pkg", "m.wasm"), empty);
  await writeFile(join(dir, "pkg", "m.mjs"), "export {}");
  await writeFile(join(parent, "secret.txt"), "outside of every mount");
  const csp = "default-src 'none'";
  const server = await serve(t, {
    mounts: [{ prefix: "/", dir, headers: { "Content-Security-Policy": csp } }, { prefix: "/lib", dir: join(dir, "pkg") }],
  });

  const index = await fetch(`${server.url}/`);
  assert.match(await index.text(), /demo/);
  assert.deepEqual([index.headers.get("content-type"), index.headers.get("content-security-policy"), index.headers.get("cache-control")], ["text/html; charset=utf-8", csp, "no-cache"]);
  const wasm = await fetch(`${server.url}/lib/m.wasm`);
  assert.equal(wasm.headers.get("content-type"), "application/wasm");
  assert.equal(wasm.headers.get("content-security-policy"), null);
  const instance = await WebAssembly.instantiateStreaming(wasm);
  assert.ok(instance.module);
  assert.match((await fetch(`${server.url}/lib/m.mjs`)).headers.get("content-type") ?? "", /^(text|application)\/javascript/);
  // Over a bare socket, since fetch would resolve the dots itself.
  for (const target of ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/lib/..%2f..%2fsecret.txt"]) {
    const client = socketTo(server);
    client.socket.write(`GET ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`);
    const { received } = await client.closed;
    assert.match(received, /^HTTP\/1\.1 (403|404) /, target);
    assert.doesNotMatch(received, /outside of every mount/);
  }
  assert.equal((await fetch(`${server.url}/missing.js`)).status, 404);
  assert.deepEqual(await (await fetch(`${server.url}/orders`)).json(), []);
});
