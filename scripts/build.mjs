// From Rust to what the package ships: cargo, wasm-bindgen, wasm-opt, esbuild.
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { lockedVersion } from "./lib/cargo-lock.mjs";
import { Failure, runMain } from "./lib/failure.mjs";
import { unlessUnchanged } from "./lib/inputs.mjs";
import { build as glueFolder, dist, root, target } from "./lib/paths.mjs";
import { done } from "./lib/report.mjs";
import { run } from "./lib/run.mjs";
import { shortNames, withShortNames } from "./lib/short-names.mjs";
import { featuresOf, shippedFeatures } from "./lib/wasm-features.mjs";
import { wasmTarget } from "./lib/wasm-target.mjs";
import { setup } from "./setup.mjs";

const face = join(root, "www", "lib");

/** The package's entries: `www/lib/<name>.js` becomes `dist/<name>.js`. */
const entries = ["index"];

const bindgenFlags = [
  "--target", "web",
  "--out-name", "resubmit",
  // The face says where the module is. With a default of its own in the glue, bundlers emit the file twice.
  "--omit-default-module-path",
  // A fresh instance after a panic.
  "--experimental-reset-state-function",
  // Every browser of the contract has it; the fallback is dead weight.
  "--encode-into", "always",
  "--remove-name-section",
  "--remove-producers-section",
];

// -Oz over -Os: what a page downloads is judged after brotli, and the loop's speed is the network's.
const optFlags = [
  "--mvp-features",
  ...shippedFeatures.values(),
  // Lets it fold offsets below 1 KiB into loads and stores. Nothing of ours lies there: it is the far end of the stack.
  "--low-memory-unused",
  // Blocks built anew from flat code come out smaller than what LLVM nests. The second -Oz tidies up after the first.
  "--flatten",
  "--rereloop",
  "-Oz",
  "-Oz",
  shortNames,
];

/**
 * Builds `dist/`. Each step is skipped when its inputs are those of the last run.
 * @param {import("./setup.mjs").Toolchain} tools
 */
export async function build(tools) {
  console.log("Build:");
  const compiled = await compile(tools);
  await bindAndOptimize(compiled, tools);
  await bundle();
}

/** @param {import("./setup.mjs").Toolchain} tools */
async function compile({ wasm }) {
  // As a cdylib alone: while Cargo.toml's rlib is built along, cargo leaves link-time optimisation out, and the module is a
  // quarter larger.
  const kind = ["--lib", "--crate-type", "cdylib", "--features", "js"];
  await run("cargo", ["rustc", "--quiet", "--release", "--target", wasmTarget, ...kind], { env: wasm });
  const file = join(target, wasmTarget, "release", "resubmit.wasm");
  requireShippable(await readFile(file), "The compiler");
  done("cargo", "compiled");
  return file;
}

/**
 * @param {string} compiled
 * @param {import("./setup.mjs").Toolchain} tools
 */
async function bindAndOptimize(compiled, { path }) {
  const output = join(glueFolder, "resubmit.wasm");
  const raw = join(glueFolder, "resubmit_bg.wasm");
  await mkdir(glueFolder, { recursive: true });
  const inputs = [
    await readFile(compiled),
    ...bindgenFlags,
    lockedVersion("wasm-bindgen"),
    ...optFlags,
    await readFile(join(root, "node_modules", "binaryen", "package.json")),
  ];
  const ran = await unlessUnchanged(join(glueFolder, "inputs.sha256"), inputs, async () => {
    await run("wasm-bindgen", [...bindgenFlags, "--out-dir", glueFolder, compiled], { env: path });
    let names = "";
    const onLine = (/** @type {string} */ line) => (names += line);
    await run(join(root, "node_modules", ".bin", "wasm-opt"), [...optFlags, raw, "--output", output], { onLine, quiet: true });
    const glue = join(glueFolder, "resubmit.js");
    await writeFile(glue, withShortNames(await readFile(glue, "utf8"), names));
    requireShippable(await readFile(output), "wasm-opt");
    // Not left beside the optimised one, where somebody could take it for the real thing.
    await rm(raw);
  });
  done("wasm-bindgen, -opt", ran ? "bound and optimised" : "unchanged");
}

/**
 * The module must load, and use no more than the oldest browser of the contract knows.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {string} author
 */
function requireShippable(bytes, author) {
  const features = featuresOf(bytes);
  if (features.length === 0) throw new Failure(`${author} wrote a module without target_features.`, "Does the release profile strip it?");
  const foreign = features.filter((name) => !shippedFeatures.has(name));
  if (foreign.length === 0) return;
  throw new Failure(
    `${author} wrote a module that uses ${foreign.join(", ")}.`,
    "If all browsers of the contract have it, add it to scripts/lib/wasm-features.mjs; else turn it off in the compiler.",
  );
}

async function bundle() {
  // Imported here: there is no node_modules before set-up ran.
  const { build: esbuild } = await import("esbuild");
  await rm(dist, { recursive: true, force: true });
  await esbuild({
    absWorkingDir: root,
    entryPoints: entries.map((name) => join(face, `${name}.js`)),
    outdir: dist,
    bundle: true,
    format: "esm",
    minify: true,
    target: ["chrome97", "firefox102", "safari16.4"],
    legalComments: "none",
    logLevel: "warning",
  });
  await copyFile(join(glueFolder, "resubmit.wasm"), join(dist, "resubmit.wasm"));
  const types = (await readdir(face)).filter((file) => file.endsWith(".d.ts"));
  for (const file of types) await copyFile(join(face, file), join(dist, file));
  done("esbuild", `dist/: ${entries.map((name) => `${name}.js`).join(", ")}, resubmit.wasm, ${types.join(", ")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => build(await setup({ tests: false })));
}
