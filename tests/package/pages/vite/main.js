import { createOutbox } from "resubmit";

const outbox = createOutbox({ name: "orders", policy: { delaysMs: [50] } });

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const json = Object.fromEntries(new FormData(event.target));
  const submission = outbox.submit("/orders", { json });
  const { status } = await submission.outcome;
  document.querySelector("#outcome").textContent = status;
});
