// The three things this page needs of the DOM. Text goes in as text: nothing a server or a visitor said becomes HTML.

/**
 * The element with that id.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * A new element.
 * @param {string} name
 * @param {Record<string, any>} [properties] set as properties; `data-…` and `aria-…` as attributes
 * @param {(Node | string)[]} children
 * @returns {any}
 */
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (property.includes("-")) made.setAttribute(property, value);
    else Object.assign(made, { [property]: value });
  }
  made.append(...children);
  return made;
}

/**
 * Writes text only where it differs: an unchanged node keeps the visitor's selection.
 * @param {Element} node
 * @param {string | number} text
 */
export function say(node, text) {
  if (node.textContent !== String(text)) node.textContent = String(text);
}

/** @param {string} key */
export const shortKey = (key) => (key.length > 9 ? `${key.slice(0, 8)}…` : key);

/** @param {number | string | Date} time */
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
