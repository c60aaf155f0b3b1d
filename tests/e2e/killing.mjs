// A browser whose whole process group can be killed at any moment, and rounds of that.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";
import { args, dump, executablePath, faults, gotoPage, newProfile, startServer } from "./support.mjs";

/** Starts Chromium on a profile, in a process group of its own. One that does not come up is tried again: it is no part of the test. */
export async function startBrowser(dir, tries = 8) {
  const flags = [...args, "--headless=new", "--remote-debugging-port=0", `--user-data-dir=${dir}`];
  if (process.getuid?.() === 0) flags.push("--no-sandbox");
  const child = spawn(executablePath, flags, { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const gone = once(child, "exit");
  const killGroup = async () => {
    // It may have ended by itself.
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
    await gone;
  };
  try {
    const address = await new Promise((resolve, reject) => {
      createInterface(child.stderr).on("line", (line) => {
        const found = /DevTools listening on (ws:\S+)/.exec(line);
        if (found) resolve(found[1]);
      });
      gone.then(([code]) => reject(new Error(`Chromium ended with ${code} before it was there`)));
    });
    const browser = await chromium.connectOverCDP(address, { timeout: 20_000 });
    return {
      context: browser.contexts()[0],
      /** No warning, no clean-up: the way a battery dies. */
      async kill() {
        await killGroup();
        await browser.close().catch(() => {});
      },
    };
  } catch (error) {
    await killGroup();
    if (tries <= 1) throw error;
    return startBrowser(dir, tries - 1);
  }
}

/**
 * When the folder of IndexedDB's files was made. Killed while it opens them, Chromium may find them damaged at the next
 * start, and then deletes every database of the origin (seen at about one kill in 250): no page can do anything about
 * that, and the folder is a new one.
 * @param {string} profile
 */
async function birthOfDatabases(profile) {
  const folder = join(profile, "Default", "IndexedDB");
  const names = await readdir(folder).catch(() => []);
  const database = names.find((name) => name.endsWith(".indexeddb.leveldb"));
  return database && (await stat(join(folder, database))).birthtimeMs;
}

/** Numbers from 0 to 1 that a seed repeats (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const kinds = [
  { type: "ok" },
  { type: "status", status: 503 },
  { type: "drop" },
  { type: "commit-drop" },
  { type: "truncate" },
  { type: "commit-status", status: 502 },
  { type: "process-slow", ms: 150 },
  { type: "slow", ms: 80 },
];

/** Attempts and leases short enough for the next round to take over. */
const policy = { delaysMs: [20, 50, 100, 250], maxAttempts: 10_000, attemptTimeoutMs: 500 };

/**
 * Submits orders, kills the browser at a random moment, starts it again on the same profile; and so on. At the end the
 * ledger is held against what was submitted.
 * @param {{ rounds: number, seed: number, perRound?: number, log?: (line: string) => void }} options
 * @returns what was counted
 */
export async function killRounds({ rounds, seed, perRound = 3, log = () => {} }) {
  const random = randomFrom(seed);
  const server = await startServer();
  const profile = await newProfile();
  /** Keys that a page said were on the disk. */
  const durable = new Set();
  const submitted = new Set();
  let killedAfterAnArrival = 0;
  /** Keys whose database the browser itself threw away. */
  const thrownAway = new Set();
  let born;
  const noticeLoss = async (before, round) => {
    const now = await birthOfDatabases(profile.dir);
    if (born !== undefined && now !== undefined && now !== born) {
      log(`round ${round + 1}: Chromium found its own files damaged and began with empty databases`);
      const made = new Set(server.ledger().flatMap(({ key, orders }) => (orders > 0 ? [key] : [])));
      for (const key of before) if (!made.has(key)) thrownAway.add(key);
    }
    born = now ?? born;
  };
  let browser;
  try {
    for (let round = 0; round < rounds; round++) {
      const script = Array.from({ length: perRound * 2 }, () => kinds[Math.floor(random() * kinds.length)]);
      faults(server, "/orders", script);
      browser = await startBrowser(profile.dir);
      const page = await browser.context.newPage();
      await page.exposeFunction("isSubmitted", (key) => submitted.add(key));
      await page.exposeFunction("isDurable", (key) => durable.add(key));
      await gotoPage(page, server, { policy });
      const arrivals = server.log.entries().length;
      const before = [...durable];
      await page.evaluate(
        ({ round, perRound }) => {
          for (let i = 0; i < perRound; i++) {
            const submission = outbox.submit("/orders", { json: { round, i } });
            isSubmitted(submission.key);
            submission.stored.then((stored) => stored.durable && isDurable(submission.key));
          }
        },
        { round, perRound },
      );
      // The moment of death is the experiment, not something that is waited for.
      await sleep(random() * 400);
      await browser.kill();
      if (server.log.entries().length > arrivals) killedAfterAnArrival++;
      await noticeLoss(before, round);
      log(`round ${round + 1} of ${rounds}: ${submitted.size} submitted, ${durable.size} on the disk, ${server.orders().length} orders`);
    }
    server.faults.clear();
    browser = await startBrowser(profile.dir);
    const page = await browser.context.newPage();
    await gotoPage(page, server, { policy });
    await page.evaluate(() => outbox.ready);
    await noticeLoss([...durable], rounds);
    const missing = () => {
      const made = new Set(server.ledger().flatMap(({ key, orders }) => (orders > 0 ? [key] : [])));
      return [...durable].filter((key) => !made.has(key) && !thrownAway.has(key));
    };
    const patience = AbortSignal.timeout(60_000);
    while (missing().length > 0 && !patience.aborted) await sleep(100);
    const left = (await dump(page)).intents.map(({ key, state, reason }) => ({ key, state, reason })).filter(({ key }) => missing().includes(key));
    await browser.kill();
    assert.deepEqual(missing(), [], `seed ${seed}: lost; the outbox holds ${JSON.stringify(left)}`);
    const twice = server.ledger().filter(({ orders }) => orders > 1);
    assert.deepEqual(twice, [], `seed ${seed}: twice`);
    // One key is one request, byte for byte, over all kills.
    const prints = new Map();
    for (const { key, method, complete, bodySha256 } of server.log.entries()) {
      if (method !== "POST" || !complete) continue;
      assert.equal(prints.get(key) ?? bodySha256, bodySha256, `seed ${seed}: other bytes under ${key}`);
      prints.set(key, bodySha256);
    }
    assert.equal(new Set(server.orders().map(({ text }) => text)).size, server.orders().length, `seed ${seed}: an order under two keys`);
    const strangers = server.ledger().filter(({ key }) => !submitted.has(key) && !durable.has(key));
    return { submitted: submitted.size, durable: durable.size, orders: server.orders().length, killedAfterAnArrival, strangers: strangers.length, thrownAway: thrownAway.size };
  } finally {
    await browser?.kill();
    await server.close();
    await profile.remove();
  }
}
