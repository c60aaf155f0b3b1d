// From an answer as data to bytes on a socket, or to a socket that breaks. The only file that touches raw sockets.

import { blankProblem } from "./problem.mjs";
import { withoutCors } from "./cors.mjs";

/** @import { FastifyReply } from "fastify" */
/** @import { Answer } from "./problem.mjs" */
/** @import { Fault } from "./faults.mjs" */
/** @import { LogEntry } from "./log.mjs" */
/** @import { Inflight } from "./inflight.mjs" */

/** @typedef {(answered: LogEntry["answered"]) => void} Note writes into the log what Fastify cannot see */

const BODILESS = new Set([204, 205, 304]);

/**
 * Acts out a fault that keeps the request from being processed.
 * @param {FastifyReply} reply
 * @param {Fault | null} fault
 * @param {Note} note
 * @param {Inflight} inflight
 * @returns {Promise<boolean>} true if the request is dealt with; false if it goes on to its handler
 */
export async function actBefore(reply, fault, note, inflight) {
  switch (fault?.type) {
    case "slow":
      await inflight.pause(fault.ms);
      return false;
    case "drop":
      drop(reply, note, fault.reset);
      return true;
    case "hang":
      reply.hijack();
      note("hung");
      inflight.hang(reply.request.raw.socket);
      return true;
    case "status":
    case "no-cors":
    case "replayed":
    case "redirect":
      sendScripted(reply, fault);
      return true;
    default:
      return false;
  }
}

/**
 * Sends the answer of a processed request, or does to it what the fault says. The order, if one was made, is committed by
 * now: whatever happens here is only about whether the client learns of it.
 * @param {FastifyReply} reply
 * @param {Answer} answer
 * @param {Fault | null} fault
 * @param {Note} note
 */
export function answerAfter(reply, answer, fault, note) {
  switch (fault?.type) {
    case "commit-drop":
      return drop(reply, note, fault.reset);
    case "truncate":
      return truncate(reply, answer, note);
    case "commit-status":
    case "commit-redirect":
      return sendScripted(reply, fault);
    default:
      return send(reply, answer);
  }
}

/**
 * Sends an answer.
 * @param {FastifyReply} reply
 * @param {Answer} answer
 */
export function send(reply, answer) {
  reply.code(answer.status).headers(answer.headers).send(exactly(answer.body));
}

/**
 * Bytes, since to a string Fastify would add a charset that the Content-Type did not have.
 * @param {string} body
 */
const exactly = (body) => (body === "" ? "" : Buffer.from(body));

/**
 * Closes the socket without a byte. The body has been read: this is the loss that makes the browser itself send a POST
 * again on a reused connection.
 * @param {FastifyReply} reply
 * @param {Note} note
 * @param {boolean} [reset] a TCP reset instead of a plain close
 */
export function drop(reply, note, reset = false) {
  reply.hijack();
  note("dropped");
  const { socket } = reply.request.raw;
  if (reset) socket.resetAndDestroy();
  else socket.destroy();
}

/**
 * Sends the head, which is enough to know the outcome, and half of the body that it announced.
 * @param {FastifyReply} reply
 * @param {Answer} answer
 * @param {Note} note
 */
function truncate(reply, answer, note) {
  reply.hijack();
  note("truncated");
  const bytes = Buffer.from(answer.body);
  const { socket } = reply.request.raw;
  const headers = { ...reply.getHeaders(), ...answer.headers, "content-length": String(bytes.length) };
  reply.raw.writeHead(answer.status, /** @type {Record<string, string>} */ (headers));
  // Closing only after the write is out: a close that overtook it would lose the head too.
  reply.raw.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => socket.destroySoon());
}

/**
 * @param {FastifyReply} reply
 * @param {Extract<Fault, { status?: number, headers?: unknown }>} fault
 */
function sendScripted(reply, fault) {
  const cors = fault.type === "no-cors" ? false : fault.cors;
  if (cors === false) withoutCors(reply);
  if (fault.type === "replayed") reply.header("idempotent-replayed", "true");
  const redirect = "location" in fault;
  const status = fault.status ?? 303;
  if (redirect) reply.header("location", fault.location);
  const content = redirect ? { type: undefined, body: "" } : contentOf(fault, status);
  if (content.type) reply.header("content-type", content.type);
  // The script's own headers come last: they may replace anything, Date included.
  reply.code(status).headers(/** @type {Record<string, string>} */ (fault.headers ?? {})).send(exactly(content.body));
}

/**
 * @param {import("./faults.mjs").StatusFields} fault
 * @param {number} status
 * @returns {{ type: string | undefined, body: string }}
 */
function contentOf({ body, contentType }, status) {
  if (BODILESS.has(status)) return { type: undefined, body: "" };
  if (typeof body === "string") return { type: contentType ?? "text/plain; charset=utf-8", body };
  if (body !== undefined) return { type: contentType ?? "application/json", body: JSON.stringify(body) };
  if (status < 400) return { type: contentType, body: "" };
  return { type: contentType ?? "application/problem+json", body: blankProblem(status, "Scripted fault").body };
}
