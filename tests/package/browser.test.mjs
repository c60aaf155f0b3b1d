// The installed package in a real browser: bundled by Vite, and from a plain script tag. Both under the strictest policy that
// the contract names, and both through a server that fails first.
import assert from "node:assert/strict";
import { cp, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";
import { createServer } from "../../www/server/server.mjs";
import { stage } from "./support.mjs";

const CSP = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "connect-src 'self'",
  "style-src 'self'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const pages = new URL("./pages/", import.meta.url);

const on = stage();

test("a fresh Vite application delivers a form once", async () => {
  const source = join(on.app.folder, "vite-app");
  await cp(new URL("vite/", pages), source, { recursive: true });
  const out = join(on.app.folder, "site");
  await build({ root: source, configFile: false, logLevel: "warn", build: { outDir: out, emptyOutDir: true } });
  const files = await readdir(join(out, "assets"));
  assert.equal(files.filter((file) => file.endsWith(".wasm")).length, 1, `one wasm file in ${files}`);
  await submitThroughFailures([{ prefix: "/", dir: out, headers: { "content-security-policy": CSP } }]);
});

test("a plain script tag delivers a form once", async () => {
  const site = join(on.app.folder, "plain");
  await cp(new URL("plain/", pages), site, { recursive: true });
  await mkdir(join(site, "resubmit"));
  await cp(join(on.app.installed, "dist"), join(site, "resubmit"), { recursive: true });
  await submitThroughFailures([{ prefix: "/", dir: site, headers: { "content-security-policy": CSP } }]);
});

/**
 * Fills in the page's form and sends it to a server that says 503, takes the order but drops the socket, then works.
 * @param {import("../../www/server/server.mjs").Mount[]} mounts
 */
async function submitThroughFailures(mounts) {
  const server = await createServer({ mounts });
  const page = await on.context.newPage();
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => /Content Security Policy|Trusted/i.test(message.text()) && complaints.push(message.text()));
  try {
    server.faults.put({ route: "/orders", script: [{ type: "status", status: 503 }, { type: "commit-drop" }], then: "ok" });
    await page.goto(`${server.url}/`);
    await page.fill("input[name=item]", "tea");
    await page.click("button");
    await page.waitForSelector("#outcome:not(:empty)", { timeout: 30_000 });
    assert.deepEqual(complaints, []);
    assert.equal(await page.textContent("#outcome"), "delivered");
    assert.deepEqual(server.ledger().map(({ arrivals, orders }) => ({ arrivals, orders })), [{ arrivals: 3, orders: 1 }]);
    assert.equal(server.orders().length, 1);
  } finally {
    await page.close();
    await server.close();
  }
}
