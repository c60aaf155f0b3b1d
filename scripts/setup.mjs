// Everything a fresh Debian machine with rustup, Node and npm still lacks. Uses Node's own modules only: it runs first.
import { pathToFileURL } from "node:url";
import { delimiter } from "node:path";
import { aptInstall, chromium, chromiumIsThere } from "./lib/apt.mjs";
import { lockedVersion } from "./lib/cargo-lock.mjs";
import { ensureCargoTool } from "./lib/cargo-tool.mjs";
import { Failure, runMain } from "./lib/failure.mjs";
import { ensureNpmDependencies } from "./lib/npm-dependencies.mjs";
import { done, working } from "./lib/report.mjs";
import { ensureWasmTarget } from "./lib/wasm-target.mjs";

/** No lock file covers it, so it stands here. */
const WASM_PACK = "0.15.1";

/**
 * @typedef {object} Toolchain
 * @property {Record<string, string>} path PATH with our tools in front: for every child
 * @property {Record<string, string>} wasm on top of that, what a wasm32 build needs
 */

/**
 * Brings the machine up to date; each step looks first and does nothing when it is done already.
 * @param {{ tests: boolean }} what `tests` adds what only `npm test` needs: wasm-pack and a browser
 * @returns {Promise<Toolchain>}
 */
export async function setup({ tests }) {
  requireNode();
  console.log("Set-up:");
  await ensureNpmDependencies();
  const wasm = await ensureWasmTarget();
  // The glue's format changes with every version: the tool that writes it must be the crate's twin.
  const folders = [
    await ensureCargoTool({ crate: "wasm-bindgen-cli", program: "wasm-bindgen", version: lockedVersion("wasm-bindgen") }),
  ];
  if (tests) {
    folders.push(await ensureCargoTool({ crate: "wasm-pack", program: "wasm-pack", version: WASM_PACK }));
    await ensureChromium();
  }
  const ours = folders.filter((folder) => folder !== null);
  const path = { PATH: [...ours, process.env.PATH].join(delimiter) };
  return { path, wasm: { ...path, ...wasm } };
}

function requireNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Failure(`Node ${process.versions.node} is too old: Vite needs 20.19 or newer.`, "Install a newer Node.");
}

async function ensureChromium() {
  if (!chromiumIsThere()) {
    working("chromium", "apt-get install");
    await aptInstall(["chromium", "chromium-driver"], "the browser tests");
  }
  if (!chromiumIsThere()) throw new Failure(`Debian's chromium did not bring ${chromium.browser} and ${chromium.driver}.`);
  done("chromium", chromium.browser);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => void (await setup({ tests: true })));
}
