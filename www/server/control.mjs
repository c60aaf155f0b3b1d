// The routes by which a test, or the demonstration page, scripts the server and reads what happened.

import { send } from "./answers.mjs";
import { FaultError } from "./faults.mjs";
import { problem } from "./problem.mjs";

/** @import { FastifyInstance } from "fastify" */
/** @import { Context } from "./server.mjs" */

/**
 * Adds the control routes. That only loopback pages reach them is seen to in server.mjs, before any route.
 * @param {FastifyInstance} app
 * @param {Context} context
 */
export function controlRoutes(app, context) {
  const { log, store, faults, cors } = context;

  app.get("/control/log", async () => log.entries());
  app.get("/control/log/:seq/body", (request, reply) => {
    const { seq } = /** @type {{ seq: string }} */ (request.params);
    const body = log.body(Number(seq));
    if (!body) return send(reply, problem("not-found", `no body is kept for arrival ${seq}`));
    return reply.type("application/octet-stream").send(body);
  });
  app.get("/control/ledger", async () => log.ledger(store.orders()));

  app.get("/control/faults", async () => faults.left());
  app.put("/control/faults", (request, reply) => {
    try {
      return reply.send(faults.put(json(request.body)));
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      return send(reply, problem("control-invalid", error.message, { field: error.field }));
    }
  });
  app.delete("/control/faults", (_request, reply) => {
    faults.clear();
    return reply.code(204).send();
  });

  app.get("/control/cors", async () => cors.settings);
  app.put("/control/cors", (request, reply) => {
    const wrong = setCors(cors, json(request.body));
    return wrong ? send(reply, problem("control-invalid", wrong.detail, { field: wrong.field })) : reply.send(cors.settings);
  });

  app.delete("/control/log", (_request, reply) => {
    log.clear();
    return reply.code(204).send();
  });
  app.post("/control/reset", (_request, reply) => {
    context.reset();
    return reply.code(204).send();
  });
}

/**
 * @param {import("./cors.mjs").Cors} cors
 * @param {unknown} input
 * @returns {{ field: string, detail: string } | null} what is wrong with it
 */
function setCors(cors, input) {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return { field: "body", detail: "body must be a JSON object" };
  for (const [field, value] of Object.entries(input)) {
    if (!Object.hasOwn(cors.settings, field)) return { field, detail: `${field} is not a CORS setting` };
    if (typeof value !== "boolean") return { field, detail: `${field} must be true or false` };
  }
  Object.assign(cors.settings, input);
  return null;
}

/**
 * @param {unknown} body
 * @returns {unknown} undefined if it is not JSON
 */
function json(body) {
  try {
    return JSON.parse(String(body ?? ""));
  } catch {
    return undefined;
  }
}
