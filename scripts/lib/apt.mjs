import { existsSync } from "node:fs";
import { Failure } from "./failure.mjs";
import { ask, run } from "./run.mjs";

/**
 * Installs Debian packages, as root or through sudo.
 * @param {string[]} packages
 * @param {string} why ends the sentence "… is needed for"
 */
export async function aptInstall(packages, why) {
  const list = packages.join(" ");
  const remedy = `${list} is needed for ${why}. By hand: apt-get update && apt-get install ${list}`;
  if (ask("apt-get", ["--version"]) === null) throw new Failure("This machine has no apt-get.", remedy);
  await asRoot(["apt-get", "-qq", "update"], remedy);
  await asRoot(["apt-get", "-qq", "install", "--yes", "--no-install-recommends", ...packages], remedy);
}

/**
 * Runs a command that writes outside the home folder.
 * @param {string[]} command
 * @param {string} remedy
 */
export async function asRoot(command, remedy) {
  const quiet = "DEBIAN_FRONTEND=noninteractive";
  if (process.getuid?.() === 0) return run("env", [quiet, ...command], { remedy });
  if (ask("sudo", ["--version"]) === null) throw new Failure("Neither root nor sudo.", remedy);
  return run("sudo", [quiet, ...command], { remedy });
}

/** Debian's browser and its driver, which every browser test uses. */
export const chromium = { browser: "/usr/bin/chromium", driver: "/usr/bin/chromedriver" };

/** Whether both are there. */
export const chromiumIsThere = () => existsSync(chromium.browser) && existsSync(chromium.driver);
