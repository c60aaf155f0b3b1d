// Credentials: `authorize` before the first attempt and after a refusal, and the sign-in gate behind which nothing is lost.
import assert from "node:assert/strict";
import { beforeEach } from "node:test";
import { stage, test } from "./stage.mjs";
import { dump, faults, openPage, quick, startServer } from "./support.mjs";

const on = stage();
const policy = { ...quick, delaysMs: [20], jitter: "none" };

beforeEach(() => {
  on.server.access.tokens = new Set(["fresh"]);
});

/**
 * Opens a page whose hook gives `Bearer` and whatever `window.token` is, writes down what it was asked, and opens its outbox. `null`
 * stands for itself.
 */
async function open(token, options = {}) {
  const page = await on.context.newPage();
  await page.goto(on.server.url + "/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
  await page.evaluate(
    ([token, options]) => {
      window.token = token;
      window.whys = [];
      window.open_({
        ...options,
        authorize: async (intent, why) => {
          whys.push(why);
          if (token instanceof Error) throw token;
          return window.token === null ? null : { Authorization: "Bearer " + window.token };
        },
      });
    },
    [token, { policy, ...options }],
  );
  return page;
}

const submit = (page, init = { json: {} }) =>
  page.evaluate(async (init) => {
    const submission = outbox.submit("/orders", init);
    await submission.stored;
    (window.ends ??= []).push(endOf(submission));
  }, init);
const ends = (page) => page.evaluate(() => Promise.all(ends));
const allWait = (page, count) => page.evaluate((count) => listed((all) => all.length === count && all.every(({ state, reason }) => state === "pending" && reason === "unauthorized")), count);
const tokens = () => on.posts().map(({ headers }) => headers.authorization ?? null);
const whys = (page) => page.evaluate(() => whys);

test("the hook is asked before the first attempt, and what it gives is sent and never stored", async () => {
  const page = await open("fresh");
  await submit(page);
  const [{ status, attempts }] = await ends(page);
  assert.deepEqual([status, attempts], ["delivered", 1]);
  assert.deepEqual(tokens(), ["Bearer fresh"]);
  assert.deepEqual(await whys(page), ["first"]);
  faults(on.server, "/orders", [{ type: "status", status: 500 }], "repeat-last");
  await submit(page);
  await on.arrived(3);
  assert.doesNotMatch(JSON.stringify(await dump(page)), /fresh|Bearer/);
});

test("a refusal asks once more and makes one more attempt, which is not spent", async () => {
  const page = await open("stale");
  await page.evaluate(() => {
    const { whys } = window;
    window.whys = { push: (why) => (whys.push(why), why === "unauthorized" && (window.token = "fresh")), all: whys };
  });
  await submit(page);
  const [{ status, attempts }] = await ends(page);
  assert.deepEqual([status, attempts], ["delivered", 2]);
  assert.deepEqual(tokens(), ["Bearer stale", "Bearer fresh"]);
  assert.deepEqual(await page.evaluate(() => whys.all), ["first", "unauthorized"]);
});

test("headers of the submission's own go first; the hook's take their place", async () => {
  const page = await open("fresh");
  await submit(page, { json: {}, headers: { Authorization: "Bearer own", "X-Tenant": "t1" } });
  assert.equal((await ends(page))[0].status, "delivered");
  assert.deepEqual(tokens(), ["Bearer own", "Bearer fresh"]);
  assert.deepEqual(on.posts().map(({ headers }) => headers["x-tenant"]), ["t1", "t1"]);
});

test("refused again, everything of that origin waits, other origins go on, and signing in lets all of it go", async () => {
  const page = await open("stale");
  for (let n = 0; n < 6; n++) await submit(page);
  await allWait(page, 6);
  const before = on.posts().length;
  assert.ok(before <= 10, `${before} arrivals`);
  const { intents } = await dump(page);
  assert.ok(intents.every(({ spent }) => spent === 0));

  const other = await startServer();
  const elsewhere = await page.evaluate((url) => endOf(outbox.submit(url + "/orders-plain", { body: "a=b", headers: { "content-type": "application/x-www-form-urlencoded" } })), other.url);
  await other.close();
  assert.equal(elsewhere.status, "delivered");
  assert.equal(on.posts().length, before);

  await page.evaluate(() => {
    window.token = "fresh";
    return outbox.resume("unauthorized");
  });
  assert.deepEqual((await ends(page)).map(({ status }) => status), Array(6).fill("delivered"));
  assert.equal(on.posts().length, before + 6);
  const wrong = await page.evaluate(() => outbox.resume("else").catch(({ code, message }) => code + " " + message));
  assert.match(wrong, /^bad-option reason: expected/);
});

test("not now: nothing is sent, the person is told why, and a reload tries once", async () => {
  const page = await open(null);
  await submit(page);
  const [intent] = await allWait(page, 1);
  assert.deepEqual([intent.attempt, intent.maybeDelivered], [0, false]);
  assert.equal(on.posts().length, 0);
  await page.close();
  const next = await open("fresh");
  await on.arrived(1);
  await next.evaluate(() => allSettled());
  assert.deepEqual(await whys(next), ["first"]);
});

test("a page without the hook leaves the intent alone; one with it takes it up", async () => {
  const page = await open(null);
  await submit(page, { json: {}, headers: { "X-Secret": "s" } });
  await allWait(page, 1);
  assert.equal(on.posts().length, 1);
  await page.close();
  const without = await openPage(on.context, on.server, { policy });
  // What another intent does there comes after what was due before it.
  on.server.access.tokens = null;
  await without.evaluate(() => endOf(outbox.submit("/orders", { json: { b: 1 } })));
  assert.equal(on.posts().length, 2);
  await without.close();
  const lacking = await open("fresh");
  const warned = lacking.waitForEvent("console", { predicate: (message) => /authorize gave no x-secret/.test(message.text()) });
  await warned.catch(() => {});
  assert.equal(on.posts().length, 2);
});

test("a hook that throws is survived: it is asked again, and others do not wait for it", async () => {
  const page = await on.context.newPage();
  await page.goto(on.server.url + "/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
  const ended = await page.evaluate(async () => {
    window.open_({
      authorize: (intent) => {
        if (intent.meta === "bad") throw new TypeError("no session");
        return { Authorization: "Bearer fresh" };
      },
    });
    const bad = outbox.submit("/orders", { json: {} }, { meta: "bad" });
    await bad.stored;
    const good = await endOf(outbox.submit("/orders", { json: {} }, { meta: "good" }));
    const all = await listed((all) => all.some(({ meta }) => meta === "bad"));
    return [good.status, all.find(({ meta }) => meta === "bad").state];
  });
  assert.deepEqual(ended, ["delivered", "pending"]);
  assert.deepEqual(tokens(), ["Bearer fresh"]);
});

test("one refresh at a time, over all tabs", async () => {
  const pages = [await open("stale"), await open("stale")];
  const log = [];
  let token = "stale";
  for (const page of pages) {
    await page.exposeFunction("session", () => token);
    await page.exposeFunction("refresh", async () => {
      log.push("begins");
      await pages[0].evaluate(() => fetch("/orders"));
      log.push("ends");
      token = "fresh";
    });
  }
  await Promise.all(
    pages.map((page) =>
      page.evaluate(() => {
        outbox.close();
        window.open_({
          policy: { delaysMs: [20], jitter: "none" },
          authorize: async (intent, why) => {
            if (why === "unauthorized") await refresh();
            return { Authorization: "Bearer " + (await session()) };
          },
        });
        for (const n of [0, 1]) outbox.submit("/orders", { json: { n } });
      }),
    ),
  );
  await on.server.log.until(() => on.server.orders().length === 4);
  assert.ok(log.length >= 2 && log.every((what, at) => what === ["begins", "ends"][at % 2]), log.join());
});

test("a tab that froze in the middle of its refresh does not hold up the others", async () => {
  const frozen = await on.context.newPage();
  await frozen.goto(on.server.url + "/t/index.html");
  // As it keeps the lock: for ever.
  await frozen.evaluate((name) => new Promise((held) => navigator.locks.request(name, () => new Promise(() => held()))), `resubmit:resubmit:authorize:${on.server.url}`);
  const page = await on.context.newPage();
  await page.clock.install();
  await page.goto(on.server.url + "/t/index.html");
  await page.waitForFunction(() => "resubmit" in window);
  await page.evaluate(() => {
    window.whys = [];
    window.open_({
      policy: { delaysMs: [20], jitter: "none" },
      authorize: (intent, why) => {
        whys.push(why);
        return { Authorization: why === "first" ? "Bearer stale" : "Bearer fresh" };
      },
    });
    window.order = outbox.submit("/orders", { json: {} });
  });
  await on.arrived(1);
  await page.evaluate(async () => {
    let locks;
    do locks = await navigator.locks.query();
    while (locks.pending.length === 0);
  });
  assert.deepEqual(await whys(page), ["first"]);
  await page.clock.fastForward(31_000);
  assert.equal((await page.evaluate(() => endOf(order))).status, "delivered");
  assert.deepEqual(await whys(page), ["first", "unauthorized"]);
});
