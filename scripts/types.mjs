// `npm run types`: every part of the repository that has a tsconfig.json, under its own settings.
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { Failure, runMain } from "./lib/failure.mjs";
import { root } from "./lib/paths.mjs";
import { run } from "./lib/run.mjs";

const parts = ["scripts", "www", "tests", "benches"];

/** Type-checks them all, also after one failed. The face imports the generated glue: build first. */
export async function types() {
  const files = (await Promise.all(parts.map(configs))).flat().sort();
  if (files.length === 0) throw new Failure("No tsconfig.json anywhere.");
  let failed = 0;
  for (const file of files) {
    const clean = await check(file);
    if (!clean) failed++;
    console.log(`  ${relative(root, file)}: ${clean ? "no type errors" : "FAILED"}`);
  }
  console.log(`types: ${files.length - failed} passed, ${failed} failed`);
  if (failed > 0) throw new Failure("There are type errors.");
}

/** @param {string} file */
async function check(file) {
  try {
    await run(join(root, "node_modules", ".bin", "tsc"), ["--noEmit", "--project", file]);
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
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
