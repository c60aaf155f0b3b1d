// `npm run bench`: ratios, measured side by side in one run in Chromium. Nothing here passes or fails.
//
// Pairs run alternately, first one first, then the other, so that what the machine does besides hits both. The numbers
// are medians; the interval is the middle half of the ratios of neighbouring pairs.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import { extname, join } from "node:path";
import { parseArgs } from "node:util";
import { newProfile } from "../tests/e2e/support.mjs";
import { dist, root } from "../scripts/lib/paths.mjs";

const { json, rounds } = parseArgs({ options: { json: { type: "boolean", default: false }, rounds: { type: "string", default: "300" } } }).values;

const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

/** A server that answers orders at once: what is measured is the page. */
const server = createServer(async (request, response) => {
  if (request.method === "POST") {
    request.resume().on("end", () => response.writeHead(201, { "content-type": "application/json" }).end('{"id":1}'));
    return;
  }
  const path = request.url === "/" ? "/page/index.html" : request.url;
  const file = path.startsWith("/dist/") ? join(dist, path.slice(6)) : join(root, "benches", path);
  const body = await readFile(file).catch(() => undefined);
  response.writeHead(body ? 200 : 404, { "content-type": types[extname(file)] ?? "text/plain" }).end(body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const profile = await newProfile();
const context = await profile.launch();
try {
  const page = await context.newPage();
  page.on("pageerror", (error) => console.error(error));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => "bench" in window);
  const results = [];
  for (const name of await page.evaluate(() => Object.keys(bench))) {
    const { ours, theirs, target, what } = await page.evaluate(({ name, rounds }) => bench[name](rounds), { name, rounds: Number(rounds) });
    const ratios = ours.map((ms, at) => ms / theirs[at]);
    const ratio = median(ours) / median(theirs);
    results.push({ name, what, ratio, quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)], oursMs: median(ours), theirsMs: median(theirs), target, met: ratio <= target, pairs: ours.length });
  }
  const machine = { cpu: cpus()[0].model, cores: cpus().length, browser: context.browser()?.version() ?? (await page.evaluate(() => navigator.userAgent)) };
  if (json) console.log(JSON.stringify({ machine, results }, null, 2));
  else print(machine, results);
} finally {
  await context.close();
  await profile.remove();
  server.close();
  server.closeAllConnections();
}

function print(machine, results) {
  console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.browser}\n`);
  for (const { name, what, ratio, quartiles, oursMs, theirsMs, target, met, pairs } of results) {
    console.log(`${name}: ${ratio.toFixed(2)} (${quartiles.map((q) => q.toFixed(2)).join(" to ")}), target at most ${target}: ${met ? "met" : "not met"}`);
    console.log(`  ${what}: ${oursMs.toFixed(2)} ms against ${theirsMs.toFixed(2)} ms, medians of ${pairs} pairs`);
  }
}

function median(values) {
  return quantile(values, 0.5);
}

function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}
