// Debian ships a current rustc (for building its browsers) and the sources of std, but no std for wasm32.
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aptInstall, asRoot } from "./apt.mjs";
import { Failure } from "./failure.mjs";
import { ask, run } from "./run.mjs";

const toolchain = "debian";
const packages = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy", "lld-19"];

/** What makes cargo use Debian's Rust for a wasm32 build. rustup's own stays in charge of everything native. */
export const debianEnv = {
  RUSTUP_TOOLCHAIN: toolchain,
  // Debian's rustc carries no rust-lld.
  CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: "wasm-ld-19",
};

/**
 * Installs Debian's Rust, builds std for the target and puts it where rustc looks for it.
 * @param {string} target
 */
export async function buildDebianStd(target) {
  await aptInstall(packages, `a standard library for ${target}`);
  await run("rustup", ["toolchain", "link", toolchain, "/usr"]);
  const folder = await mkdtemp(join(tmpdir(), "resubmit-std-"));
  try {
    await writeFile(join(folder, "Cargo.toml"), '[package]\nname = "std-carrier"\nversion = "0.0.0"\nedition = "2021"\n');
    await mkdir(join(folder, "src"));
    await writeFile(join(folder, "src", "lib.rs"), "");
    await run("cargo", ["build", "--release", "--target", target, "-Z", "build-std=std,panic_abort"], {
      cwd: folder,
      env: {
        ...debianEnv,
        CARGO_TARGET_DIR: join(folder, "target"),
        // -Z on a stable compiler.
        RUSTC_BOOTSTRAP: "1",
        // Without the bitcode, our own release build could not do LTO across std.
        RUSTFLAGS: "-Cembed-bitcode=yes",
      },
      remedy: "Building std fetches its few dependencies from crates.io: is it reachable?",
    });
    await place(join(folder, "target", target, "release", "deps"), target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} deps
 * @param {string} target
 */
async function place(deps, target) {
  const libdir = ask("rustc", ["--print", "target-libdir", "--target", target], debianEnv);
  if (libdir === null) throw new Failure("Debian's rustc does not say where its libraries are.");
  const libraries = (await readdir(deps)).filter((file) => file.endsWith(".rlib") && !file.startsWith("libstd_carrier"));
  const remedy = `${libdir} must be writable once, as root or with sudo.`;
  await asRoot(["mkdir", "-p", libdir], remedy);
  await asRoot(["cp", ...libraries.map((file) => join(deps, file)), libdir], remedy);
}
