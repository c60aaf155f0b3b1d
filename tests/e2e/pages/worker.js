// A dedicated worker with an outbox of its own.
import { createOutbox } from "/dist/index.js";

onmessage = async ({ data: { url, policy } }) => {
  const outbox = createOutbox({ policy });
  const states = [];
  for (const type of ["stored", "attempted", "waiting", "settled"]) outbox.addEventListener(type, () => states.push(type));
  const submission = outbox.submit(url, { json: { item: "tea" } });
  const stored = await submission.stored;
  const { status, response } = await submission.outcome;
  postMessage({ key: submission.key, stored, status, answered: response.status, states });
};
