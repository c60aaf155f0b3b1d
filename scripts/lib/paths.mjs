// Where things are: one place, so that no script spells a path twice.
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository. */
export const root = fileURLToPath(new URL("../../", import.meta.url));

/** The generated glue and wasm, which `www/lib` imports as `#glue` (package.json "imports"). */
export const build = join(root, "build");

/** What the npm package ships. */
export const dist = join(root, "dist");

/** Cargo's output, wherever the environment puts it. */
export const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "resubmit");

/**
 * The folder of a tool that setup built, one per version, shared by all clones of one person.
 * @param {string} name
 * @param {string} version
 */
export const toolFolder = (name, version) => join(cache, "tools", `${name}-${version}`);
