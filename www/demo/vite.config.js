// `npm start` builds the page and serves it from the reference server itself. This serves it while it is being worked on
// (`npx vite www/demo`), on the loopback interface, and passes its requests on to a server that runs already.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * A proxy that breaks where the server breaks. Vite's own would answer a dropped connection with a 500, and the page would
 * be shown another fault than the one that was chosen.
 * @type {import("vite").ProxyOptions}
 */
const toServer = {
  target: process.env.RESUBMIT_SERVER ?? "http://127.0.0.1:8787",
  configure(proxy) {
    proxy.on("error", (_error, request) => void request?.socket.destroy());
    // An answer that ends before its announced length must end so here too.
    proxy.on("proxyRes", (answer, _request, response) => {
      answer.on("close", () => void (answer.complete || response.destroy()));
    });
  },
};
const proxy = Object.fromEntries(["/orders", "/orders-plain", "/login", "/control"].map((path) => [path, toServer]));

export default defineConfig({
  root: here("."),
  server: {
    host: "127.0.0.1",
    proxy,
    // The library lies beside the page's folder, not in it.
    fs: { allow: [here("."), here("../../dist"), here("../../node_modules")] },
    // Vite's own socket would reload the page whenever the network comes back, which is what this page is about.
    ws: false,
    hmr: false,
  },
  preview: { host: "127.0.0.1", proxy },
  resolve: { alias: { resubmit: here("../../dist/index.js") } },
  // Pre-bundling would move the script away from its `.wasm`.
  optimizeDeps: { exclude: ["resubmit"] },
  build: { outDir: here("../../target/demo"), emptyOutDir: true, target: "es2022" },
});
