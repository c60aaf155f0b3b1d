// `npm run size`: what a page downloads, and whether that is still within the budget.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { Failure, runMain } from "./lib/failure.mjs";
import { dist } from "./lib/paths.mjs";

/**
 * In bytes, after brotli at its highest level.
 *
 * `budget` is where this has to get to. `ceiling` is where it is: above it `npm run size` fails. A ceiling only goes down,
 * until it is the budget; raising one takes a line that says what was bought.
 */
// 97.25 KiB: 95.5 before `retentionMs`: what nobody comes back to does not stay on a shared device for ever.
// 95.5 KiB: 93 before `classify` and `isDelivered`: what an answer means is the application's word where HTTP's is not enough.
// 93 KiB: 83.5 before owners: nothing of one person's is sent, listed or lost in the session of another, over all tabs.
// 83.5 KiB: 79 before `authorize`: one refresh at a time over all tabs, and what is refused waits for the person instead of ending.
// 79 KiB: 75 before lanes and coalescing: order, and only the newest of many, over tabs and reloads.
// 75 KiB: 74 before `retryAll`.
// 74 KiB: 70.5 before origins had gates, so that a thousand intents over a dead server cost it one request at a time.
// 70.5 KiB: 68 before what a tester found to lose, double or misreport an order was mended, and before opening over many
// waiting rows was made as quick as it was.
const wasm = { budget: 34 * 1024, ceiling: 97.25 * 1024 };
// 6.75 KiB: 6.5 before owners: a submission is followed by key and owner.
// 6.5 KiB: 6.25 before events and the objects that come with them were made only where somebody listens.
const script = { budget: 5 * 1024, ceiling: 6.75 * 1024 };

/** The first line is what the ten-line example of the README makes a page download. */
const lines = [
  {
    label: "resubmit (script + wasm)",
    files: ["index.js", "resubmit.wasm"],
    budget: wasm.budget + script.budget,
    ceiling: wasm.ceiling + script.ceiling,
  },
  { label: "  resubmit.wasm", files: ["resubmit.wasm"], ...wasm },
  { label: "  index.js (face + glue)", files: ["index.js"], ...script },
];

/** Prints the table; a `Failure` names what is above its ceiling. */
export async function size() {
  const rows = await Promise.all(lines.map(async (line) => ({ ...line, ...(await weigh(line.files)) })));
  print(["", "raw", "gzip", "brotli", "ceiling", "budget"]);
  for (const { label, raw, gzip, brotli, ceiling, budget } of rows) {
    print([label, ...[raw, gzip, brotli, ceiling, budget].map(bytes), brotli > budget ? "  above the budget" : ""]);
  }
  const over = rows.filter(({ brotli, ceiling }) => brotli > ceiling);
  if (over.length === 0) return;
  throw new Failure(
    `Above the ceiling: ${over.map(({ label, brotli, ceiling }) => `${label.trim()} by ${bytes(brotli - ceiling)} bytes`).join("; ")}.`,
    "What costs is in CONTRIBUTING.md; budgets and ceilings stand in scripts/size.mjs.",
  );
}

/**
 * Files are compressed one by one, as a server sends them.
 * @param {string[]} files
 */
async function weigh(files) {
  const sum = { raw: 0, gzip: 0, brotli: 0 };
  for (const file of files) {
    const content = await readFile(join(dist, file));
    sum.raw += content.length;
    sum.gzip += gzipSync(content, { level: 9 }).length;
    sum.brotli += brotliCompressSync(content, {
      params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
    }).length;
  }
  return sum;
}

const bytes = (/** @type {number} */ n) => n.toLocaleString("en");

const print = (/** @type {string[]} */ [label, ...numbers]) =>
  console.log(label.padEnd(26) + numbers.map((number) => number.padStart(10)).join(""));

if (import.meta.url === pathToFileURL(process.argv[1]).href) await runMain(size);
