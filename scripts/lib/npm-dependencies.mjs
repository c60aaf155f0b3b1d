import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./paths.mjs";
import { done, working } from "./report.mjs";
import { run } from "./run.mjs";

/** Installs what package-lock.json lists, unless node_modules already is that. */
export async function ensureNpmDependencies() {
  const lock = await readFile(join(root, "package-lock.json"));
  const wanted = createHash("sha256").update(lock).digest("hex");
  // Inside node_modules, so that deleting the folder deletes the claim that it is complete.
  const stamp = join(root, "node_modules", ".resubmit-lock");
  const installed = await readFile(stamp, "utf8").catch(() => null);
  if (installed !== wanted) {
    working("npm dependencies", "npm ci");
    await run("npm", ["ci", "--no-audit", "--no-fund"], {
      remedy: "The lock file's packages come from the npm registry: is it reachable?",
    });
    await writeFile(stamp, wanted);
  }
  done("npm dependencies", "as locked");
}
