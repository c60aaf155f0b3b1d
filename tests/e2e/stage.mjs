// What the files of tests share: one browser for all of a file, a server and so an origin of its own for every test, and no
// error that nobody caught.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test as nodeTest } from "node:test";
import { newProfile, startServer } from "./support.mjs";

/** A test that ends, one way or the other: an answer that never comes is a failure like any. */
export const test = (name, body, timeout = 30_000) => nodeTest(name, { timeout }, body);

/**
 * Registers the hooks of a file.
 * @param {{ server?: object, browser?: object }} [options] of the server and of the browser
 * @returns what the current test has: its `server`, and the browser's `context`
 */
export function stage(options = {}) {
  const on = {
    /** @type {import("playwright-core").BrowserContext} */
    context: undefined,
    /** @type {import("../../www/server/server.mjs").Server} */
    server: undefined,
    /** Errors that nobody caught in a page, rejected promises among them. A test that expects some empties it. */
    uncaught: [],
    /** The complete POSTs that arrived, on one route or on all. */
    posts: (route) => on.server.log.entries().filter(({ method, complete, path }) => method === "POST" && complete && path === (route ?? path)),
    /** The entries of the log, as soon as so many POSTs are complete. */
    arrived: (count = 1) => on.server.log.until((entries) => entries.filter(({ method, complete }) => method === "POST" && complete).length >= count),
  };
  let profile;
  before(async () => {
    profile = await newProfile();
    on.context = await profile.launch(options.browser);
    on.context.on("weberror", (error) => on.uncaught.push(String(error.error()?.stack ?? error.error())));
  });
  after(async () => {
    await on.context?.close();
    await profile?.remove();
  });
  beforeEach(async () => {
    on.uncaught = [];
    on.server = await startServer(options.server);
  });
  afterEach(async () => {
    // The last one stays: without a page, the browser ends.
    for (const page of on.context.pages().slice(1)) await page.close();
    await on.server.close();
    assert.deepEqual(on.uncaught, []);
  });
  return on;
}
