// The few pages that a browser can be sent to.

/** @import { Order } from "./store.mjs" */

/** @type {Record<string, string>} */
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** @param {string} text */
const escape = (text) => text.replace(/[&<>"']/g, (c) => ESCAPES[c] ?? c);

/**
 * @param {string} title
 * @param {string} content HTML
 */
const page = (title, content) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escape(title)}</title></head>` +
  `<body><h1>${escape(title)}</h1>${content}</body></html>\n`;

/**
 * The sign-in page that an expired session is redirected to.
 * @returns {string} HTML
 */
export function loginPage() {
  return page("Sign in", '<form method="post" action="/login"><label>Account <input name="account" required></label> <button>Sign in</button></form>');
}

/**
 * The page of one order.
 * @param {Order} order
 * @returns {string} HTML
 */
export function orderPage(order) {
  const rows = order.fields
    .map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(typeof value === "string" ? value : `${value.filename} (${value.size} bytes)`)}</dd>`)
    .join("");
  return page(`Order ${order.id}`, `<p>Received ${escape(order.createdAt)}.</p><dl>${rows}</dl>`);
}
