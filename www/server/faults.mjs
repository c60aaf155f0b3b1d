// Faults as data: which exist, what each may say, and the scripts that hand them to arrivals one by one. Acting them out
// is the business of answers.mjs.

import { validateHeaderName, validateHeaderValue } from "node:http";

/**
 * @typedef {object} StatusFields
 * @property {number} status
 * @property {Record<string, string | string[]>} [headers]
 * @property {unknown} [body] a string as it is, anything else as JSON
 * @property {string} [contentType]
 * @property {boolean} [cors] false: the answer carries no CORS headers
 */

/** @typedef {{ status?: number, location: string, headers?: StatusFields["headers"], cors?: boolean }} RedirectFields */

/**
 * @typedef {{ type: "ok" } | { type: "hang" } | { type: "truncate" }
 *   | { type: "slow" | "process-slow", ms: number }
 *   | { type: "drop" | "commit-drop", reset?: boolean }
 *   | ({ type: "status" | "commit-status" | "no-cors" | "replayed" } & StatusFields)
 *   | ({ type: "redirect" | "commit-redirect" } & RedirectFields)} Fault
 */

/** @typedef {{ method: string, route: string, script: Fault[], then: "ok" | "repeat-last", taken: number }} Script */

/** A fault script that can't be meant; `field` is the path of the offending field. */
export class FaultError extends Error {
  name = "FaultError";
  /**
   * @param {string} field
   * @param {string} expected
   * @param {unknown} [got]
   */
  constructor(field, expected, got) {
    super(`${field} ${expected}${got === undefined ? "" : `, got ${JSON.stringify(got)}`}`);
    this.field = field;
  }
}

/** Node's timers turn anything longer into 1 ms. */
const MAX_MS = 2 ** 31 - 1;

/** @typedef {(value: any, field: string) => void} Check throws a FaultError */

/** @type {(expected: string, test: (value: any) => boolean) => Check} */
const check = (expected, test) => (value, field) => {
  if (!test(value)) throw new FaultError(field, `must be ${expected}`, value);
};
const isStatus = check("an integer from 200 to 599", (v) => Number.isInteger(v) && v >= 200 && v <= 599);
const isRedirect = check("301, 302, 303, 307 or 308", (v) => [301, 302, 303, 307, 308].includes(v));
const isMs = check(`an integer from 0 to ${MAX_MS}`, (v) => Number.isInteger(v) && v >= 0 && v <= MAX_MS);
const isBoolean = check("true or false", (v) => typeof v === "boolean");
const isLocation = check("a URL or a path", (v) => typeof v === "string" && v !== "" && URL.canParse(v, "http://127.0.0.1"));
const isMediaType = check("a media type", (v) => typeof v === "string" && /^[!-~]+\/[ -~]+$/.test(v));
const anything = () => {};

/** @type {Check} */
function isHeaders(value, field) {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new FaultError(field, "must be an object of header names and values", value);
  for (const [name, content] of Object.entries(value)) {
    const values = Array.isArray(content) ? content : [content];
    if (!values.every((v) => typeof v === "string")) throw new FaultError(`${field}.${name}`, "must be a string or a list of strings", content);
    try {
      validateHeaderName(name);
      for (const v of values) validateHeaderValue(name, v);
    } catch {
      throw new FaultError(`${field}.${name}`, "is not a valid header", content);
    }
  }
}

const ANSWER = { headers: isHeaders, body: anything, contentType: isMediaType };
const REDIRECT = { required: { location: isLocation }, optional: { status: isRedirect, headers: isHeaders, cors: isBoolean } };
const STATUS = { required: { status: isStatus }, optional: { ...ANSWER, cors: isBoolean } };

/** @type {Record<string, { required?: Record<string, Check>, optional?: Record<string, Check> }>} */
const TYPES = {
  ok: {},
  hang: {},
  truncate: {},
  slow: { required: { ms: isMs } },
  "process-slow": { required: { ms: isMs } },
  drop: { optional: { reset: isBoolean } },
  "commit-drop": { optional: { reset: isBoolean } },
  status: STATUS,
  replayed: STATUS,
  "commit-status": STATUS,
  "no-cors": { required: { status: isStatus }, optional: ANSWER },
  redirect: REDIRECT,
  "commit-redirect": REDIRECT,
};

/** These act on an order that is being made, so they need a route that makes orders. */
const NEEDS_ORDER = new Set(["process-slow", "commit-drop", "commit-status", "commit-redirect", "truncate"]);
const ORDER_ROUTES = ["/orders", "/orders-plain"];

/**
 * Reads the body of `PUT /control/faults`.
 * @param {unknown} input
 * @returns {Script}
 * @throws {FaultError}
 */
export function parseScript(input) {
  if (typeof input !== "object" || input === null || Array.isArray(input)) throw new FaultError("body", "must be a JSON object");
  const { route, method = "POST", script, then = "ok", ...rest } = /** @type {Record<string, any>} */ (input);
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) throw new FaultError(unknown, "is not a field of a fault script");
  if (typeof route !== "string" || !/^(\/[^*?#]*)?\*?$/.test(route) || route === "")
    throw new FaultError("route", "must be a path such as \"/orders\", or a prefix such as \"/pkg/*\" or \"*\"", route);
  if (typeof method !== "string" || !/^([A-Z]+|\*)$/.test(method)) throw new FaultError("method", "must be a method in capitals, or \"*\"", method);
  if (!Array.isArray(script)) throw new FaultError("script", "must be a list of faults", script);
  if (then !== "ok" && then !== "repeat-last") throw new FaultError("then", "must be \"ok\" or \"repeat-last\"", then);
  if (then === "repeat-last" && script.length === 0) throw new FaultError("script", "must not be empty when then is \"repeat-last\"");
  const makesOrders = method === "POST" && ORDER_ROUTES.includes(route);
  return { method, route, then, taken: 0, script: script.map((fault, i) => parseFault(fault, `script[${i}]`, makesOrders)) };
}

/**
 * @param {any} fault
 * @param {string} at
 * @param {boolean} makesOrders
 * @returns {Fault}
 */
function parseFault(fault, at, makesOrders) {
  if (typeof fault !== "object" || fault === null || Array.isArray(fault)) throw new FaultError(at, "must be an object", fault);
  const { type, ...fields } = fault;
  if (typeof type !== "string" || !Object.hasOwn(TYPES, type)) throw new FaultError(`${at}.type`, `must be one of ${Object.keys(TYPES).join(", ")}`, type);
  if (NEEDS_ORDER.has(type) && !makesOrders) throw new FaultError(`${at}.type`, `needs POST on ${ORDER_ROUTES.join(" or ")}`, type);
  const { required = {}, optional = {} } = TYPES[type] ?? {};
  for (const name of Object.keys(required)) if (!Object.hasOwn(fields, name)) throw new FaultError(`${at}.${name}`, `is required for "${type}"`);
  for (const [name, value] of Object.entries(fields)) {
    const test = Object.hasOwn(required, name) ? required[name] : Object.hasOwn(optional, name) ? optional[name] : undefined;
    if (!test) throw new FaultError(`${at}.${name}`, `is not a field of "${type}"`);
    test(value, `${at}.${name}`);
  }
  return fault;
}

/** The scripts in force, one per method and route. */
export class Faults {
  /** @type {Map<string, Script>} */
  #scripts = new Map();

  /**
   * Puts a script in force, in place of any for the same method and route.
   * @param {unknown} input as for `parseScript`
   * @returns {Script}
   * @throws {FaultError}
   */
  put(input) {
    const script = parseScript(input);
    this.#scripts.set(`${script.method} ${script.route}`, script);
    return script;
  }

  /**
   * The fault for one arrival. Each arrival consumes one entry of the closest script: an exact path before a prefix, the
   * longer prefix before the shorter, a named method before any.
   * @param {string} method
   * @param {string} path
   * @returns {Fault | null} null if nothing is scripted
   */
  take(method, path) {
    const [script] = [...this.#scripts.values()]
      .filter((s) => (s.method === "*" || s.method === method) && covers(s.route, path))
      .sort((a, b) => closeness(b) - closeness(a));
    if (!script) return null;
    const index = script.taken++;
    return script.script[index] ?? (script.then === "repeat-last" ? script.script.at(-1) : undefined) ?? { type: "ok" };
  }

  /** @returns {(Omit<Script, "taken"> & { taken: number })[]} what is left of each script, and how many arrivals it met */
  left() {
    return [...this.#scripts.values()].map((s) => ({ ...s, script: s.script.slice(s.taken) }));
  }

  /** Takes every script out of force. */
  clear() {
    this.#scripts.clear();
  }
}

/** @param {string} route @param {string} path */
const covers = (route, path) => (route.endsWith("*") ? path.startsWith(route.slice(0, -1)) : path === route);

/** @param {Script} script */
const closeness = ({ route, method }) => (route.endsWith("*") ? route.length * 2 : 1e6) + (method === "*" ? 0 : 1);
