// What the README shows, and what an application does with it, compiles as it stands.
import {
  createOutbox,
  init,
  isResubmitError,
  submitWithRetry,
  type Intent,
  type Json,
  type Outbox,
  type Outcome,
  type Policy,
  type Stored,
  type Submission,
  type SubmitOptions,
} from "resubmit";

const outbox: Outbox = createOutbox({ name: "orders" });
createOutbox({ owner: null, isDelivered: { header: "X-Order: taken" }, classify: () => {} });

export function wire(form: HTMLFormElement) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const submission = outbox.submit("/orders", { body: new FormData(form) });
    await submission.stored;
    const outcome = await submission.outcome;
    if (outcome.status === "delivered") location.assign(outcome.receipt.location ?? "/");
  });
}

/** Every kind of input that `fetch` takes. */
export function inputs(file: Blob, bytes: Uint8Array<ArrayBuffer>, stream: ReadableStream): Submission[] {
  return [
    outbox.submit("/orders"),
    outbox.submit(new URL("https://example.com/orders"), { json: { item: "tea", list: [1, null, true] } }),
    outbox.submit(new Request("/orders", { method: "PUT" })),
    outbox.submit("/orders", { body: new URLSearchParams("a=b"), headers: { accept: "text/html" }, credentials: "include" }),
    outbox.submit("/orders", { body: file }),
    outbox.submit("/orders", { body: bytes }),
    outbox.submit("/orders", { body: stream }),
    outbox.submit("/orders", { method: "DELETE", signal: AbortSignal.timeout(1) }),
  ];
}

/** Every option. */
export function options(signal: AbortSignal): Submission {
  const policy: Policy = { preset: "patient", maxAttempts: 3, delaysMs: [100, 200], jitter: "none", maxAgeMs: 60_000 };
  const all = createOutbox({
    name: "all",
    owner: "user-7",
    policy,
    keyFormat: "sf-string",
    keyHeader: "X-Key",
    keyField: "key",
    persistHeaders: ["x-tenant"],
    onAbort: "detach",
    onMaybeDelivered: "park",
    authorize: async (intent, why) => (why === "first" && intent.attempt === 0 ? { authorization: "Bearer t" } : null),
    classify: async (response, { meta }) => (response.status === 409 && meta ? "delivered" : undefined),
    isDelivered: async (response) => (await response.text()) === "ok",
    retentionMs: 86_400_000,
    maxBodyBytes: 1024,
    storage: "memory",
    wasm: new URL("https://example.com/resubmit.wasm"),
  });
  return all.submit("/orders", {}, {
    key: "order-7",
    meta: { cart: ["a", "b"], total: 12.5, gift: null },
    formKey: "checkout",
    lane: "cart",
    onParked: "skip",
    coalesceKey: "draft",
    policy: "background",
    durable: false,
    signal,
    onAbort: "cancel",
    onMaybeDelivered: "resend",
    isDelivered: { statuses: [201], contentType: "application/json", header: "X-Order" },
  });
}

/** What an application calls its order: interfaces have no index signature. */
interface Order {
  readonly item: string;
  quantity: number;
  note?: string;
  lines: readonly { price: number | null }[];
}
export async function described(order: Order, options: SubmitOptions, all: SubmitOptions<Order>, json: Json, either: Order | string | null): Promise<Submission[]> {
  await outbox.fetch("/orders", { resubmit: { meta: order } });
  return [
    outbox.submit("/orders", { json: order }, { meta: order }),
    outbox.submit("/orders", { json: order }, { meta: [order, order.item] }),
    outbox.submit("/orders", { json: order }, { ...options, meta: order }),
    outbox.submit("/orders", { json: order }, { meta: JSON.parse("{}") }),
    outbox.submit("/orders", { json: order }, { meta: json }),
    outbox.submit("/orders", { json: order }, { meta: either }),
    outbox.submit("/orders", {}, options),
    outbox.submit("/orders", {}, all),
  ];
}

/** In place of `fetch`, also where a library asks for one. */
export async function asFetch(): Promise<string> {
  const fetch: typeof globalThis.fetch = (input, init) => outbox.fetch(input, init);
  await fetch("/orders", { method: "POST", body: "a" });
  const response = await outbox.fetch("/orders", { json: [1], resubmit: { key: "k", policy: "interactive" } });
  return response.text();
}

/** The store contract of Svelte: what a `readable` has, without importing it. */
interface Readable<T> {
  subscribe(run: (value: T) => void): () => void;
}
export const readable: Readable<readonly Intent[]> = outbox.intents;

/** What React's `useSyncExternalStore` takes. */
declare function useSyncExternalStore<T>(subscribe: (changed: () => void) => () => void, snapshot: () => T): T;
export const listed: readonly Intent[] = useSyncExternalStore(outbox.intents.subscribe, () => outbox.intents.current);

/** Events carry what they are named for. */
export function events(submission: Submission) {
  outbox.addEventListener("settled", ({ detail }) => {
    const key: string = detail.key;
    const outcome: Outcome | undefined = detail.outcome;
    const intent: Intent | null = detail.intent;
    return [key, outcome, intent];
  });
  outbox.addEventListener("ownerchange", ({ detail: { owner } }) => owner satisfies string | null);
  outbox.addEventListener("degraded", ({ detail: { reason } }) => reason satisfies string, { once: true });
  submission.addEventListener("stored", function ({ detail }) {
    const stored: Stored | undefined = detail.stored;
    return [this.key satisfies string, stored];
  });
  // As any EventTarget.
  const listener: EventListenerObject = { handleEvent: (event) => void event.type };
  outbox.addEventListener("mine", listener);
  outbox.removeEventListener("mine", listener);
}

/** What a person may do. */
export async function acts(key: string): Promise<void> {
  const again: Submission = await outbox.retry(key, { mayRepeat: true });
  const fresh: string | undefined = again.newKey;
  const all: Submission[] = await outbox.retryAll();
  await outbox.resume("unauthorized");
  all satisfies unknown;
  const { cancelled, maybeDelivered } = await outbox.submission(fresh ?? key).cancel("changed my mind");
  if (!cancelled && maybeDelivered) again.detach();
  await outbox.discard(key);
  await outbox.acknowledge(key);
  await outbox.setOwner("user-7");
  await outbox.setOwner(null);
  await outbox.clear("user-7");
  const stored: Stored = await outbox.ready;
  if (!stored.durable) stored.reason satisfies string;
  outbox.unreadable satisfies number;
  outbox.close();
}

/** The loop without the storage. */
export async function loop(signal: AbortSignal): Promise<Outcome> {
  await init();
  await init("/assets/resubmit.wasm");
  await init(fetch("/assets/resubmit.wasm"));
  await submitWithRetry(() => fetch("/orders", { method: "POST" }));
  return submitWithRetry(
    ({ key, attempt, signal }) => fetch("/orders", { method: "POST", headers: { "Idempotency-Key": key, "X-Attempt": String(attempt) }, signal }),
    null,
    signal,
    { preset: "interactive", maxElapsedMs: 30_000 },
  );
}

/** An error is known by its code. */
export function failed(error: unknown): string {
  if (!isResubmitError(error)) throw error;
  if (error.code === "not-delivered" && error.outcome) return error.outcome.status;
  return `${error.name} ${error.code} ${error.key ?? ""} ${error.message}`;
}
