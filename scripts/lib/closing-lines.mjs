// What test runners say at their end, added up.

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/** cargo's own runner and wasm-bindgen's. */
const CARGO = /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/;
/** Node's, in its spec reporter. */
const NODE = /^ℹ (pass|fail|skipped) (\d+)$/;
const nodeNames = /** @type {const} */ ({ pass: "passed", fail: "failed", skipped: "skipped" });

/**
 * Takes in one line of a runner's output.
 * @param {Counts} counts
 * @param {string} line
 */
export function count(counts, line) {
  // Colours, when a terminal asked for them.
  const plain = line.replace(/\x1b\[[\d;]*m/g, "");
  const cargo = CARGO.exec(plain);
  if (cargo) {
    counts.passed += Number(cargo[1]);
    counts.failed += Number(cargo[2]);
    counts.skipped += Number(cargo[3]);
  }
  const node = NODE.exec(plain);
  if (node) counts[nodeNames[/** @type {"pass" | "fail" | "skipped"} */ (node[1])]] += Number(node[2]);
}

/** @param {Counts} counts */
export const inWords = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`;
