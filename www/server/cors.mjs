// CORS: what other origins may send and read. Open for orders, since cross-origin submission is what is tested here; closed
// for control, since a web page must not be able to script this server.

/** @import { FastifyReply, FastifyRequest } from "fastify" */

const EXPOSED = "Retry-After, Location, Idempotent-Replayed, Date";
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** @typedef {{ allowKey: boolean, expose: boolean }} CorsSettings */

/** @type {Readonly<CorsSettings>} */
const DEFAULTS = Object.freeze({ allowKey: true, expose: true });

/** The CORS settings in force. */
export class Cors {
  /** @type {CorsSettings} */
  settings = { ...DEFAULTS };
  #keyHeader;

  /** @param {string} keyHeader the header that `allowKey: false` refuses */
  constructor(keyHeader) {
    this.#keyHeader = keyHeader.toLowerCase();
  }

  /** Back to the defaults. */
  reset() {
    this.settings = { ...DEFAULTS };
  }

  /**
   * Adds the headers that let the asking origin read the answer.
   * @param {FastifyRequest} request
   * @param {FastifyReply} reply
   */
  allow(request, reply) {
    const { origin } = request.headers;
    reply.header("vary", "Origin");
    if (origin === undefined) return;
    reply.header("access-control-allow-origin", origin);
    reply.header("access-control-allow-credentials", "true");
    if (this.settings.expose) reply.header("access-control-expose-headers", EXPOSED);
  }

  /**
   * Answers a preflight: every header that was asked for, less the key's when `allowKey` is off, so that clients which
   * rename headers need no configuration here.
   * @param {FastifyRequest} request
   * @param {FastifyReply} reply
   */
  preflight(request, reply) {
    const asked = String(request.headers["access-control-request-headers"] ?? "Idempotency-Key, Content-Type, Authorization");
    const allowed = asked
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && (this.settings.allowKey || name.toLowerCase() !== this.#keyHeader));
    reply
      .code(204)
      .header("access-control-allow-methods", METHODS)
      .header("access-control-allow-headers", allowed.join(", "))
      // Without this a browser remembers the answer for seconds, and a change of settings would not be seen.
      .header("access-control-max-age", "0")
      .send();
  }
}

/**
 * Takes every CORS header off an answer, as a gateway's own error page would lack them.
 * @param {FastifyReply} reply
 */
export function withoutCors(reply) {
  for (const name of Object.keys(reply.getHeaders())) if (name.startsWith("access-control-")) reply.removeHeader(name);
}

/**
 * Whether an `Origin` names a page on this machine. `null` (sandboxed frames, files) does not.
 * @param {string} origin
 * @returns {boolean}
 */
export function isLoopback(origin) {
  return URL.canParse(origin) && LOOPBACK.test(new URL(origin).hostname);
}
