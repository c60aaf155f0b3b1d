// What the tests of the reference server share: a server that ends with its test, requests over fetch and over bare sockets,
// and a clock and a sleep that move only when told.

import { connect } from "node:net";
import { createServer } from "../../www/server/server.mjs";

/** @import { TestContext } from "node:test" */
/** @import { Options } from "../../www/server/server.mjs" */

/**
 * A server that is closed when its test ends.
 * @param {TestContext} t
 * @param {Options} [options]
 */
export async function serve(t, options) {
  const server = await createServer(options);
  t.after(() => server.close());
  return server;
}

/**
 * @typedef {object} Post
 * @property {string} [path] default /orders
 * @property {string} [key] value of the header
 * @property {BodyInit} [body] default `{"item":"tea"}`
 * @property {string} [type] default application/json; "" leaves it to fetch
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * @param {{ url: string }} server
 * @param {Post} [post]
 */
export function post(server, { path = "/orders", key, body = '{"item":"tea"}', type = "application/json", headers = {}, signal } = {}) {
  /** @type {RequestInit} */
  const init = {
    method: "POST",
    body,
    redirect: "manual",
    headers: { ...(type ? { "content-type": type } : {}), ...(key === undefined ? {} : { "idempotency-key": key }), ...headers },
  };
  if (signal) init.signal = signal;
  return fetch(server.url + path, init);
}

/**
 * @param {{ url: string }} server
 * @param {string} path
 * @param {string} method
 * @param {unknown} [body]
 * @param {Record<string, string>} [headers]
 */
export function control(server, path, method = "GET", body = undefined, headers = {}) {
  return fetch(`${server.url}/control/${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}

/**
 * One bare TCP connection.
 * @param {{ port: number }} server
 */
export function socketTo(server) {
  const socket = connect(server.port, "127.0.0.1");
  let received = "";
  /** @type {string | null} */
  let error = null;
  /** @type {Set<() => void>} */
  const lookers = new Set();
  const look = () => lookers.forEach((l) => l());
  socket.on("data", (chunk) => ((received += chunk), look()));
  socket.on("error", (e) => (error = /** @type {NodeJS.ErrnoException} */ (e).code ?? e.message));
  /** @type {Promise<{ received: string, error: string | null }>} */
  const closed = new Promise((resolve) => socket.on("close", () => resolve({ received, error })));
  return {
    socket,
    /** Everything up to the end of the connection, and the error that ended it. */
    closed,
    /**
     * @param {string} path
     * @param {Record<string, string>} [headers]
     * @param {string} [body]
     */
    post(path, headers = {}, body = '{"item":"tea"}') {
      const lines = Object.entries({ host: "127.0.0.1", "content-type": "application/json", "content-length": String(Buffer.byteLength(body)), ...headers });
      socket.write(`POST ${path} HTTP/1.1\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n${body}`);
    },
    /**
     * Resolves when the received text matches.
     * @param {RegExp} pattern
     * @returns {Promise<string>}
     */
    received(pattern) {
      return new Promise((resolve) => {
        const check = () => {
          if (!pattern.test(received)) return;
          lookers.delete(check);
          resolve(received);
        };
        lookers.add(check);
        check();
      });
    },
  };
}

/** A sleep that ends when the test says so. */
export function gate() {
  /** @type {{ ms: number, open: () => void }[]} */
  const waiting = [];
  /** @type {(() => void)[]} */
  const watchers = [];
  return {
    waiting,
    /** @param {number} ms */
    sleep: (ms) =>
      new Promise((resolve) => {
        waiting.push({ ms, open: () => resolve(undefined) });
        watchers.splice(0).forEach((w) => w());
      }),
    /**
     * Resolves when so many requests wait.
     * @param {number} count
     */
    async holds(count) {
      while (waiting.length < count) await new Promise((resolve) => watchers.push(() => resolve(undefined)));
    },
    /** Lets all of them go. */
    open() {
      waiting.splice(0).forEach((w) => w.open());
    },
  };
}
