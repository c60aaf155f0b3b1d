// The gate of an origin: while its server fails, one intent asks for all of them.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { closedGates, dump, faults, openPage, quick } from "./support.mjs";

const on = stage();
const COUNT = 20;

/** Submits so many orders at once, and resolves when all of them wait. */
const submitAll = (page) =>
  page.evaluate(async (count) => {
    for (let i = 0; i < count; i++) outbox.submit("/orders", { json: { i } });
    await listed((all) => all.length === count && all.every(({ state }) => state === "pending"));
  }, COUNT);

test("twenty intents over a server that fails: one at a time asks, from whichever tab, and all go when it is back", async () => {
  const options = { policy: { ...quick, delaysMs: [200], jitter: "none" } };
  const page = await openPage(on.context, on.server, options);
  faults(on.server, "/orders", [{ type: "status", status: 503 }], "repeat-last");
  await submitAll(page);
  // (Four of them were on their way before it was known.)
  const first = on.posts().length;
  assert.ok(first <= 5, `${first} arrivals`);
  const other = await openPage(on.context, on.server, options);
  await on.arrived(first + 6);
  const { intents } = await dump(other);
  const [gate, ...rest] = await closedGates(other);
  assert.deepEqual([gate.id, rest.length], [new URL(on.server.url).origin, 0]);
  const spent = intents.reduce((sum, intent) => sum + intent.spent, 0);
  // The first four count as one failure; what is just on its way is in one of the two numbers alone.
  assert.ok(Math.abs(spent - gate.failures - 3) <= 1, `${spent} attempts, ${gate.failures} failures in a row`);
  assert.ok(Math.abs(on.posts().length - spent) <= 1, `${spent} attempts, ${on.posts().length} arrivals`);
  on.server.faults.clear();
  // (Neither tab is told what the other delivered: the disk knows.)
  let disk;
  do disk = await dump(other);
  while (!disk.intents.every(({ state }) => state === "delivered"));
  assert.deepEqual(on.server.ledger().map(({ orders }) => orders), Array(COUNT).fill(1));
  assert.deepEqual(await closedGates(other), []);
});

test("a server that says when to come back hears nothing before, whoever has something for it", async () => {
  const options = { policy: { ...quick, delaysMs: [20], jitter: "none" } };
  const page = await openPage(on.context, on.server, options);
  faults(on.server, "/orders", [{ type: "status", status: 503, headers: { "retry-after": "600" } }], "repeat-last");
  await submitAll(page);
  const asked = on.posts().length;
  assert.ok(asked <= 4, `${asked} arrivals`);
  const other = await openPage(on.context, on.server, options);
  await other.evaluate(async () => {
    await listed((all) => all.length > 0);
    dispatchEvent(new Event("online"));
    await next(outbox.submit("/orders", { json: {} }), "waiting");
  });
  assert.equal(on.posts().length, asked);
});
