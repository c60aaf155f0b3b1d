// Whether a step's inputs are those of its last run: a hash beside its output.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

/**
 * Runs `step` unless `stamp` says that it already ran on the same inputs.
 * @param {string} stamp
 * @param {(string | Uint8Array)[]} inputs
 * @param {() => Promise<void>} step
 * @returns {Promise<boolean>} whether it ran
 */
export async function unlessUnchanged(stamp, inputs, step) {
  const hash = createHash("sha256");
  for (const input of inputs) hash.update(String(input.length)).update("\0").update(input);
  const wanted = hash.digest("hex");
  if ((await readFile(stamp, "utf8").catch(() => null)) === wanted) return false;
  await step();
  await writeFile(stamp, wanted);
  return true;
}
