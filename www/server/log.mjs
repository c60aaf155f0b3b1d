// What arrived, in order, written down before anything acts on it. Tests compare this with what the client believes.

/** @import { Fault } from "./faults.mjs" */

/**
 * One request that reached the server.
 * @typedef {object} LogEntry
 * @property {number} seq 1, 2, … in the order in which request heads arrived
 * @property {string} time RFC 3339
 * @property {number} connection which TCP socket: equal numbers are one socket
 * @property {string} method
 * @property {string} path without the query
 * @property {string} url the request target as sent
 * @property {string | null} origin
 * @property {string | null} idempotencyKey the header exactly as sent
 * @property {string | null} key the key that it means, from the header or the body field; null if absent or malformed
 * @property {string | null} contentType exactly as sent
 * @property {Record<string, string | string[] | undefined>} headers all of them
 * @property {boolean} complete the whole body was read
 * @property {number | null} bodyLength bytes; null until complete
 * @property {string | null} bodySha256 hex; null until complete
 * @property {Fault | null} fault what was scripted for this arrival
 * @property {number | "dropped" | "hung" | "truncated" | "gone" | null} answered a status; `gone` if the client had closed
 *   the socket before the answer; null while nothing has been decided
 * @property {boolean} replayed the answer was the stored one
 * @property {string | null} orderId the order that this arrival made
 */

/** @typedef {{ key: string, arrivals: number, orders: number }} LedgerLine */

/** Bodies are kept so that a test can compare bytes; beyond this many in total only the hash is. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** The log of arrivals, in memory. */
export class Log {
  /** @type {LogEntry[]} */
  #entries = [];
  /** @type {Map<number, Buffer>} */
  #bodies = new Map();
  #keptBytes = 0;
  #seq = 0;
  /** @type {Set<() => void>} */
  #watchers = new Set();

  /**
   * Writes down a request's head.
   * @param {Pick<LogEntry, "time" | "connection" | "method" | "path" | "url" | "origin" | "idempotencyKey" | "contentType"
   *   | "headers">} head
   * @returns {LogEntry} to be filled in as the request goes on
   */
  open(head) {
    /** @type {LogEntry} */
    const entry = {
      seq: ++this.#seq,
      ...head,
      key: null,
      complete: false,
      bodyLength: null,
      bodySha256: null,
      fault: null,
      answered: null,
      replayed: false,
      orderId: null,
    };
    this.#entries.push(entry);
    return entry;
  }

  /**
   * Writes down that the body is here.
   * @param {LogEntry} entry
   * @param {{ key: string | null, bodySha256: string, body: Buffer }} arrival
   */
  complete(entry, { key, bodySha256, body }) {
    Object.assign(entry, { key, bodySha256, bodyLength: body.length, complete: true });
    // A request that was under way when the log was emptied belongs to no log any more.
    if (this.#entries.includes(entry) && this.#keptBytes + body.length <= KEPT_BYTES) {
      this.#keptBytes += body.length;
      this.#bodies.set(entry.seq, body);
    }
  }

  /** Tells those who wait in `until` to look again: an entry changed. */
  changed() {
    for (const look of [...this.#watchers]) look();
  }

  /**
   * Resolves as soon as the log satisfies a condition.
   * @param {(entries: readonly LogEntry[]) => boolean} condition
   * @returns {Promise<readonly LogEntry[]>}
   */
  until(condition) {
    return new Promise((resolve, reject) => {
      const look = () => {
        try {
          if (!condition(this.#entries)) return;
          resolve(this.entries());
        } catch (error) {
          reject(error);
        }
        this.#watchers.delete(look);
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** @returns {readonly LogEntry[]} a copy of the list, oldest first */
  entries() {
    return [...this.#entries];
  }

  /**
   * The bytes of a body as they arrived.
   * @param {number} seq
   * @returns {Buffer | null} null if unknown, incomplete or not kept
   */
  body(seq) {
    return this.#bodies.get(seq) ?? null;
  }

  /**
   * Complete arrivals and orders per key: once per key is the whole point, so `orders` above 1 is a failure.
   * @param {readonly { key: string | null }[]} orders all orders of the store, so that it holds across a restart
   * @returns {LedgerLine[]} in the order in which keys were first seen
   */
  ledger(orders) {
    /** @type {Map<string, LedgerLine>} */
    const lines = new Map();
    /** @param {string} key */
    const line = (key) => {
      const known = lines.get(key) ?? { key, arrivals: 0, orders: 0 };
      lines.set(key, known);
      return known;
    };
    for (const { key, complete, method } of this.#entries) if (key !== null && complete && method === "POST") line(key).arrivals++;
    for (const { key } of orders) if (key !== null) line(key).orders++;
    return [...lines.values()];
  }

  /** Empties the log; sequence numbers start again at 1. */
  clear() {
    this.#entries = [];
    this.#bodies.clear();
    this.#keptBytes = 0;
    this.#seq = 0;
    this.changed();
  }
}
