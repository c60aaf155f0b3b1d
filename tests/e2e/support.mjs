// What every end-to-end test needs: the reference server with the built package mounted, and a real Chromium on a
// profile that outlives it.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { createServer } from "../../www/server/server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The browser that the set-up installs. */
export const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** What keeps it from talking to anybody but the tests. */
export const args = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** @import { BrowserContext, Page } from "playwright-core" */
/** @import { Options, Server } from "../../www/server/server.mjs" */

/**
 * The reference server with the package and the test pages.
 * @param {Options & { headers?: Record<string, string> }} [options] the server's own, and headers of every file
 */
export function startServer({ headers = {}, ...options } = {}) {
  return createServer({
    mounts: [
      { prefix: "/dist/", dir: join(root, "dist"), headers },
      { prefix: "/t/", dir: join(root, "tests/e2e/pages"), headers },
    ],
    ...options,
  });
}

/**
 * Scripts what a route does with its next arrivals.
 * @param {Server} server
 * @param {string} route
 * @param {any[]} script
 * @param {any} [then]
 */
export function faults(server, route, script, then = "ok") {
  server.faults.put({ route, script, then });
}

/** A browser profile of its own; `launch` may be called again after the browser is gone. */
export async function newProfile() {
  const dir = await mkdtemp(join(tmpdir(), "resubmit-profile-"));
  return {
    dir,
    launch: (/** @type {Parameters<typeof chromium.launchPersistentContext>[1]} */ options = {}) =>
      chromium.launchPersistentContext(dir, {
        executablePath,
        headless: true,
        args,
        chromiumSandbox: process.getuid?.() !== 0,
        ...options,
      }),
    remove: () => rm(dir, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/**
 * Opens the test page with an outbox.
 * @param {BrowserContext} context
 * @param {Server} server
 * @param {object} [options] the outbox's
 */
export async function openPage(context, server, options = {}) {
  const page = await context.newPage();
  if (process.env.CONSOLE) page.on("console", (message) => console.error("console:", message.text()));
  await gotoPage(page, server, options);
  return page;
}

/**
 * Loads (or loads again) the test page and opens its outbox.
 * @param {Page} page
 * @param {Server} server
 * @param {object} [options] the outbox's
 */
export async function gotoPage(page, server, options = {}) {
  await gotoBare(page, server);
  await page.evaluate((options) => {
    /** @type {any} */ (window).open_(options);
  }, options);
}

/**
 * Loads the test page alone; it opens no outbox.
 * @param {Page} page
 * @param {Server} server
 */
export async function gotoBare(page, server) {
  await page.goto(server.url + "/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
}

/** A schedule quick enough for tests: everything is a deadline of the product, nothing a sleep of the test. */
export const quick = { delaysMs: [50, 100, 200], maxAttempts: 8, attemptTimeoutMs: 1_000 };

/**
 * The rows and bodies that an outbox has on the disk.
 * @param {Page} page
 */
export async function dump(page, name = "resubmit") {
  const { intents, bodies } = await stores(page, name);
  return { intents, bodies: bodies.map((body) => [...body]) };
}

/**
 * The closed gates that an outbox has on the disk.
 * @param {Page} page
 */
export const closedGates = async (page, name = "resubmit") => (await stores(page, name)).gates;

/** @param {Page} page @param {string} name @returns {Promise<Record<"intents" | "bodies" | "gates", any[]>>} */
function stores(page, name) {
  return page.evaluate(async (name) => {
    await /** @type {any} */ (window).resubmit.createOutbox({ name }).ready;
    const open = indexedDB.open("resubmit:" + name);
    await new Promise((resolve) => (open.onsuccess = resolve));
    /** @returns {Promise<any[]>} */
    const all = (/** @type {string} */ store) =>
      new Promise((resolve) => {
        const rows = open.result.transaction(store).objectStore(store).getAll();
        rows.onsuccess = () => resolve(rows.result);
      });
    const read = { intents: await all("intents"), bodies: await all("bodies"), gates: await all("gates") };
    open.result.close();
    return read;
  }, name);
}
