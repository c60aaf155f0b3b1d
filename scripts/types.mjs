// `npm run types`: every part of the repository that has a tsconfig.json, under its own settings.
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { Failure, runMain } from "./lib/failure.mjs";
import { root } from "./lib/paths.mjs";
import { run } from "./lib/run.mjs";

const parts = ["scripts", "www", "tests", "benches"];

/** Type-checks them all. The face imports the generated glue: build first. */
export async function types() {
  const files = (await Promise.all(parts.map(configs))).flat().sort();
  if (files.length === 0) throw new Failure("No tsconfig.json anywhere.");
  for (const file of files) {
    await run(join(root, "node_modules", ".bin", "tsc"), ["--noEmit", "--project", file]);
    console.log(`  ${relative(root, file)}: no type errors`);
  }
}

/** @param {string} part */
async function configs(part) {
  const files = await readdir(join(root, part), { recursive: true, withFileTypes: true }).catch(() => []);
  return files
    .filter((file) => file.name === "tsconfig.json" && !file.parentPath.includes("node_modules"))
    .map((file) => join(file.parentPath, file.name));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await runMain(types);
