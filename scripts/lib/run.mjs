// Running other programs.
import { spawn, spawnSync } from "node:child_process";
import { Failure } from "./failure.mjs";
import { root } from "./paths.mjs";

/**
 * @typedef {object} RunOptions
 * @property {Record<string, string | undefined>} [env] added to this process's own
 * @property {string} [cwd]
 * @property {(line: string) => void} [onLine] sees each line of stdout, which is passed on as well
 * @property {boolean} [quiet] passes nothing on to stdout
 * @property {string} [remedy] what to do when it fails
 */

/**
 * Runs a program to its end, its output passed through; anything but exit code 0 is a `Failure`.
 * @param {string} command
 * @param {string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<void>}
 */
export function run(command, args, { env, cwd = root, onLine, quiet, remedy } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", onLine ? "pipe" : "inherit", "inherit"],
    });
    if (onLine && child.stdout) tee(child.stdout, onLine, quiet);
    child.on("error", (error) => reject(new Failure(`${command} could not be started: ${error.message}`, remedy)));
    // "close" comes after the last line was read, "exit" may come before.
    child.on("close", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Failure(`${[command, ...args].join(" ")} ended with ${signal ?? `exit code ${code}`}`, remedy));
    });
  });
}

/**
 * @param {import("node:stream").Readable} stream
 * @param {(line: string) => void} onLine
 * @param {boolean} [quiet]
 */
function tee(stream, onLine, quiet) {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (/** @type {string} */ chunk) => {
    if (!quiet) process.stdout.write(chunk);
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  });
  stream.on("end", () => rest && onLine(rest));
}

/**
 * Runs a program for what it prints.
 * @param {string} command
 * @param {string[]} args
 * @param {Record<string, string | undefined>} [env]
 * @returns {string | null} trimmed stdout, or null when it is absent or failed
 */
export function ask(command, args, env) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, env: { ...process.env, ...env }, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}
