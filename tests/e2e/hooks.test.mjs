// What an answer means to the application: `classify` and `isDelivered`, as functions and as data.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();
const policy = { ...quick, delaysMs: [20], jitter: "none" };

/** Opens a page whose outbox has hooks, given as the source of an object: functions do not travel. */
async function open(hooks, options = {}) {
  const page = await on.context.newPage();
  await page.goto(on.server.url + "/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
  await page.evaluate(([hooks, options]) => void window.open_({ ...options, ...new Function("return " + hooks)() }), [hooks, { policy, ...options }]);
  return page;
}
const submit = (page, init = { json: {} }, options = {}) => page.evaluate(([init, options]) => endOf(outbox.submit("/orders", init, options)), [init, options]);
const answer = (status, body = { ok: true }, headers = {}) => ({ type: "commit-status", status, body, headers });
const short = ({ status, reason, attempts }) => [status, reason, attempts];

test("classify overrides any answer, and reads a copy of it", async () => {
  const page = await open(`{ async classify(response, intent) { const { say } = await response.json(); return intent.key === "other" ? null : say ?? undefined; } }`);
  const ends = [];
  for (const [status, say] of [[422, "delivered"], [200, "refused"], [201, "parked"], [503, "delivered"], [200, null], [422, null]]) {
    faults(on.server, "/orders", [answer(status, { say })]);
    const { status: ended, reason, response } = await submit(page);
    ends.push([ended, reason, response?.bodyUsed]);
  }
  assert.deepEqual(ends, [
    ["delivered", undefined, false],
    ["refused", "invalid", false],
    ["parked", "unexpected", undefined],
    ["delivered", undefined, false],
    ["delivered", undefined, false],
    ["refused", "invalid", false],
  ]);
  faults(on.server, "/orders", [answer(200, { say: "retry" }), answer(200, { say: "unauthorized" }), answer(200, { say: null })]);
  await page.evaluate(() => void (window.last = outbox.submit("/orders", { json: {} })));
  await page.evaluate(() => listed((all) => all.some(({ reason }) => reason === "unauthorized")));
  await page.evaluate(() => outbox.resume());
  assert.deepEqual(short(await page.evaluate(() => endOf(last))), ["delivered", undefined, 3]);
});

test("a hook that throws, says what is on no list, or hangs: a 2xx is parked, of others the table decides", async () => {
  for (const hook of [
    `classify() { throw new Error("no") }`,
    `async classify() { throw undefined }`,
    `classify: () => "maybe"`,
    `isDelivered: () => undefined`,
    `isDelivered: async (response) => (await response.json(), (await response.json()))`,
    `classify: () => new Promise(() => {})`,
  ]) {
    const page = await open(`{ ${hook} }`, { policy: { ...policy, attemptTimeoutMs: 2_000 } });
    faults(on.server, "/orders", [{ type: "commit-status", status: 201 }, { type: "status", status: 422 }]);
    const parked = await submit(page);
    assert.deepEqual([...short(parked), parked.maybeDelivered, parked.evidence.status], ["parked", "hook-failed", 1, true, 201], hook);
    assert.deepEqual(short(await submit(page)), ["refused", "invalid", 1], hook);
    await page.evaluate(() => outbox.clear("anonymous"));
    await page.close();
  }
});

test("isDelivered as a function: false is tried again under the same key, and only a 2xx is asked about", async () => {
  const page = await open(`{ isDelivered: async (response) => { (window.asked ??= []).push(response.status); return (await response.text()).includes("true"); } }`);
  faults(on.server, "/orders", [answer(200, { ok: false }), { type: "status", status: 500 }, answer(200)]);
  assert.deepEqual(short(await submit(page)), ["delivered", undefined, 3]);
  assert.deepEqual(await page.evaluate(() => asked), [200, 200]);
  assert.equal(new Set(on.posts().map(({ key }) => key)).size, 1);
});

test("isDelivered as data is kept in the row: a page without it judges by it", async () => {
  const page = await open(`{ isDelivered: { contentType: "application/json", header: "X-Order: taken" } }`);
  // A captive portal.
  faults(on.server, "/orders", [{ type: "status", status: 200, body: "<h1>Welcome</h1>", contentType: "text/html" }], "repeat-last");
  await page.evaluate(() => void outbox.submit("/orders", { json: {} }));
  await on.arrived(2);
  const [waiting] = await page.evaluate(() => listed((all) => all[0]?.state === "pending"));
  assert.equal(waiting.reason, "not-acknowledged");
  const asked = { contentType: "application/json", header: "X-Order: taken", statuses: [] };
  assert.deepEqual((await dump(page)).intents[0].isDelivered, asked);
  await gotoPage(page, on.server, { policy });
  const before = on.posts().length;
  await on.arrived(before + 1);
  faults(on.server, "/orders", [answer(200, {}, { "X-Order": "later" }), answer(200, {}, { "X-Order": "taken" })]);
  await page.evaluate(() => allSettled());
  assert.equal(on.server.orders().length, 1);
  // A submission's own comes first.
  faults(on.server, "/orders", [answer(202), answer(201)]);
  assert.deepEqual(short(await submit(page, { json: {} }, { isDelivered: { statuses: [201] } })), ["delivered", undefined, 2]);
});

test("a page without the function leaves the intent to one that has it", async () => {
  const page = await open(`{ isDelivered: () => false }`, { policy: { ...policy, delaysMs: [2_000] } });
  await page.evaluate(() => void outbox.submit("/orders", { json: {} }));
  await page.evaluate(() => listed((all) => all[0]?.reason === "not-acknowledged"));
  await gotoPage(page, on.server, { policy });
  const [{ nextAttemptAt }] = await page.evaluate(() => listed((all) => all[0]?.state === "pending"));
  await page.waitForFunction((due) => Date.now() > due, nextAttemptAt);
  // What another does now comes after what was due before it.
  await submit(page, { json: { b: 1 } });
  await submit(page, { json: { b: 2 } });
  assert.equal(on.posts().length, 3);
  const with_ = await open(`{ isDelivered: () => true }`);
  await with_.evaluate(() => allSettled());
  assert.equal(on.server.orders().length, 3);
});

test("what is no hook is an error that names it", async () => {
  for (const [hooks, field] of [
    [`{ classify: 7 }`, "classify: expected a function"],
    [`{ isDelivered: 7 }`, "isDelivered: expected an object"],
    [`{ isDelivered: { statuses: [422] } }`, "isDelivered.statuses: expected"],
    [`{ isDelivered: {} }`, "isDelivered.statuses: expected"],
    [`{ isDelivered: { status: [200] } }`, "isDelivered.status: unknown"],
  ]) {
    const page = await open(hooks);
    const { code, message } = await page.evaluate(() => outbox.ready.catch(({ code, message }) => ({ code, message })));
    assert.equal(code, "bad-option", hooks);
    assert.ok(message.startsWith("options." + field), message);
    await page.close();
  }
});
