// The package as npm would publish it, and a fresh application that has it installed.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before } from "node:test";
import { promisify } from "node:util";
import { newProfile } from "../e2e/support.mjs";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a program; rejects with its output when it fails. */
export const exec = promisify(execFile);

/**
 * Packs the package, and installs the tarball into an application outside the repository. The tarball has no dependencies,
 * so this asks no registry.
 * @returns {Promise<{ folder: string, tarball: string, installed: string, remove: () => Promise<void> }>}
 */
export async function freshApplication() {
  const folder = await mkdtemp(join(tmpdir(), "resubmit-app-"));
  await exec("npm", ["pack", "--pack-destination", folder], { cwd: root });
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const tarball = join(folder, `resubmit-${version}.tgz`);
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await exec("npm", ["install", "--no-audit", "--no-fund", tarball], { cwd: folder });
  return {
    folder,
    tarball,
    installed: join(folder, "node_modules", "resubmit"),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Registers the hooks of a file that runs the installed package in a browser. */
export function stage() {
  const on = {
    /** @type {Awaited<ReturnType<typeof freshApplication>>} */
    app: /** @type {any} */ (undefined),
    /** @type {import("playwright-core").BrowserContext} */
    context: /** @type {any} */ (undefined),
  };
  /** @type {Awaited<ReturnType<typeof newProfile>> | undefined} */
  let profile;
  before(async () => {
    on.app = await freshApplication();
    profile = await newProfile();
    on.context = await profile.launch();
  });
  after(async () => {
    await on.context?.close();
    await profile?.remove();
    await on.app?.remove();
  });
  return on;
}
