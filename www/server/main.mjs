#!/usr/bin/env node
// Command line: node www/server/main.mjs --port 8787 --db orders.db --key-ttl-ms 86400000 --mount /=www/demo

import { parseArgs } from "node:util";
import { createServer } from "./server.mjs";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "8787" },
    db: { type: "string", default: ":memory:" },
    "key-ttl-ms": { type: "string", default: String(24 * 60 * 60 * 1000) },
    mount: { type: "string", multiple: true, default: [] },
  },
});

/**
 * @param {"port" | "key-ttl-ms"} name
 * @param {number} max
 */
function whole(name, max) {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= 0 && number <= max) return number;
  console.error(`--${name} must be a whole number from 0 to ${max}, got ${values[name]}`);
  return process.exit(2);
}

const mounts = values.mount.map((text) => {
  const [prefix = "", ...dir] = text.split("=");
  return { prefix, dir: dir.join("=") || "." };
});
const server = await createServer({
  port: whole("port", 65535),
  db: values.db,
  keyTtlMs: whole("key-ttl-ms", Number.MAX_SAFE_INTEGER),
  mounts,
});
console.log(`resubmit reference server: ${server.url} (database ${values.db})`);

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void server.close());
