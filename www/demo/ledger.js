// What the server knows: the other half of the truth.

import { byId, clock, el, say, shortKey } from "./dom.js";
import { orderOf } from "./words.js";

/** @import { Seen } from "./server.js" */

const ROWS = 12;

/** @param {Seen} seen */
export function drawLedger({ reachable, arrivals, orders, ledger }) {
  say(byId("server-note"), reachable ? "" : "The server cannot be reached; this is what it last said.");
  byId("server-note").hidden = reachable;

  const bare = arrivals.filter(({ key }) => key === null);
  const keys = ledger.slice(-ROWS).reverse().map((line) => [keyCell(line.key), line.arrivals, line.orders]);
  if (bare.length > 0) keys.push(["no key", bare.length, orders.filter(({ key }) => key === null).length]);
  fill("ledger-keys", keys, "Nothing arrived yet.", 3);

  const numbers = new Map(orders.map(({ id }, at) => [id, at + 1]));
  fill(
    "ledger-arrivals",
    latest(arrivals).map((entry) => [clock(entry.time), keyCell(entry.key), answerOf(entry), madeBy(entry, numbers)]),
    "None yet.",
    4,
  );
  fill(
    "ledger-orders",
    latest(orders).map((order) => [
      clock(order.createdAt),
      `no. ${numbers.get(order.id)}: ${orderOf(Object.fromEntries(order.fields))}`,
      keyCell(order.key),
    ]),
    "None yet.",
    3,
  );
}

/** @template T @param {readonly T[]} list */
const latest = (list) => list.slice(-ROWS).reverse();

/** @param {string | null} key */
const keyCell = (key) => (key === null ? "no key" : el("code", { title: key }, shortKey(key)));

/** @param {any} entry */
function answerOf({ answered, replayed, complete }) {
  if (!complete) return "arriving";
  if (answered === null) return "waiting";
  if (answered === "hung") return "never answered";
  if (answered === "gone") return "client had left";
  // A fault may have kept the stored answer from going out.
  return replayed && answered === 201 ? "201, stored answer" : String(answered);
}

/** @param {any} entry @param {Map<string, number>} numbers */
const madeBy = ({ orderId }, numbers) => (orderId === null ? "–" : `no. ${numbers.get(orderId) ?? "?"}`);

/**
 * @param {string} id
 * @param {(Node | string | number)[][]} lines
 * @param {string} none
 * @param {number} columns
 */
function fill(id, lines, none, columns) {
  const body = byId(id);
  const made = lines.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell instanceof Node ? cell : String(cell)))));
  const next = made.length > 0 ? made : [el("tr", {}, el("td", { colSpan: columns, className: "none" }, none))];
  const text = (/** @type {Element[]} */ list) => list.map((tr) => [...tr.children].map((td) => td.textContent).join("\t")).join("\n");
  if (text(next) !== text([...body.children])) body.replaceChildren(...next);
}
