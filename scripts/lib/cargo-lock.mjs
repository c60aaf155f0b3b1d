import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "./failure.mjs";
import { root } from "./paths.mjs";

/**
 * The version of a crate that Cargo.lock pins.
 * @param {string} crate
 * @param {string} [lockText] for tests
 * @returns {string}
 */
export function lockedVersion(crate, lockText = readLock()) {
  const versions = [...lockText.matchAll(/^name = "(.+)"\nversion = "(.+)"$/gm)]
    .filter(([, name]) => name === crate)
    .map(([, , version]) => version);
  if (versions.length === 1) return versions[0];
  throw new Failure(
    versions.length === 0 ? `Cargo.lock has no crate ${crate}.` : `Cargo.lock has ${crate} more than once: ${versions.join(", ")}.`,
    `\`cargo tree --target wasm32-unknown-unknown -i ${crate}\` shows who asks for it.`,
  );
}

function readLock() {
  try {
    return readFileSync(join(root, "Cargo.lock"), "utf8");
  } catch {
    throw new Failure("Cargo.lock is missing.", "It is part of the repository: restore it, or run `cargo generate-lockfile`.");
  }
}
