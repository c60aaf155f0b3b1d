// Owners: one at a time is sent and listed, nobody's work is lost, and nothing goes in another's session.
import assert from "node:assert/strict";
import { stage, test } from "./stage.mjs";
import { dump, faults, gotoPage, openPage, quick } from "./support.mjs";

const on = stage();
const policy = { ...quick, attemptTimeoutMs: 20_000, jitter: "none" };

const submit = (page, key, options = {}) =>
  page.evaluate(([key, options]) => void (window[key] = outbox.submit("/orders", { json: { key } }, { key, ...options })), [key, options]);
const setOwner = (page, owner) => page.evaluate((owner) => outbox.setOwner(owner), owner);
const endOf = (page, key) => page.evaluate((key) => endOf(window[key]), key);
/** The keys in the list, once there are so many. */
const keys = (page, count) => page.evaluate(async (count) => (await listed((all) => all.length === count)).map(({ key }) => key).sort(), count);
/** What is on the disk: owner, key and state of every row. */
const rows = async (page) => (await dump(page)).intents.map(({ owner, key, state }) => [owner, key, state].join(" ")).sort();
/** Who the database says is current. */
const stored = (page) =>
  page.evaluate(async () => {
    const open = indexedDB.open("resubmit:resubmit");
    await new Promise((resolve) => (open.onsuccess = resolve));
    const get = open.result.transaction("meta").objectStore("meta").get("owner");
    await new Promise((resolve) => (get.onsuccess = resolve));
    open.result.close();
    return get.result;
  });

test("signing out while an attempt is on its way: it is aborted, kept, and goes on when its owner returns, after a reload too", async () => {
  const page = await openPage(on.context, on.server, { policy, owner: "a" });
  faults(on.server, "/orders", [{ type: "hang" }, { type: "hang" }]);
  await submit(page, "one");
  await on.arrived();
  const events = await page.evaluate(async () => {
    const events = [];
    for (const type of ["ownerchange", "waiting", "attempted", "settled"]) outbox.addEventListener(type, ({ detail }) => events.push([type, detail.owner ?? detail.key ?? null]));
    const lists = [];
    outbox.intents.subscribe((list) => lists.push(list.length));
    await listed((all) => all.length === 1);
    await outbox.setOwner(null);
    return { events, lists };
  });
  assert.deepEqual(events, { events: [["ownerchange", null]], lists: [0, 1, 0] });
  assert.deepEqual(await rows(page), ["a one pending"]);
  const { intents } = await dump(page);
  assert.deepEqual([intents[0].maybeDelivered, intents[0].spent, intents[0].lease], [true, 0, undefined]);
  assert.deepEqual(await stored(page), { id: "owner", owner: null });
  await page.evaluate(() => dispatchEvent(new Event("online")));

  // Nobody is signed in: nothing is stored or sent.
  await submit(page, "nobodys");
  assert.equal((await endOf(page, "nobodys")).error, "no-owner");
  assert.equal(await page.evaluate(() => nobodys.stored.catch(({ code }) => code)), "no-owner");
  await submit(page, "unsaved", { durable: false });
  assert.equal((await endOf(page, "unsaved")).error, "no-owner");

  // In the same page.
  await setOwner(page, "a");
  await on.arrived(2);
  await setOwner(page, "b");
  assert.deepEqual(await rows(page), ["a one pending"]);

  // The database knows who is current.
  await gotoPage(page, on.server, { policy });
  await submit(page, "two");
  assert.equal((await endOf(page, "two")).status, "delivered");
  assert.deepEqual(await keys(page, 0), []);
  await setOwner(page, "a");
  await page.evaluate(() => void (window.one = outbox.submission("one")));
  assert.equal((await endOf(page, "one")).status, "delivered");
  assert.deepEqual(on.server.ledger().map(({ orders }) => orders), [1, 1]);
});

test("whoever follows a submission hears how it ends, when its owner has returned", async () => {
  const page = await openPage(on.context, on.server, { policy, owner: "a" });
  faults(on.server, "/orders", [{ type: "hang" }]);
  await submit(page, "cart");
  await on.arrived();
  await setOwner(page, "b");
  // Another's key of the same name is another's.
  await page.evaluate(() => void (window.theirs = outbox.submit("/orders", { json: { key: "cart" } }, { key: "cart" })));
  assert.deepEqual(await page.evaluate(async () => [(await endOf(theirs)).status, await Promise.race([cart.outcome, "pending"])]), ["delivered", "pending"]);
  on.server.faults.clear();
  await setOwner(page, "a");
  const { status, attempts, receipt } = await endOf(page, "cart");
  assert.deepEqual([status, attempts, receipt.status], ["delivered", 2, 201]);
});

test("the option is the application's word: it sets the owner as setOwner does, and null is nobody", async () => {
  const page = await openPage(on.context, on.server, { policy });
  faults(on.server, "/orders", [{ type: "status", status: 503 }], "repeat-last");
  await submit(page, "anonymous");
  await page.evaluate(() => next(window.anonymous, "waiting"));
  assert.equal(await stored(page), undefined);
  for (const owner of ["a", null]) {
    await gotoPage(page, on.server, { policy, owner });
    assert.deepEqual(await keys(page, 0), []);
    await page.evaluate(() => outbox.ready);
    assert.deepEqual(await stored(page), { id: "owner", owner });
    await submit(page, "own");
    if (owner === null) assert.equal((await endOf(page, "own")).error, "no-owner");
    else await page.evaluate(() => listed((all) => all.length === 1 && all[0].state === "pending" && all[0].attempt === 1));
  }
  await gotoPage(page, on.server, { policy, owner: "anonymous" });
  on.server.faults.clear();
  await page.evaluate(() => allSettled());
  assert.deepEqual(await rows(page), ["a own pending", "anonymous anonymous delivered"]);
  assert.deepEqual(await page.evaluate(() => outbox.setOwner(7).catch(({ code }) => code)), "bad-option");
});

test("two tabs: the one that has not heard sends nothing in another's session, keeps what is submitted, and changes over", async () => {
  const options = { policy: { ...policy, delaysMs: [100] } };
  const first = await openPage(on.context, on.server, { ...options, owner: "a" });
  const second = await openPage(on.context, on.server, options);
  await first.evaluate(() => void (window.changed = new Promise((resolve) => outbox.addEventListener("ownerchange", ({ detail }) => resolve(detail)))));
  await setOwner(second, "b");
  await submit(first, "one");
  assert.deepEqual(await first.evaluate(() => one.stored), { durable: true });
  assert.deepEqual(await first.evaluate(() => window.changed), { owner: "b" });
  assert.deepEqual(await rows(first), ["a one pending"]);
  assert.equal((await dump(first)).intents[0].attempts, 0);
  assert.deepEqual(await keys(first, 0), []);
  await submit(first, "two");
  assert.equal((await endOf(first, "two")).status, "delivered");
  assert.deepEqual(on.posts().length, 1);

  // One that sees it by looking.
  const lookAgain = () =>
    first.evaluate(async () => {
      const changed = new Promise((resolve) => outbox.addEventListener("ownerchange", ({ detail }) => resolve(detail.owner)));
      dispatchEvent(new Event("focus"));
      return changed;
    });
  await setOwner(second, null);
  assert.equal(await lookAgain(), null);
  await submit(first, "three");
  assert.equal((await endOf(first, "three")).error, "no-owner");
  // So does one in which nobody is signed in.
  await setOwner(second, "a");
  assert.equal(await lookAgain(), "a");
  assert.deepEqual(await keys(first, 1), ["one"]);
  await on.arrived(2);
  assert.equal(on.server.ledger().length, 2);
});

test("clear deletes every row and body of an owner and of no other, ends what is followed, and records no late answer", async () => {
  const page = await openPage(on.context, on.server, { policy, owner: "b" });
  faults(on.server, "/orders", [{ type: "hang" }, { type: "hang" }, { type: "hang" }]);
  await submit(page, "theirs");
  await on.arrived();
  await setOwner(page, "a");
  await submit(page, "sent");
  await submit(page, "unsaved", { durable: false });
  await on.arrived(3);
  assert.equal((await dump(page)).bodies.length, 2);
  await keys(page, 2);
  assert.deepEqual(await page.evaluate(() => outbox.clear("a")), undefined);
  for (const key of ["sent", "unsaved"]) {
    const { status, reason } = await endOf(page, key);
    assert.deepEqual([key, status, reason], [key, "cancelled", "cleared"]);
  }
  assert.deepEqual(await keys(page, 0), []);
  const left = await dump(page);
  assert.deepEqual([left.intents.map(({ owner }) => owner), left.bodies.length], [["b"], 1]);
  assert.equal(await page.evaluate(() => outbox.submission("sent").outcome.catch(({ code }) => code)), "unknown-key");

  // What comes after is new; and one who is not current is cleared like any.
  await submit(page, "fresh");
  assert.equal((await endOf(page, "fresh")).status, "delivered");
  await page.evaluate(() => outbox.clear("b"));
  const { status, reason } = await endOf(page, "theirs");
  assert.deepEqual([status, reason], ["cancelled", "cleared"]);
  assert.deepEqual(await rows(page), []);
  assert.deepEqual((await dump(page)).bodies, []);
});

test("without storage owners are kept apart in the page", async () => {
  const page = await openPage(on.context, on.server, { policy, owner: "a", storage: "memory" });
  faults(on.server, "/orders", [{ type: "hang" }]);
  await submit(page, "one");
  await on.arrived();
  await setOwner(page, "b");
  assert.deepEqual(await keys(page, 0), []);
  await submit(page, "two");
  assert.equal((await endOf(page, "two")).status, "delivered");
  await setOwner(page, "a");
  assert.equal((await endOf(page, "one")).status, "delivered");
});

test("what was submitted before the database said who is current is theirs; what comes after setOwner is the new one's", async () => {
  const page = await openPage(on.context, on.server, { policy, owner: "a" });
  await page.evaluate(() => outbox.ready);
  faults(on.server, "/orders", [{ type: "hang" }, { type: "hang" }]);
  await page.goto(on.server.url + "/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
  await page.evaluate(async (policy) => {
    window.outbox = resubmit.createOutbox({ policy });
    outbox.submit("/orders", { json: 1 }, { key: "first" });
    const heard = outbox.setOwner("b");
    const second = outbox.submit("/orders", { json: 2 }, { key: "second" });
    await Promise.all([heard, second.stored]);
  }, policy);
  await on.arrived(1);
  assert.deepEqual(await rows(page), ["a first pending", "b second sending"]);
});
