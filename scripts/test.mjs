// `npm test`: sets up and runs every check, in the order in which a mistake is cheapest to find.
// `npm test -- --only native,size` runs those stages alone.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { chromium } from "./lib/apt.mjs";
import { count, inWords } from "./lib/closing-lines.mjs";
import { Failure, runMain } from "./lib/failure.mjs";
import { root } from "./lib/paths.mjs";
import { run } from "./lib/run.mjs";
import { wasmTarget } from "./lib/wasm-target.mjs";
import { setup } from "./setup.mjs";
import { size } from "./size.mjs";
import { types } from "./types.mjs";

/**
 * @typedef {object} Stage
 * @property {string} name
 * @property {boolean} [tests] whether a runner counts tests here; one that counts none has failed
 * @property {(tools: import("./setup.mjs").Toolchain, onLine: (line: string) => void) => Promise<void>} run
 */

/** @type {Stage[]} */
const stages = [
  { name: "format", run: ({ path }) => run("cargo", ["fmt", "--check"], { env: path }) },
  { name: "clippy", run: clippy },
  { name: "native", tests: true, run: ({ path }, onLine) => run("cargo", ["test"], { env: path, onLine }) },
  { name: "browser", tests: true, run: browser },
  { name: "build", run: build },
  { name: "size", run: size },
  { name: "types", run: types },
  { name: "server", tests: true, run: nodeTests("server") },
  { name: "package", tests: true, run: nodeTests("package") },
  { name: "e2e", tests: true, run: nodeTests("e2e") },
];

await runMain(async () => {
  const chosen = choose();
  const began = performance.now();
  const tools = await setup({ tests: true });
  const table = [line("set-up", began, "ok")];
  const total = { passed: 0, failed: 0, skipped: 0 };
  try {
    for (const stage of chosen) await runStage(stage, tools, table, total);
  } finally {
    console.log(`\nStages:\n${table.join("\n")}\n\n${inWords(total)}`);
  }
});

function choose() {
  const { only } = parseArgs({ options: { only: { type: "string" } } }).values;
  if (only === undefined) return stages;
  const names = only.split(",");
  const unknown = names.filter((name) => !stages.some((stage) => stage.name === name));
  if (unknown.length > 0) throw new Failure(`No stage is named ${unknown.join(", ")}.`, `There are ${stages.map(({ name }) => name).join(", ")}.`);
  return stages.filter(({ name }) => names.includes(name));
}

/**
 * @param {Stage} stage
 * @param {import("./setup.mjs").Toolchain} tools
 * @param {string[]} table gets the stage's line
 * @param {import("./lib/closing-lines.mjs").Counts} total
 */
async function runStage(stage, tools, table, total) {
  console.log(`\n── ${stage.name} ${"─".repeat(60 - stage.name.length)}`);
  const began = performance.now();
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let verdict = "FAILED";
  try {
    await stage.run(tools, (line) => count(counts, line));
    if (stage.tests && counts.passed === 0) throw new Failure(`Stage ${stage.name} ran no test.`);
    verdict = "ok";
  } finally {
    for (const key of /** @type {const} */ (["passed", "failed", "skipped"])) total[key] += counts[key];
    table.push(line(stage.name, began, stage.tests ? `${verdict}, ${inWords(counts)}` : verdict));
  }
}

/**
 * @param {string} name
 * @param {number} began
 * @param {string} verdict
 */
function line(name, began, verdict) {
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  return `  ${name.padEnd(10)}${seconds.padStart(7)} s  ${verdict}`;
}

/** @param {import("./setup.mjs").Toolchain} tools */
async function clippy({ path, wasm }) {
  await run("cargo", ["clippy", "--all-targets", "--", "-D", "warnings"], { env: path });
  await run("cargo", ["clippy", "--target", wasmTarget, "--features", "js", "--", "-D", "warnings"], { env: wasm });
}

/**
 * The tests in `tests/web_*.rs` and `src`, in headless Chromium. The engine's tests are native ones and stay out.
 * @type {Stage["run"]}
 */
async function browser({ wasm }, onLine) {
  const names = (await readdir(join(root, "tests"))).flatMap((file) => /^(web_.*)\.rs$/.exec(file)?.[1] ?? []);
  const targets = ["--lib", ...names.flatMap((name) => ["--test", name])];
  const flags = ["--headless", "--chrome", "--chromedriver", chromium.driver, "--mode", "no-install"];
  await run("wasm-pack", ["test", ...flags, root, ...targets], {
    // The browser's own flags are in webdriver.json. The limit is for a whole file of tests; its default is 20 s.
    env: { ...wasm, WASM_BINDGEN_TEST_TIMEOUT: "300" },
    onLine,
  });
}

/**
 * The tests in a folder of `tests/`, under Node's runner.
 * @param {string} name
 * @returns {Stage["run"]}
 */
function nodeTests(name) {
  return async ({ path }, onLine) => {
    const folder = join(root, "tests", name);
    const files = (await readdir(folder).catch(() => [])).filter((file) => file.endsWith(".test.mjs")).sort();
    if (files.length === 0) throw new Failure(`There are no tests in ${folder}.`);
    // One file at a time: they start browsers and measure waits, and the machine may have two cores.
    const flags = ["--test", "--test-reporter=spec", "--test-concurrency=1"];
    await run(process.execPath, [...flags, ...files.map((file) => join(folder, file))], { env: path, onLine });
  };
}
