import { join } from "node:path";
import { Failure } from "./failure.mjs";
import { toolFolder } from "./paths.mjs";
import { done, working } from "./report.mjs";
import { ask, run } from "./run.mjs";

/**
 * The folder that holds a program from crates.io in exactly this version: one already on PATH, or one built before, or one
 * built now.
 * @param {{ crate: string, program: string, version: string }} tool
 * @returns {Promise<string | null>} null: PATH already has it
 */
export async function ensureCargoTool({ crate, program, version }) {
  if (versionOf(program) === version) {
    done(crate, `${version}, on PATH`);
    return null;
  }
  const folder = toolFolder(crate, version);
  const bin = join(folder, "bin");
  if (versionOf(join(bin, program)) !== version) {
    working(crate, `cargo install, version ${version}: takes a minute or two, once`);
    // Without --locked: the lock files these crates ship pin packages that no longer build.
    await run("cargo", ["install", "--quiet", crate, "--version", version, "--root", folder], {
      env: {
        // Into cargo's own temporary folder: a shared one would be filled with what nobody needs again.
        CARGO_TARGET_DIR: undefined,
        // Unoptimised, the compilation takes 110 s of processor time, not 270, and the tool 0.3 s for our module, not 0.2.
        CARGO_PROFILE_RELEASE_OPT_LEVEL: "0",
      },
      remedy:
        `${crate} ${version} is built from crates.io; it needs that registry and a C compiler (apt-get install build-essential).\n` +
        `Any ${program} ${version} on PATH serves as well.`,
    });
    const got = versionOf(join(bin, program));
    if (got !== version) throw new Failure(`${bin}/${program} says it is ${got}, not ${version}.`, `Delete ${folder} and run again.`);
  }
  done(crate, `${version}, in ${folder}`);
  return bin;
}

/** Both tools print "name x.y.z". */
const versionOf = (/** @type {string} */ program) => ask(program, ["--version"])?.split(/\s+/)[1];
