// `npm start`: sets up, builds, and serves the demonstration from the reference server.
import { join } from "node:path";
import { runMain } from "./lib/failure.mjs";
import { build as buildFolder, root } from "./lib/paths.mjs";
import { done } from "./lib/report.mjs";
import { build } from "./build.mjs";
import { setup } from "./setup.mjs";

const DEFAULT_PORT = 8787;

await runMain(async () => {
  await build(await setup({ tests: false }));
  const demo = await buildDemo();
  const server = await serve(demo);
  console.log(`\nThe demonstration: ${server.url}/   (Ctrl-C ends it)`);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void server.close());
});

async function buildDemo() {
  const vite = await import("vite");
  const outDir = join(buildFolder, "demo");
  await vite.build({ root: join(root, "www", "demo"), build: { outDir, emptyOutDir: true }, logLevel: "warn" });
  done("vite", "the demo's page");
  return outDir;
}

/**
 * The page comes from the reference server itself: behind a development server's proxy its dropped sockets and cut answers
 * would reach the browser as tidy 500s. The database outlives a restart, as the browser's outbox does.
 * @param {string} demo
 */
async function serve(demo) {
  const { createServer } = await import("../www/server/server.mjs");
  const options = { db: join(buildFolder, "orders.db"), mounts: [{ prefix: "/", dir: demo }] };
  try {
    return await createServer({ ...options, port: DEFAULT_PORT });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EADDRINUSE") throw error;
    return createServer({ ...options, port: 0 });
  }
}
