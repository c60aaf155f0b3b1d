// What a body says, for the three types that forms and scripts send. The bytes themselves are never changed: they are what
// the fingerprint is made of.

import { createHash } from "node:crypto";

/** @typedef {{ filename: string, type: string, size: number, sha256: string }} FileEntry */
/** @typedef {[name: string, value: string | FileEntry]} Entry */

/**
 * @typedef {object} Form
 * @property {"multipart" | "urlencoded" | "json" | "other"} kind
 * @property {Entry[]} entries in the order of the body; of JSON, the members of a top-level object
 * @property {string} text the beginning of the body, for people
 * @property {string | null} error why the body does not parse, or null
 */

const TEXT_LENGTH = 500;

/**
 * Hex SHA-256.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * Reads a body. Never throws: what does not parse is still an arrival to be logged, and the route decides what to answer.
 * @param {string | undefined} contentType
 * @param {Buffer} bytes
 * @returns {Promise<Form>}
 */
export async function readForm(contentType, bytes) {
  const type = (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const text = bytes.toString("utf8", 0, TEXT_LENGTH);
  const kind = kindOf(type);
  try {
    if (kind === "json") return { kind, text, entries: jsonEntries(JSON.parse(bytes.toString("utf8"))), error: null };
    if (kind === "other") return { kind, text, entries: [], error: null };
    return { kind, text, entries: await formEntries(contentType ?? "", bytes), error: null };
  } catch (error) {
    return { kind, text, entries: [], error: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * The values of a text field.
 * @param {Form} form
 * @param {string} name
 * @returns {string[]}
 */
export function fieldValues(form, name) {
  return form.entries.flatMap(([n, value]) => (n === name && typeof value === "string" ? [value] : []));
}

/**
 * @param {string} type
 * @returns {Form["kind"]}
 */
function kindOf(type) {
  if (type === "multipart/form-data") return "multipart";
  if (type === "application/x-www-form-urlencoded") return "urlencoded";
  return type === "application/json" || type.endsWith("+json") ? "json" : "other";
}

/**
 * The platform's own parser reads both form encodings as browsers write them.
 * @param {string} contentType
 * @param {Buffer} bytes
 * @returns {Promise<Entry[]>}
 */
async function formEntries(contentType, bytes) {
  const data = await new Response(new Uint8Array(bytes), { headers: { "content-type": contentType } }).formData();
  /** @type {Entry[]} */
  const entries = [];
  for (const [name, value] of data) {
    if (typeof value === "string") {
      entries.push([name, value]);
      continue;
    }
    const content = new Uint8Array(await value.arrayBuffer());
    entries.push([name, { filename: value.name, type: value.type, size: content.length, sha256: sha256(content) }]);
  }
  return entries;
}

/**
 * @param {unknown} value
 * @returns {Entry[]}
 */
function jsonEntries(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries(value).map(([name, v]) => [name, typeof v === "string" ? v : JSON.stringify(v)]);
}
