// Rust's standard library for wasm32: from rustup, or, where rustup refuses, from Debian's Rust.
import { existsSync, readdirSync } from "node:fs";
import { Failure } from "./failure.mjs";
import { buildDebianStd, debianEnv } from "./debian-rust.mjs";
import { done, working } from "./report.mjs";
import { ask, run } from "./run.mjs";

export const wasmTarget = "wasm32-unknown-unknown";

/**
 * Makes the target usable.
 * @returns {Promise<Record<string, string>>} what the environment of a wasm32 build must add
 */
export async function ensureWasmTarget() {
  const version = ask("rustc", ["--version"]);
  if (version === null) throw new Failure("There is no rustc.", "Install Rust with rustup: https://rustup.rs");
  if (hasStd()) {
    done(wasmTarget, version);
    return {};
  }
  if (hasStd(debianEnv)) return standIn();
  working(wasmTarget, "rustup target add");
  try {
    await run("rustup", ["target", "add", wasmTarget]);
  } catch {
    working(wasmTarget, "rustup refused it: Debian's Rust stands in, and its std is built here, once");
    await buildDebianStd(wasmTarget);
    if (hasStd(debianEnv)) return standIn();
    throw new Failure(
      `No standard library for ${wasmTarget}.`,
      "rustup refused to add it and Debian's Rust did not build one; its messages are above.",
    );
  }
  done(wasmTarget, version);
  return {};
}

function standIn() {
  done(wasmTarget, `Debian's ${ask("rustc", ["--version"], debianEnv)}`);
  return debianEnv;
}

/**
 * Whether that toolchain can link for the target. rustc names a folder whether it is there or not.
 * @param {Record<string, string>} [env]
 */
function hasStd(env) {
  const folder = ask("rustc", ["--print", "target-libdir", "--target", wasmTarget], env);
  return folder !== null && existsSync(folder) && readdirSync(folder).some((file) => /^libstd-.*\.rlib$/.test(file));
}
