// What the page talks to: the built package, the page itself, and orders that are answered at once. Not the reference
// server, whose SQLite would be most of what is measured.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { dist, root } from "../scripts/lib/paths.mjs";

/** @type {Record<string, string>} */
const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

/** With these two a page's clock ticks every 5 µs instead of 100. */
const isolated = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

/** Starts it. `/orders` answers 201, `/orders?after=20` after as many milliseconds, `/busy` asks to wait for hours. */
export async function startServer() {
  const server = createServer(async ({ method, url = "/" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://localhost");
    if (method === "POST") {
      const after = Number(searchParams.get("after") ?? 0);
      const [status, headers] = pathname === "/busy" ? [503, { "retry-after": "20000" }] : [201, { location: "/orders/1" }];
      const answer = () => response.writeHead(status, { "content-type": "application/json", ...headers }).end('{"id":1}');
      response.req.resume().on("end", () => (after > 0 ? setTimeout(answer, after) : answer()));
      return;
    }
    const path = pathname === "/" ? "/page/index.html" : pathname;
    const file = path.startsWith("/dist/") ? join(dist, path.slice(6)) : join(root, "benches", path);
    const body = await readFile(file).catch(() => undefined);
    response.writeHead(body ? 200 : 404, { "content-type": types[extname(file)] ?? "text/plain", ...isolated }).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}/`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
