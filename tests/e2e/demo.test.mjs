// The demonstration, built and served as `npm start` does: what it says after a person acted, and where focus goes then.
import assert from "node:assert/strict";
import { join } from "node:path";
import { before } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { openPage } from "./support.mjs";
import { stage, test } from "./stage.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const outDir = join(root, "build/demo");
const MADE_502 = "makes the order but answers 502, twice";
const REPLAYED = "repeats a stored failure (500)";

const on = stage({
  server: {
    mounts: [
      { prefix: "/", dir: outDir },
      { prefix: "/dist/", dir: join(root, "dist") },
      { prefix: "/t/", dir: join(root, "tests/e2e/pages") },
    ],
  },
});
before(() => build({ root: join(root, "www/demo"), build: { outDir, emptyOutDir: true }, logLevel: "warn" }));

/** @param {string} [preset] the fault to choose */
async function open(preset) {
  const page = await on.context.newPage();
  await page.goto(on.server.url + "/");
  await page.waitForFunction(() => document.querySelector("#ours-says")?.textContent !== "");
  if (preset) await page.getByLabel(preset, { exact: true }).check();
  return page;
}

/** What is on the page of the newest order, and of what is announced. @param {import("playwright-core").Page} page */
const read = (page) =>
  page.evaluate(() => {
    const text = (/** @type {string} */ selector) => document.querySelector(selector)?.textContent?.trim();
    return {
      label: text("#outbox li .label"),
      facts: text("#outbox li .facts"),
      status: text("#status"),
      balance: text("#ours-balance"),
      focus: document.activeElement?.id || document.activeElement?.textContent,
    };
  });

/** @param {import("playwright-core").Page} page @param {string} name */
async function press(page, name) {
  const button = page.locator("#outbox .buttons button:visible", { hasText: name }).first();
  await button.focus();
  await button.press("Enter");
}

const order = (page) => page.click("button[value=ours]");
const label = (page, text) => page.locator("#outbox li .label", { hasText: text }).first().waitFor();
const says = (page, text) => page.locator("#status", { hasText: text }).waitFor();
const empty = (page) => page.waitForSelector("#outbox-empty:not([hidden])");
const silent = (page) => page.waitForSelector("#status:empty", { state: "attached" });
/** Longer than what is said waits for a state to last. */
const lull = (page) => page.waitForTimeout(500);

test("a cancelled order that may have arrived says so", async () => {
  const page = await open(MADE_502);
  await order(page);
  await page.waitForSelector("#outbox .countdown:not(:empty)");
  const waiting = await read(page);
  assert.match(waiting.facts, /^after attempt 1 of 8 · .* · saved on this device · may already have been received$/);
  await press(page, "Cancel");
  await says(page, "Cancelled, but may already have been received.");
  const cancelled = await read(page);
  assert.equal(cancelled.label, "Cancelled, but may already have been received");
  assert.equal(cancelled.facts, "after one attempt · given up; the last answer was 502");
  assert.equal(on.server.orders().length, 1);
  await page.locator("#ours-balance", { hasText: "1 made before you gave it up" }).waitFor();
});

test("a cancelled order that did not arrive does not say that it may have", async () => {
  const page = await open();
  await page.context().setOffline(true);
  try {
    await order(page);
    await label(page, "waiting for the network");
    await lull(page);
    await press(page, "Cancel");
    await says(page, "Cancelled.");
    assert.equal((await read(page)).label, "Cancelled");
  } finally {
    await page.context().setOffline(false);
  }
});

test("what is over is not said to be on the device, and what waits says it once", async () => {
  const page = await open("down for 20 s: every connection breaks");
  await order(page);
  await label(page, "Saved on this device");
  assert.doesNotMatch((await read(page)).facts, /saved/);
  await page.getByLabel("works", { exact: true }).check();
  await label(page, "Delivered");
  assert.match((await read(page)).facts, /^after \d attempts · answered 201$/);
});

test("focus goes on to the next button of the row, or to the outbox", async () => {
  const page = await open(MADE_502);
  await order(page);
  await page.waitForSelector("#outbox .countdown:not(:empty)");
  await press(page, "Cancel");
  await label(page, "Cancelled");
  assert.equal((await read(page)).focus, "Seen, remove");
  await page.keyboard.press("Enter");
  await empty(page);
  assert.equal((await read(page)).focus, "outbox-title");

  await page.getByLabel("refuses the order (422)").check();
  await order(page);
  await label(page, "Needs your attention");
  await press(page, "Discard");
  await empty(page);
  assert.equal((await read(page)).focus, "outbox-title");
});

test("focus stays in the row where the state changes by itself", async () => {
  const page = await open("fails twice (503), then works");
  await order(page);
  await page.waitForSelector("#outbox .countdown:not(:empty)");
  await page.locator("#outbox button:visible", { hasText: "Cancel" }).focus();
  await label(page, "Delivered");
  assert.ok(await page.evaluate(() => document.activeElement?.matches("#outbox li")));
});

test("Retry keeps focus in the row", async () => {
  await parked({ route: "/orders", fault: { type: "commit-status", status: 503 }, options: { policy: { maxAttempts: 1 } } });
  const page = await open();
  await label(page, "May already have been received");
  on.server.faults.put({ route: "/orders", script: [{ type: "slow", ms: 3_000 }], then: "ok" });
  await press(page, "Retry");
  await page.locator("#outbox button:visible", { hasText: "Cancel" }).waitFor();
  assert.equal((await read(page)).focus, "Cancel");
});

test("nothing is left standing of an order that is gone", async () => {
  const page = await open("refuses the order (422)");
  await order(page);
  await says(page, "Needs your attention.");
  await press(page, "Discard");
  await says(page, "2 × Green tea for Ada: Discarded.");
  await page.waitForSelector("#alert:empty", { state: "attached" });

  await page.getByLabel("works", { exact: true }).check();
  await order(page);
  await says(page, "Delivered.");
  await press(page, "Seen, remove");
  await empty(page);
  await silent(page);
  await lull(page);
  assert.equal((await read(page)).status, "");

  await order(page);
  await label(page, "Delivered");
  // Before its delivery is said: it must not be said of an order that is gone.
  await page.click("#reset");
  await empty(page);
  await lull(page);
  assert.equal((await read(page)).status, "");
});

test("a retry that may do it twice asks first", async () => {
  const page = await open(REPLAYED);
  await order(page);
  await label(page, "May already have been received");
  await press(page, "Retry");
  await page.locator("#repeat button", { hasText: "Leave it" }).click();
  await lull(page);
  assert.equal((await read(page)).label, "May already have been received");
  assert.equal((await read(page)).focus, "Retry");
  assert.equal(on.posts("/orders").length, 1);

  await press(page, "Retry");
  await page.locator("#repeat button.danger").click();
  await label(page, "Delivered");
  assert.equal(on.server.orders().length, 1);
});

test("so does one to a server that ignores the key, where the key is kept", async () => {
  await parked({ route: "/orders-plain", fault: { type: "commit-status", status: 502 }, options: { onMaybeDelivered: "park" } });
  const page = await open();
  await label(page, "May already have been received");
  await press(page, "Retry");
  await page.locator("#repeat button", { hasText: "Leave it" }).click();
  await lull(page);
  assert.equal(on.server.orders().length, 1);

  await press(page, "Retry");
  await page.locator("#repeat button.danger").click();
  await label(page, "Delivered");
  const [first, second] = on.posts("/orders-plain");
  assert.equal(second.key, first.key);
  assert.equal(on.server.orders().length, 2);
});

/** Leaves a parked order in the demonstration's outbox, from a page of the same origin that is closed then. */
async function parked({ route, fault, options }) {
  on.server.faults.put({ route, script: [fault], then: "ok" });
  const page = await openPage(on.context, on.server);
  await page.evaluate(
    async ([route, options]) => {
      const order = { customer: "Ada", item: "Green tea", quantity: 2 };
      const { outcome } = window.resubmit.createOutbox().submit(route, { json: order }, { ...options, meta: order });
      await outcome;
    },
    [route, options],
  );
  await page.close();
}
