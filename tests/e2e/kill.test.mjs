// The browser process is killed at random moments and started again on the same profile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { killRounds } from "./killing.mjs";

test("20 kills: each order exactly once, nothing lost", { timeout: 300_000 }, async (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
  t.diagnostic(`seed ${seed} (SEED=${seed} repeats it)`);
  const counted = await killRounds({ rounds: 20, seed });
  t.diagnostic(JSON.stringify(counted));
  // The kills must hit something: intents on the disk, and arrivals before the end.
  assert.ok(counted.durable >= 20, `${counted.durable} on the disk`);
  assert.ok(counted.killedAfterAnArrival >= 5, `${counted.killedAfterAnArrival} kills after an arrival`);
});
