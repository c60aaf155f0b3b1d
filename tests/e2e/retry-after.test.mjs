// What the server asks for before the next attempt: a floor, never less, and nothing beyond sense.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { faults, openPage, quick, startServer } from "./support.mjs";

const on = stage();

const policy = { ...quick, delaysMs: [20], jitter: "none" };
const open = () => openPage(on.context, on.server, { policy });
const busy = (status, headers) => ({ type: "status", status, headers });

/** An outbox of its own for each case: one that has seen an origin fail holds back what goes there next. */
const renew = (page) => page.evaluate((policy) => open_({ name: crypto.randomUUID(), policy }), policy);

/** Submits and resolves with the intent in its first wait. */
async function waiting(page, url = "/orders") {
  await renew(page);
  return page.evaluate((url) => next((window.submission = outbox.submit(url, { json: { item: "tea" } })), "waiting"), url);
}

test("Retry-After is a floor, in each of its forms; what is malformed is ignored", async () => {
  const page = await open();
  const date = "Tue, 01 Dec 2026 00:00:00 GMT";
  for (const [value, floor] of [
    ["2", 2_000],
    ["1.5", 2_000],
    ["Tue, 01 Dec 2026 00:00:02 GMT", 2_000],
    ["Tuesday, 01-Dec-26 00:00:02 GMT", 2_000],
    ["Tue Dec  1 00:00:02 2026", 2_000],
    ["7200", 7_200_000],
    ...["-3", "+3", "120junk", "5, 10", "10;q=1", "1e3", "0x10", "2026-12-01T00:00:02Z", "soon", ""].map((junk) => [junk, null]),
  ]) {
    on.server.reset();
    faults(on.server, "/orders", [busy(503, { "retry-after": value, date })]);
    const { nextAttemptAt, evidence } = await waiting(page);
    await page.evaluate(() => submission.cancel());
    const wait = nextAttemptAt - evidence.at;
    if (floor === null) assert.equal(wait, 20, value);
    // On top of the floor comes jitter, also where the policy has none: the larger of a tenth and a second.
    else assert.ok(wait >= floor && wait <= floor + Math.max(1_000, floor / 10), `${value}: ${wait} ms`);
  }
});

test("Retry-After: waited in full, and beyond all sense parked at once", async () => {
  const page = await open();
  faults(on.server, "/orders", [busy(429, { "retry-after": "1" })]);
  assert.equal((await page.evaluate(() => endOf(outbox.submit("/orders", { json: { item: "tea" } })))).status, "delivered");
  const [first, second] = on.posts().map(({ time }) => Date.parse(time));
  assert.ok(second - first >= 1_000, `${second - first} ms`);
  for (const value of ["86401", "2200000", "9999999999", "99999999999999999999", "Thu, 31 Dec 2099 00:00:00 GMT"]) {
    on.server.reset();
    await renew(page);
    faults(on.server, "/orders", [busy(503, { "retry-after": value })]);
    const ended = await page.evaluate(() => endOf(outbox.submit("/orders", { json: { item: "tea" } })));
    assert.deepEqual([ended.status, ended.reason, ended.attempts], ["parked", "retry-after-too-long", 1], value);
    assert.equal(on.posts().length, 1, value);
  }
});

test("a Retry-After that CORS hides gets a larger floor; one that is exposed is obeyed", async () => {
  const other = await startServer();
  const page = await open();
  for (const [exposed, status, least, most] of [
    [false, 429, 10_000, 12_000],
    [false, 503, 10_000, 12_000],
    [true, 429, 3_000, 5_000],
    [false, 500, 20, 20],
  ]) {
    other.cors.settings.expose = exposed;
    faults(other, "/orders", [busy(status, { "retry-after": "3" })]);
    const { nextAttemptAt, evidence } = await waiting(page, other.url + "/orders");
    await page.evaluate(() => submission.cancel());
    const wait = nextAttemptAt - evidence.at;
    assert.ok(wait >= least && wait <= most, `${status}, exposed ${exposed}: ${wait} ms`);
  }
  await other.close();
});
