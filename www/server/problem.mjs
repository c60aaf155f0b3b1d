// Problem documents (RFC 9457): every refusal of this server says what was wrong in a form a program can read,
// and points to a page that a person can read.

/**
 * An HTTP answer as data: what a handler decides, before anything is written to a socket.
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string>} headers lower-case names
 * @property {string} body
 */

/** @type {Record<string, { status: number, title: string, about: string }>} */
const KINDS = {
  "key-missing": {
    status: 400,
    title: "Idempotency-Key is missing",
    about: "This operation needs a key: the header Idempotency-Key, or a form field of the body named idempotency_key.",
  },
  "key-malformed": {
    status: 400,
    title: "Idempotency-Key is malformed",
    about: "A key is one bare token or one quoted string of a structured field, 1 to 255 visible ASCII characters.",
  },
  "key-ambiguous": {
    status: 400,
    title: "The header and the body name different keys",
    about: "Send the key in one place, or the same key in both.",
  },
  "key-reused": {
    status: 422,
    title: "Idempotency-Key is already used",
    about: "This key belongs to a request with other bytes. A new request needs a new key; a retry must repeat the bytes.",
  },
  "key-running": {
    status: 409,
    title: "A request is outstanding for this Idempotency-Key",
    about: "The first request of this key has not finished. Repeat it later, with the same key and the same bytes.",
  },
  unauthorized: {
    status: 401,
    title: "Sign in first",
    about: "Orders need a token: the header Authorization, as Bearer.",
  },
  "body-malformed": {
    status: 400,
    title: "The body is not what its Content-Type says",
    about: "JSON that does not parse, or multipart without the boundary that its Content-Type names.",
  },
  "control-invalid": { status: 400, title: "The control request is invalid", about: "The detail names the field." },
  "control-forbidden": {
    status: 403,
    title: "Control is for loopback origins",
    about: "Pages of other origins may place orders but may not script faults or read the log.",
  },
  "not-found": { status: 404, title: "Not found", about: "No such order or route." },
};

/**
 * Builds the answer for one kind of refusal.
 * @param {string} kind a key of the table above
 * @param {string} [detail] what was wrong this time
 * @param {Record<string, unknown>} [members] extension members of the document
 * @param {string} [base] where the documentation page is served; used in `type` and `Link`
 * @returns {Answer}
 */
export function problem(kind, detail, members = {}, base = "/problems") {
  const { status, title } = KINDS[kind] ?? { status: 500, title: kind };
  const type = `${base}#${kind}`;
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      link: `<${type}>; rel="describedby"; type="text/html"`,
    },
    body: JSON.stringify({ type, title, status, ...(detail ? { detail } : {}), ...members }),
  };
}

/**
 * A problem document without a documented type, for errors of the HTTP layer and for scripted statuses.
 * @param {number} status
 * @param {string} title
 * @returns {Answer}
 */
export function blankProblem(status, title) {
  return {
    status,
    headers: { "content-type": "application/problem+json" },
    body: JSON.stringify({ type: "about:blank", title, status }),
  };
}

/**
 * The page that the `type` of every problem points to.
 * @returns {string} HTML
 */
export function problemPage() {
  const rows = Object.entries(KINDS)
    .map(([id, { status, title, about }]) => `<dt id="${id}">${status} ${title}</dt><dd>${about}</dd>`)
    .join("\n");
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Problems</title><h1>Problems</h1><dl>\n${rows}\n</dl></html>`;
}
