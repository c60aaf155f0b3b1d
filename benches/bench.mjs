// `npm run bench`: ratios, measured side by side in one run in Chromium. Nothing here passes or fails.
//
//   --json            the numbers, for a program
//   --rounds 300      how many pairs
//   --only durable    the comparisons whose name has this in it
//   --steps           also where the time of a durable submit goes, step by step
//
// The two sides of a pair run one after the other, the order changing from pair to pair, so that what else the machine
// does hits both. A tenth more pairs come first and do not count. The interval is that of the ratio, at 95 %.
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { newProfile } from "../tests/e2e/support.mjs";
import { startServer } from "./server.mjs";
import { median, ratioOf } from "./stats.mjs";

const { values: options } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "300" },
    only: { type: "string", default: "" },
    steps: { type: "boolean", default: false },
  },
});

/**
 * What the page says of a comparison.
 * @typedef {object} Comparison
 * @property {string} name
 * @property {string} what
 * @property {number} [target] at most; absent where none was set
 */

/** @typedef {Comparison & ReturnType<typeof ratioOf> & { met?: boolean, oursMs: number, theirsMs: number, pairs: number }} Result */

const server = await startServer();
const profile = await newProfile();
const context = await profile.launch();
try {
  const page = await context.newPage();
  page.on("pageerror", (error) => console.error(error));
  await page.goto(server.url);
  await page.waitForFunction(() => "bench" in window);
  const machine = {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    chromium: context.browser()?.version() ?? "unknown",
    node: process.version,
  };
  /** @type {Comparison[]} */
  const comparisons = await page.evaluate(() => /** @type {any} */ (window).bench.list());
  /** @type {Result[]} */
  const results = [];
  if (!options.json) console.log(`${machine.cpu}, ${machine.cores} cores, Chromium ${machine.chromium}, Node ${machine.node}\n`);
  for (const comparison of comparisons.filter(({ name }) => name.includes(options.only))) {
    /** @type {{ ours: number[], theirs: number[] }} */
    const { ours, theirs } = await page.evaluate(
      ({ name, rounds }) => /** @type {any} */ (window).bench.run(name, rounds),
      { name: comparison.name, rounds: Number(options.rounds) },
    );
    const ratios = ratioOf(ours, theirs);
    const { target } = comparison;
    const met = target === undefined ? undefined : ratios.ratio <= target;
    const result = { ...comparison, ...ratios, met, oursMs: median(ours), theirsMs: median(theirs), pairs: ours.length };
    results.push(result);
    if (!options.json) print(result);
  }
  /** @type {{ side: string, step: string, ms: number }[]} */
  const steps = options.steps ? await page.evaluate((rounds) => /** @type {any} */ (window).bench.steps(rounds), Number(options.rounds)) : [];
  if (options.json) console.log(JSON.stringify({ machine, results, ...(options.steps && { steps }) }, null, 2));
  else for (const { side, step, ms } of steps) console.log(`  ${side.padEnd(8)}${step.padEnd(34)}${ms.toFixed(3).padStart(8)} ms`);
} finally {
  await context.close();
  await profile.remove();
  server.close();
}

/** @param {Result} result */
function print({ name, what, ratio, interval, target, met, oursMs, theirsMs, pairs }) {
  const aim = target === undefined ? "no target" : `target at most ${target.toFixed(2)}: ${met ? "met" : "not met"}`;
  console.log(`${name.padEnd(38)}${ratio.toFixed(2)}  (${interval.map((end) => end.toFixed(2)).join(" to ")})  ${aim}`);
  console.log(`  ${what}\n  ${oursMs.toFixed(2)} ms against ${theirsMs.toFixed(2)} ms, medians of ${pairs} pairs\n`);
}
