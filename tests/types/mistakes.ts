// Mistakes that must not compile. An unused `@ts-expect-error` is an error itself.
import { createOutbox, type ResubmitError, submitWithRetry, type Intent, type Outcome, type Submission } from "resubmit";

const outbox = createOutbox();

interface Cart {
  items: { id: number; since: Date }[];
}
declare const cart: Cart;

export function misspelt() {
  // @ts-expect-error no such option
  createOutbox({ nmae: "orders" });
  // @ts-expect-error an owner is a name, or nobody
  createOutbox({ owner: 7 });
  // @ts-expect-error nobody is `null`
  void outbox.setOwner();
  // @ts-expect-error nobody has nothing
  void outbox.clear(null);
  // @ts-expect-error of the outbox alone
  outbox.submission("k").addEventListener("ownerchange", ({ detail }) => detail);
  // @ts-expect-error no such storage
  createOutbox({ storage: "localStorage" });
  // @ts-expect-error no such format
  createOutbox({ keyFormat: "quoted" });
  // @ts-expect-error a preset's name
  createOutbox({ policy: "eager" });
  // @ts-expect-error milliseconds, not a duration in words
  createOutbox({ policy: { maxAgeMs: "7d" } });
  // @ts-expect-error no such field
  createOutbox({ policy: { retries: 3 } });
  // @ts-expect-error one name, not a list
  createOutbox({ persistHeaders: "x-tenant" });
  // @ts-expect-error headers, not a token
  createOutbox({ authorize: () => 7 });
  // @ts-expect-error no such verdict
  createOutbox({ classify: () => "ignored" });
  // @ts-expect-error yes or no
  createOutbox({ isDelivered: () => "yes" });
  // @ts-expect-error functions are the outbox's: a row can't keep them
  outbox.submit("/", {}, { isDelivered: () => true });
  // @ts-expect-error of a loop alone
  createOutbox({ policy: { maxElapsedMs: 1 } });
  // @ts-expect-error a schedule is data
  outbox.submit("/", {}, { policy: (attempt: number) => attempt * 100 });
  // @ts-expect-error no such option
  outbox.submit("/", {}, { retries: 3 });
  // @ts-expect-error they go into the second argument
  outbox.submit("/", { durable: false });
  // @ts-expect-error what JSON can't say
  outbox.submit("/", {}, { meta: { at: new Date() } });
  // @ts-expect-error what JSON can't say
  outbox.submit("/", {}, { meta: { call: () => 1 } });
  // @ts-expect-error what JSON can't say
  outbox.submit("/", {}, { meta: () => 1 });
  // @ts-expect-error what JSON can't say
  outbox.submit("/", {}, { meta: cart });
  // @ts-expect-error it may be anything
  outbox.submit("/", {}, { meta: cart as unknown });
  // @ts-expect-error what JSON can't say, in place of `fetch` too
  void outbox.fetch("/", { resubmit: { meta: cart } });
  // @ts-expect-error a key is a string
  outbox.submit("/", {}, { key: 7 });
  // @ts-expect-error no such thing to do
  outbox.submit("/", {}, { onAbort: "ignore" });
  // @ts-expect-error what to submit is missing
  outbox.submit();
  // @ts-expect-error its options are in `resubmit`
  void outbox.fetch("/", { key: "k" });
  // @ts-expect-error no such reason
  void outbox.resume("offline");
  // @ts-expect-error no such event
  outbox.addEventListener("delivered", ({ detail }) => detail);
}

export async function misread(submission: Submission, outcome: Outcome, intent: Intent) {
  // @ts-expect-error it has to be awaited
  submission.outcome.status;
  // @ts-expect-error delivered alone has one
  outcome.receipt;
  // @ts-expect-error delivered has none
  outcome.reason;
  if (outcome.status === "delivered") {
    // @ts-expect-error another page may have the response
    outcome.response.ok;
    // @ts-expect-error not every answer has a Location
    location.assign(outcome.receipt.location);
  }
  // @ts-expect-error no attempt may be due
  intent.nextAttemptAt.toFixed();
  // @ts-expect-error no such state
  if (intent.state === "failed") return;
  // @ts-expect-error a parked intent does not wait for the network
  if (intent.state === "parked" && intent.reason === "offline") return;
  const stored = await submission.stored;
  // @ts-expect-error what is durable has no reason not to be
  stored.reason;
  // @ts-expect-error a string or null, as it was given
  intent.meta.cart;
}

export function changed(submission: Submission, intent: Intent, outcome: Outcome) {
  // @ts-expect-error frozen
  intent.attempt = 0;
  // @ts-expect-error frozen
  intent.state = "delivered";
  // @ts-expect-error frozen
  outcome.attempts = 0;
  // @ts-expect-error a list to read
  outbox.intents.current.push(intent);
  // @ts-expect-error read only
  submission.key = "k";
  // @ts-expect-error read only
  outbox.unreadable = 0;
}

export function loops() {
  // @ts-expect-error `send` answers with a response
  void submitWithRetry(async () => 201);
  // @ts-expect-error `send` is asynchronous
  void submitWithRetry(() => new Response());
  // @ts-expect-error a signal, not its controller
  void submitWithRetry(() => fetch("/"), null, new AbortController());
  // @ts-expect-error the key is the second argument
  void submitWithRetry(() => fetch("/"), new AbortController().signal);
}

export function coded(error: ResubmitError) {
  // @ts-expect-error no such code
  if (error.code === "timeout") return;
  // @ts-expect-error not every error is about a submission
  error.key.length;
}
