// The rules of draft-ietf-httpapi-idempotency-key-header, free of HTTP: what a key looks like, what makes two requests the
// same, and which of four things a request with a key is. Routes translate the result into status codes.

import { createHash } from "node:crypto";
import { KeyTaken } from "./store.mjs";

/** @import { Answer } from "./problem.mjs" */
/** @import { Store, NewOrder } from "./store.mjs" */

/**
 * What a request with a key is:
 * - `new`: nobody knows the key; the ticket must end in `commit` or `release`
 * - `running`: the first request of this key has not finished (409)
 * - `mismatch`: the key belongs to other bytes (422)
 * - `done`: the stored answer, to be replayed
 * @typedef {{ state: "new", ticket: Ticket } | { state: "running" } | { state: "mismatch" }
 *   | { state: "done", answer: Answer }} Standing
 */

/**
 * The right to run one request of one key.
 * @typedef {object} Ticket
 * @property {(order: NewOrder, answer: Answer) => Standing | null} commit writes order, key and answer in one transaction.
 *   Returns null when that happened. If another process on the same file was faster, nothing is written and the key's new
 *   standing is returned.
 * @property {() => void} release gives the key up unused; the next request with it is `new` again
 */

const MAX_KEY_LENGTH = 255;
// RFC 9110 §5.6.2: what a client that knows nothing of structured fields sends.
const BARE_TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// RFC 9651 §3.3.3, the form the draft asks for; parameters are allowed on any item and mean nothing here.
const QUOTED_STRING = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"(?: *;[ a-z*][\x20-\x7e]*)?$/;

/**
 * Reads the value of the `Idempotency-Key` header. `abc` and `"abc"` are the same key: clients that follow the draft and
 * clients that follow common practice must be able to retry each other's requests.
 *
 * Two header lines arrive joined by a comma and are malformed: a request has one key.
 * @param {string} value
 * @returns {string | null} the key, or null if malformed
 */
export function parseKey(value) {
  const text = value.trim();
  const quoted = QUOTED_STRING.exec(text);
  const key = quoted?.[1] !== undefined ? quoted[1].replace(/\\(["\\])/g, "$1") : BARE_TOKEN.test(text) ? text : null;
  return key !== null && key.length >= 1 && key.length <= MAX_KEY_LENGTH ? key : null;
}

/**
 * The fingerprint of a request: SHA-256 over its parts, each preceded by its length so that no two lists of parts can
 * give the same bytes.
 * @param {(string | Uint8Array)[]} parts method, target, Content-Type and body
 * @returns {string} hex
 */
export function fingerprint(parts) {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest("hex");
}

/** The keys of all accounts: those that are running, in memory, and those that are done, in the store. */
export class Idempotency {
  /**
   * Work that dies with the process has committed nothing, so "running" needs no disk: after a crash the key is unknown,
   * the client's retry is `new`, and that is right.
   * @type {Map<string, string>}
   */
  #running = new Map();
  #store;
  #now;
  #keyTtlMs;

  /**
   * @param {Store} store
   * @param {() => number} now wall clock, ms
   * @param {number} keyTtlMs age at which a key is forgotten
   */
  constructor(store, now, keyTtlMs) {
    this.#store = store;
    this.#now = now;
    this.#keyTtlMs = keyTtlMs;
  }

  /**
   * Decides what a request is. There is no await between the look and the entry in the running table, so of any number of
   * simultaneous requests exactly one is `new`.
   * @param {string} account keys of different accounts never meet
   * @param {string} key
   * @param {string} print the request's fingerprint
   * @returns {Standing}
   */
  begin(account, key, print) {
    const id = JSON.stringify([account, key]);
    const running = this.#running.get(id);
    // Other bytes are an error for good and "running" is not, so the mismatch is said first.
    if (running !== undefined) return { state: running === print ? "running" : "mismatch" };

    const done = this.#find(account, key, print);
    if (done) return done;

    this.#running.set(id, print);
    const release = () => void this.#running.delete(id);
    return {
      state: "new",
      ticket: {
        release,
        commit: (order, answer) => {
          try {
            this.#store.commit(order, { account, key, fingerprint: print, answer, createdAt: this.#now() });
            return null;
          } catch (error) {
            if (!(error instanceof KeyTaken)) throw error;
            return this.#find(account, key, print) ?? { state: "running" };
          } finally {
            release();
          }
        },
      },
    };
  }

  /**
   * @param {string} account
   * @param {string} key
   * @param {string} print
   * @returns {Standing | null}
   */
  #find(account, key, print) {
    this.#store.forgetKeys(this.#now() - this.#keyTtlMs);
    const row = this.#store.findKey(account, key);
    if (!row) return null;
    return row.fingerprint === print ? { state: "done", answer: row.answer } : { state: "mismatch" };
  }
}
