// Lanes keep an order, and of a coalesceKey only the newest counts: over reloads, tabs and failures.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();
const policy = { ...quick, delaysMs: [20], jitter: "none" };
const open = (options = { policy }) => openPage(on.context, on.server, options);
/** One route's own failure: the gate of the origin stays open. */
const busy = { type: "status", status: 500 };

/** Submits an order and resolves with its key as soon as it is stored. */
const submit = (page, n, options) =>
  page.evaluate(
    async ([n, options]) => {
      const submission = outbox.submit("/orders", { json: { n } }, { meta: n, ...options });
      (window.outcomes ??= [])[n] = submission.outcome.then(({ status, reason }) => [status, reason ?? null]);
      await submission.stored;
      return submission.key;
    },
    [n, options],
  );

/** The keys of what arrived, in the order of arrival, without repetitions in a row. */
const order = () => on.posts().map(({ key }) => key).filter((key, at, all) => key !== all[at - 1]);

const ended = (page, n) => page.evaluate((n) => outcomes[n], n);

test("a lane keeps its order over failures and a reload; others overtake it", async () => {
  const slow = { policy: { ...policy, delaysMs: [400] } };
  const page = await open(slow);
  faults(on.server, "/orders", [busy]);
  const keys = [];
  for (const n of [0, 1, 2]) keys.push(await submit(page, n, { lane: "a" }));
  const other = await submit(page, 3, { lane: "b" });
  assert.deepEqual(await ended(page, 3), ["delivered", null]);
  const list = await page.evaluate(() => listed((all) => all.filter(({ reason }) => reason === "queued").length === 2));
  const queued = list.find(({ meta }) => meta === 1);
  assert.deepEqual([queued.lane, queued.nextAttemptAt, queued.attempt, queued.maybeDelivered], ["a", null, 0, false]);
  await gotoPage(page, on.server, slow);
  await page.evaluate(() => listed((all) => all.length === 3 && all.every(({ state }) => state === "delivered")));
  assert.deepEqual(order(), [keys[0], other, ...keys]);
  assert.ok(on.server.ledger().every(({ orders }) => orders === 1));
});

test("what is submitted in another tab queues behind, and goes when the first tab has delivered", async () => {
  const [first, second] = [await open(), await open()];
  faults(on.server, "/orders", [{ type: "slow", ms: 300 }]);
  const a = await submit(first, 0, { lane: "a" });
  const b = await submit(second, 1, { lane: "a" });
  const [, queued] = (await dump(second)).intents.sort((x, y) => x.createdAt - y.createdAt);
  assert.deepEqual([queued.reason, queued.attempts, "nextAttemptAt" in queued], ["queued", 0, false]);
  assert.deepEqual(await ended(first, 0), ["delivered", null]);
  await on.arrived(2);
  assert.deepEqual(order(), [a, b]);
});

test("a parked intent holds its lane until it is discarded; one that skips lets the next go", async () => {
  const page = await open();
  const parks = { type: "status", status: 302 };
  for (const onParked of ["hold", "skip"]) {
    const seen = on.posts().length;
    faults(on.server, "/orders", [parks]);
    const first = await submit(page, 0, { lane: onParked, onParked });
    const second = await submit(page, 1, { lane: onParked });
    assert.deepEqual(await ended(page, 0), ["parked", "unexpected"]);
    if (onParked === "hold") {
      const intent = await page.evaluate((key) => listed((all) => all.find((each) => each.key === key)?.reason === "queued").then((all) => all.find((each) => each.key === key)), second);
      assert.equal(intent.state, "pending");
      assert.equal(on.posts().length, seen + 1);
      await page.evaluate((key) => outbox.discard(key), first);
    }
    assert.deepEqual(await ended(page, 1), ["delivered", null]);
  }
});

test("of what was never sent only the newest goes; what may have been sent is waited for", async () => {
  const page = await open();
  const options = { coalesceKey: "draft" };
  await on.context.setOffline(true);
  await submit(page, 0, options);
  await page.evaluate(() => listed((all) => all[0]?.reason === "offline"));
  await submit(page, 1, options);
  await submit(page, 2, options);
  assert.deepEqual([await ended(page, 0)], [["cancelled", "superseded"]]);
  await page.evaluate(() => listed((all) => all.some(({ meta, reason }) => meta === 2 && reason !== null)));
  await on.context.setOffline(false);
  assert.deepEqual(await ended(page, 2), ["delivered", null]);
  assert.equal(on.posts().length, on.server.ledger().length);
  const superseded = await ended(page, 1);
  if (superseded[0] === "cancelled") assert.equal(on.posts().length, 1);

  faults(on.server, "/orders", [{ type: "commit-drop" }, { type: "slow", ms: 100 }]);
  const before = on.posts().length;
  const first = await submit(page, 3, options);
  await submit(page, 4, options);
  const last = await submit(page, 5, options);
  assert.deepEqual([await ended(page, 3), await ended(page, 4), await ended(page, 5)], [["delivered", null], ["cancelled", "superseded"], ["delivered", null]]);
  const keys = on.posts().slice(before).map(({ key }) => key);
  assert.deepEqual([...new Set(keys)], [first, last]);
});
