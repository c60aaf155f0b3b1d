// POST /orders, which honours the key, and POST /orders-plain, which does not. HTTP in, HTTP out; the rules are in
// idempotency.mjs.

import { answerAfter, send } from "./answers.mjs";
import { fieldValues, sha256 } from "./body.mjs";
import { fingerprint, parseKey } from "./idempotency.mjs";
import { orderPage } from "./pages.mjs";
import { problem } from "./problem.mjs";
import { newOrderId, presentOrder } from "./store.mjs";

/** @import { FastifyInstance, FastifyReply, FastifyRequest } from "fastify" */
/** @import { Answer } from "./problem.mjs" */
/** @import { Context, Arrival } from "./server.mjs" */
/** @import { Form } from "./body.mjs" */
/** @import { Standing } from "./idempotency.mjs" */
/** @import { NewOrder } from "./store.mjs" */

/**
 * The key of a request: from the header, or from the field `idempotency_key` of a form or JSON body, which needs no
 * preflight.
 * @param {string | undefined} header the header as sent
 * @param {Form} form
 * @returns {{ key: string, from: "header" | "body" } | { key: null, kind: string, detail?: string }}
 */
export function keyOf(header, form) {
  const fromHeader = header === undefined ? undefined : parseKey(header);
  if (fromHeader === null) return { key: null, kind: "key-malformed", detail: `header: ${header}` };
  const [first, ...more] = fieldValues(form, "idempotency_key").map(parseKey);
  if (first === null || more.length > 0) return { key: null, kind: "key-malformed", detail: "field idempotency_key" };
  if (fromHeader !== undefined && first !== undefined && fromHeader !== first) return { key: null, kind: "key-ambiguous" };
  if (fromHeader !== undefined) return { key: fromHeader, from: "header" };
  return first === undefined ? { key: null, kind: "key-missing" } : { key: first, from: "body" };
}

/**
 * Whose request this is: the header `X-Account`, else the cookie `account`, else nobody's. An account and not a credential,
 * since a retry after a fresh sign-in must still find its key.
 * @param {FastifyRequest} request
 * @returns {string}
 */
export function accountOf({ headers }) {
  const named = headers["x-account"];
  if (typeof named === "string") return named;
  return /(?:^|;\s*)account=([^;]*)/.exec(headers.cookie ?? "")?.[1] ?? "";
}

/**
 * Adds the order routes.
 * @param {FastifyInstance} app
 * @param {Context} context
 */
export function orderRoutes(app, context) {
  app.post("/orders", (request, reply) => submit(context, request, reply, honourKey));
  app.post("/orders-plain", (request, reply) => submit(context, request, reply, ignoreKey));

  app.get("/orders", async () => context.store.orders());
  app.get("/orders/:id", (request, reply) => {
    const { id } = /** @type {{ id: string }} */ (request.params);
    const order = context.store.order(id);
    if (!order) return send(reply, problem("not-found", `order ${id}`));
    if (prefersPage(request)) return reply.type("text/html; charset=utf-8").send(orderPage(order));
    return reply.send(order);
  });
}

/** @typedef {(context: Context, request: FastifyRequest, arrival: Arrival) => Promise<Answer>} Process */

/**
 * @param {Context} context
 * @param {FastifyRequest} request
 * @param {FastifyReply} reply
 * @param {Process} process
 */
async function submit(context, request, reply, process) {
  const arrival = context.arrivalOf(request);
  const answer = await answerOf(context, request, arrival, process);
  arrival.entry.replayed = "idempotent-replayed" in answer.headers;
  answerAfter(reply, negotiated(request, arrival, answer), arrival.fault, arrival.note);
  return reply;
}

/**
 * @param {Context} context
 * @param {FastifyRequest} request
 * @param {Arrival} arrival
 * @param {Process} process
 */
async function answerOf(context, request, arrival, process) {
  const { tokens } = context.access;
  const [, token = ""] = /^Bearer (.*)$/i.exec(request.headers.authorization ?? "") ?? [];
  // Before the key is looked at: a refusal for want of credentials must not be what the key stands for.
  if (tokens && !tokens.has(token)) {
    const refusal = problem("unauthorized");
    refusal.headers["www-authenticate"] = "Bearer";
    return refusal;
  }
  if (arrival.form.error !== null) return problem("body-malformed", arrival.form.error);
  return process(context, request, arrival);
}

/** @type {Process} */
async function ignoreKey(context, request, arrival) {
  await processSlowly(context, arrival);
  const order = newOrder(context, request, arrival);
  context.store.commit(order, null);
  arrival.entry.orderId = order.id;
  return created(order);
}

/** @type {Process} */
async function honourKey(context, request, arrival) {
  const { found } = arrival;
  if (found.key === null) return problem(found.kind, found.detail);

  const standing = context.idempotency.begin(accountOf(request), found.key, printOf(context, request, arrival));
  if (standing.state !== "new") return answerTo(context, standing);
  try {
    await processSlowly(context, arrival);
  } catch (error) {
    standing.ticket.release();
    throw error;
  }
  const order = newOrder(context, request, arrival);
  const answer = created(order);
  const faster = standing.ticket.commit(order, answer);
  if (faster) return answerTo(context, faster);
  arrival.entry.orderId = order.id;
  return answer;
}

/**
 * @param {Context} context
 * @param {Standing} standing of a key that somebody else has used
 * @returns {Answer}
 */
function answerTo({ runningRetryAfter }, standing) {
  if (standing.state === "mismatch") return problem("key-reused");
  if (standing.state === "done")
    return { ...standing.answer, headers: { ...standing.answer.headers, "idempotent-replayed": "true" } };
  const answer = problem("key-running");
  if (runningRetryAfter !== null) answer.headers["retry-after"] = String(runningRetryAfter);
  return answer;
}

/**
 * @param {Context} context
 * @param {Arrival} arrival
 */
async function processSlowly({ inflight }, { fault }) {
  if (fault?.type === "process-slow") await inflight.pause(fault.ms);
}

/**
 * By default the bytes as they came. `entries` compares what a form says instead, without the key's own field: then a form
 * sent by script and the same form sent by the browser, with another boundary and the key in a hidden field, are the same.
 * @param {Context} context
 * @param {FastifyRequest} request
 * @param {Arrival} arrival
 */
function printOf({ fingerprintOver }, request, { form, body }) {
  if (fingerprintOver === "entries" && (form.kind === "multipart" || form.kind === "urlencoded")) {
    const said = form.entries.filter(([name]) => name !== "idempotency_key");
    return fingerprint([request.method, request.url, "form", JSON.stringify(said)]);
  }
  return fingerprint([request.method, request.url, request.headers["content-type"] ?? "", body]);
}

/**
 * @param {Context} context
 * @param {FastifyRequest} request
 * @param {Arrival} arrival
 * @returns {NewOrder}
 */
function newOrder({ now }, request, { body, form, found }) {
  return {
    id: newOrderId(),
    key: found.key,
    account: accountOf(request),
    contentType: request.headers["content-type"] ?? null,
    bodySha256: sha256(body),
    bodyLength: body.length,
    text: form.text,
    fields: form.entries,
    createdAt: now(),
  };
}

/**
 * @param {NewOrder} order
 * @returns {Answer}
 */
function created(order) {
  return {
    status: 201,
    headers: { "content-type": "application/json; charset=utf-8", location: `/orders/${order.id}` },
    body: JSON.stringify(presentOrder(order)),
  };
}

/**
 * A form that the browser itself submits, without the header, gets a page to go to. The stored answer stays the 201.
 * @param {FastifyRequest} request
 * @param {Arrival} arrival
 * @param {Answer} answer
 * @returns {Answer}
 */
function negotiated(request, { entry }, answer) {
  if (answer.status !== 201 || entry.idempotencyKey !== null || !prefersPage(request)) return answer;
  return { status: 303, headers: { ...answer.headers, "content-type": "text/plain; charset=utf-8" }, body: "See Location.\n" };
}

/** @param {FastifyRequest} request */
const prefersPage = ({ headers }) => /^\s*text\/html\b/i.test(headers.accept ?? "");
