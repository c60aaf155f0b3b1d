// How long anything stays on the device, by a dump of the database.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();
const policy = { ...quick, delaysMs: [20], jitter: "none" };

test("what nobody comes back to is forgotten but for its key, and shown once more", async () => {
  const options = { policy, retentionMs: 0 };
  const page = await openPage(on.context, on.server, { policy });
  faults(on.server, "/orders", [{ type: "status", status: 422, body: "no such Ada" }, { type: "redirect", location: "http://127.0.0.1:1/" }], "repeat-last");
  await page.evaluate(() => void outbox.submit("/orders?name=Ada", { json: { name: "Ada" } }, { key: "ours", meta: { name: "Ada" }, formKey: "Ada", lane: "Ada" }).stored);
  await page.evaluate(() => allSettled());
  const kept = await dump(page);
  assert.match(JSON.stringify(kept), /Ada/);
  assert.equal(kept.bodies.length, 1, "a person may retry it");

  // The row's own time counts, not that of the page that looks.
  await gotoPage(page, on.server, options);
  await page.evaluate(() => listed((all) => all[0]?.state === "refused"));
  await page.evaluate(() => outbox.discard("ours"));
  faults(on.server, "/orders", [{ type: "status", status: 422, body: "no such Ada" }]);
  await page.evaluate(() => void outbox.submit("/orders?name=Ada", { json: { name: "Ada" } }, { key: "theirs", meta: { name: "Ada" }, formKey: "Ada", lane: "Ada" }).stored);
  await page.evaluate(() => allSettled());

  await gotoPage(page, on.server, { policy });
  const [intent] = await page.evaluate(() => listed((all) => all[0]?.state === "cancelled"));
  assert.deepEqual([intent.key, intent.reason, intent.meta, intent.url, intent.formKey, intent.evidence], ["theirs", "expired", null, "", null, null]);
  const { intents, bodies } = await dump(page);
  assert.doesNotMatch(JSON.stringify(intents), /Ada|orders|422/);
  assert.deepEqual([intents.length, bodies], [1, []]);
  assert.match(await page.evaluate(() => outbox.retry("theirs").catch(({ code }) => code)), /bad-state/);
  const outcome = await page.evaluate(() => endOf(outbox.submission("theirs")));
  assert.deepEqual([outcome.status, outcome.reason], ["cancelled", "expired"]);
  // Who was told has seen it.
  await page.evaluate(() => listed((all) => all.length === 0));
  assert.deepEqual(await dump(page), { intents: [], bodies: [] });
});

test("a thousand of them, of several owners, go a page at a time", async () => {
  const page = await openPage(on.context, on.server, { policy, retentionMs: 0, owner: "a" });
  faults(on.server, "/orders", [{ type: "status", status: 422 }], "repeat-last");
  await page.evaluate(async () => {
    const submission = outbox.submit("/orders", { json: { first: true } });
    await submission.outcome;
  });
  const [row] = (await dump(page)).intents;
  await page.evaluate(async (row) => {
    outbox.close();
    const open = indexedDB.open("resubmit:resubmit");
    await new Promise((resolve) => (open.onsuccess = resolve));
    const intents = open.result.transaction("intents", "readwrite").objectStore("intents");
    for (let n = 0; n < 1_000; n++) intents.put({ ...row, key: "k" + n, owner: n % 2 ? "b" : "a" });
    await new Promise((resolve) => (intents.transaction.oncomplete = resolve));
    open.result.close();
  }, row);
  await gotoPage(page, on.server, { policy });
  await page.evaluate(() => listed((all) => all.length === 501 && all.every(({ reason }) => reason === "expired")));
  let rows;
  do rows = (await dump(page)).intents;
  while (!rows.every(({ reason }) => reason === "expired"));
  assert.deepEqual(rows.length, 1_001);
});
