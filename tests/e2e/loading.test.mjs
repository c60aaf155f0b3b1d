// Where and when the module is there, is not there yet, or never comes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { stage, test } from "./stage.mjs";
import { args, faults, gotoBare, openPage, quick, startServer } from "./support.mjs";

const on = stage({ browser: { args: [...args, "--host-resolver-rules=MAP plain.test 127.0.0.1"] } });

const policy = { ...quick, delaysMs: [20], jitter: "none" };
const open = (options = { policy }) => openPage(on.context, on.server, options);
const busy = { type: "status", status: 503 };
const wasm = (script) => on.server.faults.put({ method: "GET", route: "/dist/resubmit.wasm", script });
const wasmLoads = () => on.server.log.entries().filter(({ path }) => path === "/dist/resubmit.wasm").length;

test("case 127: what is submitted while the module loads is frozen there and then, and goes once", async () => {
  wasm([{ type: "slow", ms: 1_500 }]);
  const page = await open();
  const early = await page.evaluate(async () => {
    const form = new FormData();
    form.append("item", "tea");
    window.submission = outbox.submit("/orders", { body: form });
    form.set("item", "coffee");
    form.append("more", "milk");
    const json = { item: "tea" };
    window.second = outbox.submit("/orders", { json });
    json.item = "coffee";
    return [submission.key, second.key];
  });
  assert.deepEqual(on.posts(), []);
  const ends = await page.evaluate(() => Promise.all([endOf(submission), endOf(second)]));
  assert.deepEqual(ends.map(({ status, key, attempts }) => [status, key, attempts]), early.map((key) => ["delivered", key, 1]));
  const orders = Object.fromEntries(on.server.orders().map(({ key, fields }) => [key, fields]));
  assert.deepEqual(orders, { [early[0]]: [["item", "tea"]], [early[1]]: [["item", "tea"]] });
  assert.deepEqual(on.server.ledger().map(({ orders }) => orders), [1, 1]);
});

test("case 126: a policy without 'wasm-unsafe-eval': said once on the console, every submission told, nothing stored or sent", async () => {
  const strict = await startServer({ headers: { "content-security-policy": "default-src 'self'" } });
  const page = await on.context.newPage();
  const lines = [];
  page.on("console", (message) => message.type() === "error" && message.text().startsWith("resubmit:") && lines.push(message.text()));
  await gotoBare(page, strict);
  const codes = await page.evaluate(async () => {
    const code = (promise) => promise.then(() => "fine", (error) => (resubmit.isResubmitError(error) ? error.code : String(error)));
    const outbox = open_({});
    const submission = outbox.submit("/orders", { json: {} });
    return {
      ready: await code(outbox.ready),
      stored: await code(submission.stored),
      outcome: await code(submission.outcome),
      init: await code(resubmit.init()),
      retry: await code(resubmit.submitWithRetry(() => Promise.resolve(new Response()))),
      databases: (await indexedDB.databases()).length,
    };
  });
  assert.deepEqual(codes, { ready: "load-failed", stored: "load-failed", outcome: "load-failed", init: "load-failed", retry: "load-failed", databases: 0 });
  assert.match(lines[0], /'wasm-unsafe-eval'/);
  assert.deepEqual(strict.log.entries().filter(({ method }) => method === "POST"), []);
  await strict.close();
});

test("case 130: loads that run at once are one; a load that failed is tried again with the next use", async () => {
  wasm([busy]);
  const page = await on.context.newPage();
  await gotoBare(page, on.server);
  const codes = await page.evaluate(async () => {
    const code = (promise) => promise.then(() => "fine", ({ code }) => code);
    const outbox = open_({});
    return Promise.all([code(outbox.ready), code(resubmit.init()), code(resubmit.init())]);
  });
  assert.deepEqual(codes, ["load-failed", "load-failed", "load-failed"]);
  assert.equal(wasmLoads(), 1);
  const ended = await page.evaluate(async () => {
    const ends = Promise.all([endOf(outbox.submit("/orders", { json: {} })), endOf(outbox.submit("/orders", { json: {} }))]);
    await Promise.all([resubmit.init(), resubmit.init()]);
    return ends;
  });
  assert.deepEqual(ended.map(({ status }) => status), ["delivered", "delivered"]);
  assert.equal(wasmLoads(), 2);
  assert.equal(on.server.orders().length, 2);
  // What was said of the storage follows.
  assert.deepEqual(await page.evaluate(() => outbox.ready), { durable: true });
});

test("one realm has one outbox of a name, until it is closed", async () => {
  const page = await open();
  const same = await page.evaluate(async () => {
    const other = resubmit.createOutbox({ name: "other" });
    const same = [resubmit.createOutbox() === outbox, resubmit.createOutbox({ name: "resubmit" }) === outbox, other === outbox];
    outbox.close();
    return [...same, resubmit.createOutbox() === outbox];
  });
  assert.deepEqual(same, [true, true, false, false]);
});

test("the wasm may be given as a URL, bytes, a response or a module", async () => {
  for (const [name, make] of Object.entries({
    url: () => "/dist/resubmit.wasm",
    object: () => new URL("/dist/resubmit.wasm", location.href),
    bytes: async () => (await fetch("/dist/resubmit.wasm")).arrayBuffer(),
    response: () => fetch("/dist/resubmit.wasm"),
    module: () => WebAssembly.compileStreaming(fetch("/dist/resubmit.wasm")),
  })) {
    const page = await on.context.newPage();
    await gotoBare(page, on.server);
    const status = await page.evaluate(async (make) => {
      const made = (0, eval)(make)();
      // A response may be a promise; the others are there.
      const wasm = make.includes("() => fetch") ? made : await made;
      return (await endOf(open_({ wasm }).submit("/orders", { json: {} }))).status;
    }, `(${make})`);
    assert.equal(status, "delivered", name);
    await page.close();
  }
});

test("case 10: an insecure page: no randomUUID, no locks, and yet durable and delivered once", async () => {
  const page = await on.context.newPage();
  const url = `http://plain.test:${on.server.port}/t/index.html`;
  const goto = async () => {
    await page.goto(url);
    await page.waitForFunction(() => "resubmit" in window);
    await page.evaluate((policy) => open_({ policy }).ready, { ...policy, delaysMs: [500] });
  };
  await goto();
  assert.deepEqual(await page.evaluate(() => [isSecureContext, typeof crypto.randomUUID, typeof navigator.locks, typeof navigator.storage]), [false, "undefined", "undefined", "undefined"]);
  faults(on.server, "/orders", [busy]);
  const { key, durable } = await page.evaluate(() => next(outbox.submit("/orders", { json: {} }), "waiting"));
  assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(durable, true);
  await goto();
  assert.deepEqual(await page.evaluate(async () => (await allSettled()).map(({ key, state }) => [key, state])), [[key, "delivered"]]);
  assert.deepEqual(on.server.ledger(), [{ key, arrivals: 2, orders: 1 }]);
});

test("case 122: a dedicated worker has an outbox, and a page sees what it left", async () => {
  faults(on.server, "/orders", [busy]);
  const page = await open();
  const told = await page.evaluate(
    (policy) =>
      new Promise((resolve, reject) => {
        const worker = new Worker("worker.js", { type: "module" });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
        worker.postMessage({ url: "/orders", policy });
      }),
    policy,
  );
  const { key, ...rest } = told;
  assert.deepEqual(rest, { stored: { durable: true }, status: "delivered", answered: 201, states: ["stored", "attempted", "waiting", "attempted", "settled"] });
  assert.deepEqual(on.server.ledger(), [{ key, arrivals: 2, orders: 1 }]);
});

test("case 129: on a server importing does nothing, and what is made there is inert", async () => {
  const index = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  const script = `
    import(${JSON.stringify(index)}).then(async ({ createOutbox, submitWithRetry, init, isResubmitError }) => {
      const code = (promise) => promise.then(() => "fine", (error) => isResubmitError(error) && error.code);
      const outbox = createOutbox({ owner: "somebody" });
      const submission = outbox.submit("/orders", { json: {} });
      const unread = outbox.submit("https://shop.test/orders", { method: "POST", body: "x" });
      const stop = outbox.intents.subscribe(() => {});
      stop();
      console.log(JSON.stringify([await code(outbox.ready), await code(submission.outcome), await code(submission.stored),
        await code(init()), await code(submitWithRetry(async () => new Response())), outbox.intents.current.length, typeof unread.key]));
      outbox.close();
    });`;
  for (const flags of [["--input-type=commonjs"], ["--input-type=module"]]) {
    // It ends by itself, with nothing to say on stderr: no timer, no handle, no unhandled rejection.
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [...flags, "--unhandled-rejections=strict", "-e", script], { timeout: 20_000 });
    const said = [...Array(5).fill("no-browser"), 0, "string"];
    assert.deepEqual([JSON.parse(stdout), stderr], [said, ""], flags.join());
  }
});
