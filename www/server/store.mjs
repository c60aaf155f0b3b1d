// Orders and keys in SQLite. The one idea: a key and the order that was made under it are rows of the same transaction, so
// no crash can leave one without the other.

import { randomUUID } from "node:crypto";
import Database from "libsql";

/** @import { Answer } from "./problem.mjs" */
/** @import { Entry } from "./body.mjs" */

/**
 * @typedef {object} NewOrder
 * @property {string} id
 * @property {string | null} key the key that the request carried, whether or not the route honours it
 * @property {string} account
 * @property {string | null} contentType exactly as sent
 * @property {string} bodySha256 hex
 * @property {number} bodyLength bytes
 * @property {string} text the beginning of the body
 * @property {Entry[]} fields
 * @property {number} createdAt ms since the epoch
 */

/** @typedef {Omit<NewOrder, "createdAt"> & { createdAt: string }} Order createdAt as RFC 3339 */

/**
 * @typedef {object} KeyRow
 * @property {string} account
 * @property {string} key
 * @property {string} fingerprint
 * @property {Answer} answer
 * @property {number} createdAt ms since the epoch
 */

const SCHEMA = `
CREATE TABLE IF NOT EXISTS orders (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT    NOT NULL UNIQUE,
  key          TEXT,
  account      TEXT    NOT NULL,
  content_type TEXT,
  body_sha256  TEXT    NOT NULL,
  body_length  INTEGER NOT NULL,
  text         TEXT    NOT NULL,
  fields       TEXT    NOT NULL,   -- JSON
  created_at   INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS keys (
  account      TEXT    NOT NULL,
  key          TEXT    NOT NULL,
  fingerprint  TEXT    NOT NULL,
  order_id     TEXT    NOT NULL,
  status       INTEGER NOT NULL,
  headers      TEXT    NOT NULL,   -- JSON
  body         TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (account, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_age ON keys (created_at);
`;

/** Another process committed this key between our look and our commit. */
export class KeyTaken extends Error {
  name = "KeyTaken";
}

/** The database file. Every method is synchronous: a commit that returned is on disk. */
export class Store {
  #db;

  /** @param {string} file path, or `:memory:` */
  constructor(file) {
    this.#db = new Database(file);
    // WAL with synchronous=FULL syncs the log at every commit: what was answered with 201 outlives SIGKILL and power loss.
    this.#db.pragma("journal_mode = WAL");
    this.#db.pragma("synchronous = FULL");
    this.#db.pragma("busy_timeout = 5000");
    this.#db.exec(SCHEMA);
  }

  /**
   * Writes an order and, on a route that honours keys, its key: both or neither.
   * @param {NewOrder} order
   * @param {KeyRow | null} keyRow
   * @throws {KeyTaken} if the key exists; nothing was written then
   */
  commit(order, keyRow) {
    this.#db
      .transaction(() => {
        // The key first: its primary key is what makes a second order impossible, even from another process.
        if (keyRow) this.#insertKey(order.id, keyRow);
        this.#db
          .prepare(
            `INSERT INTO orders (id, key, account, content_type, body_sha256, body_length, text, fields, created_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          )
          .run(
            order.id, order.key, order.account, order.contentType, order.bodySha256, order.bodyLength, order.text,
            JSON.stringify(order.fields), order.createdAt,
          );
      })
      .immediate();
  }

  /**
   * @param {string} orderId
   * @param {KeyRow} row
   */
  #insertKey(orderId, { account, key, fingerprint, answer, createdAt }) {
    try {
      this.#db
        .prepare(
          `INSERT INTO keys (account, key, fingerprint, order_id, status, headers, body, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        )
        .run(account, key, fingerprint, orderId, answer.status, JSON.stringify(answer.headers), answer.body, createdAt);
    } catch (error) {
      const code = /** @type {{ code?: string }} */ (error).code;
      if (code === "SQLITE_CONSTRAINT_PRIMARYKEY") throw new KeyTaken(key, { cause: error });
      throw error;
    }
  }

  /**
   * @param {string} account
   * @param {string} key
   * @returns {KeyRow | null}
   */
  findKey(account, key) {
    const row = /** @type {Record<string, any> | undefined} */ (
      this.#db.prepare("SELECT * FROM keys WHERE account = ? AND key = ?").get(account, key)
    );
    if (!row) return null;
    return {
      account,
      key,
      fingerprint: row.fingerprint,
      answer: { status: row.status, headers: JSON.parse(row.headers), body: row.body },
      createdAt: row.created_at,
    };
  }

  /**
   * Forgets keys that were committed at or before a moment. Their orders stay.
   * @param {number} moment ms since the epoch
   */
  forgetKeys(moment) {
    this.#db.prepare("DELETE FROM keys WHERE created_at <= ?").run(moment);
  }

  /** @returns {Order[]} oldest first */
  orders() {
    return this.#db.prepare("SELECT * FROM orders ORDER BY seq").all().map(toOrder);
  }

  /**
   * @param {string} id
   * @returns {Order | null}
   */
  order(id) {
    const row = this.#db.prepare("SELECT * FROM orders WHERE id = ?").get(id);
    return row ? toOrder(row) : null;
  }

  /** Deletes every order and every key. */
  clear() {
    this.#db
      .transaction(() => {
        this.#db.exec("DELETE FROM orders");
        this.#db.exec("DELETE FROM keys");
      })
      .immediate();
  }

  /** Closes the file. */
  close() {
    this.#db.close();
  }
}

/**
 * A new identifier for an order.
 * @returns {string}
 */
export function newOrderId() {
  return randomUUID();
}

/**
 * The public form of an order.
 * @param {NewOrder} order
 * @returns {Order}
 */
export function presentOrder(order) {
  return { ...order, createdAt: new Date(order.createdAt).toISOString() };
}

/**
 * @param {any} row
 * @returns {Order}
 */
function toOrder(row) {
  return presentOrder({
    id: row.id,
    key: row.key,
    account: row.account,
    contentType: row.content_type,
    bodySha256: row.body_sha256,
    bodyLength: row.body_length,
    text: row.text,
    fields: JSON.parse(row.fields),
    createdAt: row.created_at,
  });
}
