// Assembly: one Fastify instance, the hooks that every request passes, and the routes.

import { isAbsolute, resolve } from "node:path";
import { setTimeout as sleepFor } from "node:timers/promises";
import fastify from "fastify";
import fastifyStatic from "@fastify/static";
import { actBefore, drop, send } from "./answers.mjs";
import { readForm, sha256 } from "./body.mjs";
import { controlRoutes } from "./control.mjs";
import { Cors, isLoopback } from "./cors.mjs";
import { Faults } from "./faults.mjs";
import { Idempotency } from "./idempotency.mjs";
import { Ended, Inflight } from "./inflight.mjs";
import { Log } from "./log.mjs";
import { keyOf, orderRoutes } from "./orders.mjs";
import { loginPage } from "./pages.mjs";
import { blankProblem, problem, problemPage } from "./problem.mjs";
import { Store } from "./store.mjs";

/** @import { FastifyInstance, FastifyRequest } from "fastify" */
/** @import { Fault } from "./faults.mjs" */
/** @import { LogEntry } from "./log.mjs" */

/**
 * @typedef {object} Options
 * @property {number} [port] default 0: any free port
 * @property {string} [db] SQLite file; default `:memory:`
 * @property {number} [keyTtlMs] age at which a key is forgotten; default 24 h
 * @property {() => number} [now] wall clock in ms; default `Date.now`
 * @property {(ms: number, signal: AbortSignal) => Promise<unknown>} [sleep] how the slow faults wait; default a timer
 * @property {string} [keyHeader] default `Idempotency-Key`
 * @property {number | null} [runningRetryAfter] `Retry-After` of the 409 for a running key, in seconds; null sends none;
 *   default 1
 * @property {"bytes" | "entries"} [fingerprintOver] default `bytes`; see orders.mjs
 * @property {number} [bodyLimit] bytes; default 64 MiB
 * @property {Mount[]} [mounts] static folders
 */

/**
 * @typedef {object} Mount
 * @property {string} prefix e.g. `/pkg`
 * @property {string} dir
 * @property {Record<string, string>} [headers] added to every file of it
 */

/**
 * A complete request.
 * @typedef {object} Arrival
 * @property {LogEntry} entry
 * @property {import("./answers.mjs").Note} note
 * @property {Buffer} body
 * @property {import("./body.mjs").Form} form
 * @property {ReturnType<typeof keyOf>} found
 * @property {Fault | null} fault
 */

/**
 * Who may order: everybody, or who sends `Authorization: Bearer` with one of the tokens.
 * @typedef {{ tokens: Set<string> | null }} Access
 */

/**
 * What the routes share.
 * @typedef {object} Context
 * @property {Store} store
 * @property {Idempotency} idempotency
 * @property {Log} log
 * @property {Faults} faults
 * @property {Cors} cors
 * @property {Access} access
 * @property {Inflight} inflight
 * @property {() => number} now
 * @property {number | null} runningRetryAfter
 * @property {"bytes" | "entries"} fingerprintOver
 * @property {(request: FastifyRequest) => Arrival} arrivalOf
 * @property {() => void} reset
 */

/**
 * A running server.
 * @typedef {object} Server
 * @property {string} url `http://127.0.0.1:<port>`, without a trailing slash
 * @property {number} port
 * @property {Log} log `entries()`, `body(seq)`, `until(condition)`
 * @property {() => import("./log.mjs").LedgerLine[]} ledger
 * @property {() => import("./store.mjs").Order[]} orders
 * @property {Faults} faults `put(script)`, `left()`, `clear()`
 * @property {Cors} cors
 * @property {Access} access `tokens` may be set and changed at any time
 * @property {() => void} reset empties everything, takes faults out of force, ends waiting requests
 * @property {() => Promise<void>} close ends at once, hung sockets or not
 */

/**
 * Starts the reference server on the loopback interface.
 * @param {Options} [options]
 * @returns {Promise<Server>}
 */
export async function createServer(options = {}) {
  const { now = Date.now, keyHeader = "Idempotency-Key", bodyLimit = 64 * 1024 * 1024 } = options;
  const store = new Store(options.db ?? ":memory:");
  /** @type {WeakMap<FastifyRequest, Arrival>} */
  const arrivals = new WeakMap();
  /** @type {Context} */
  const context = {
    store,
    idempotency: new Idempotency(store, now, options.keyTtlMs ?? 24 * 60 * 60 * 1000),
    log: new Log(),
    faults: new Faults(),
    cors: new Cors(keyHeader),
    access: { tokens: null },
    inflight: new Inflight(options.sleep ?? ((ms, signal) => sleepFor(ms, undefined, { signal }))),
    now,
    runningRetryAfter: options.runningRetryAfter === undefined ? 1 : options.runningRetryAfter,
    fingerprintOver: options.fingerprintOver ?? "bytes",
    arrivalOf: (request) => /** @type {Arrival} */ (arrivals.get(request)),
    reset() {
      context.inflight.endAll();
      context.faults.clear();
      context.cors.reset();
      context.access.tokens = null;
      context.store.clear();
      context.log.clear();
    },
  };

  const app = fastify({ bodyLimit, forceCloseConnections: true, logger: false });
  // Bodies stay bytes, whatever their type says: they are fingerprinted, and a parser's opinion is not what was sent.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  everyRequest(app, context, arrivals, keyHeader.toLowerCase());
  orderRoutes(app, context);
  controlRoutes(app, context);
  app.get("/login", (_request, reply) => reply.type("text/html; charset=utf-8").send(loginPage()));
  app.get("/problems", (_request, reply) => reply.type("text/html; charset=utf-8").send(problemPage()));
  app.options("*", (request, reply) => context.cors.preflight(request, reply));
  await mount(app, options.mounts ?? []);

  try {
    await app.listen({ host: "127.0.0.1", port: options.port ?? 0 });
  } catch (error) {
    store.close();
    throw error;
  }
  const { port } = /** @type {import("node:net").AddressInfo} */ (app.server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    log: context.log,
    ledger: () => context.log.ledger(store.orders()),
    orders: () => store.orders(),
    faults: context.faults,
    cors: context.cors,
    access: context.access,
    reset: context.reset,
    async close() {
      context.inflight.endAll();
      await app.close();
      store.close();
    },
  };
}

/**
 * The hooks: log the head, apply CORS, log the body, take and act out the fault, log the answer.
 * @param {FastifyInstance} app
 * @param {Context} context
 * @param {WeakMap<FastifyRequest, Arrival>} arrivals
 * @param {string} keyHeader lower case
 */
function everyRequest(app, context, arrivals, keyHeader) {
  const { log, faults, cors, inflight } = context;
  /** @type {WeakMap<import("node:net").Socket, number>} */
  const connections = new WeakMap();
  let lastConnection = 0;
  app.server.on("connection", (socket) => connections.set(socket, ++lastConnection));
  /** @type {WeakMap<FastifyRequest, LogEntry>} */
  const entries = new WeakMap();

  /** @type {(entry: LogEntry) => import("./answers.mjs").Note} */
  const noteFor = (entry) => (answered) => {
    entry.answered = answered;
    log.changed();
  };

  app.addHook("onRequest", (request, reply, done) => {
    const { headers, method, url } = request;
    const path = url.split("?")[0] ?? url;
    if (isControl(path)) {
      if (headers.origin !== undefined && !isLoopback(headers.origin)) return send(reply, problem("control-forbidden", headers.origin));
      cors.allow(request, reply);
      return done();
    }
    const sent = headers[keyHeader];
    entries.set(request, log.open({
      time: new Date(context.now()).toISOString(),
      connection: connections.get(request.raw.socket) ?? 0,
      method,
      path,
      url,
      origin: headers.origin ?? null,
      idempotencyKey: sent === undefined ? null : String(sent),
      contentType: headers["content-type"] ?? null,
      headers: { ...headers },
    }));
    cors.allow(request, reply);
    done();
  });

  app.addHook("preHandler", async (request, reply) => {
    const entry = entries.get(request);
    if (!entry) return;
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const form = await readForm(request.headers["content-type"], body);
    const found = keyOf(entry.idempotencyKey ?? undefined, form);
    log.complete(entry, { key: found.key, bodySha256: sha256(body), body });
    const fault = (entry.fault = faults.take(entry.method, entry.path));
    const note = noteFor(entry);
    arrivals.set(request, { entry, note, body, form, found, fault });
    log.changed();
    if (await actBefore(reply, fault, note, inflight)) return reply;
  });

  app.addHook("onSend", async (request, reply) => {
    const entry = entries.get(request);
    if (!entry) return;
    noteFor(entry)(request.raw.socket.destroyed ? "gone" : reply.statusCode);
  });

  app.setErrorHandler((error, request, reply) => {
    const entry = entries.get(request);
    if (error instanceof Ended && entry) return drop(reply, noteFor(entry));
    const { statusCode = 500, message } = /** @type {{ statusCode?: number, message: string }} */ (error);
    return send(reply, blankProblem(statusCode, message));
  });
  app.setNotFoundHandler((request, reply) => send(reply, problem("not-found", request.url)));
}

/** @param {string} path */
const isControl = (path) => path === "/control" || path.startsWith("/control/");

/**
 * @param {FastifyInstance} app
 * @param {Mount[]} mounts
 */
async function mount(app, mounts) {
  for (const [i, { prefix, dir, headers = {} }] of mounts.entries()) {
    await app.register(fastifyStatic, {
      root: isAbsolute(dir) ? dir : resolve(dir),
      prefix: `/${prefix.replace(/^\/+|\/+$/g, "")}/`.replace("//", "/"),
      decorateReply: i === 0,
      cacheControl: false,
      setHeaders(response) {
        // Revalidate, but stay eligible for the back/forward cache, which no-store would forbid.
        response.setHeader("cache-control", "no-cache");
        for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      },
    });
  }
}
