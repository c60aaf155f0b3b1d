/**
 * Hands over a form submission and knows that it will arrive, once.
 *
 * All times are milliseconds. All error codes and reasons are closed unions, so that an exhaustive `switch` compiles
 * with `never`.
 */

/** Where an intent stands. */
export type State = "pending" | "sending" | "delivered" | "refused" | "parked" | "cancelled";

/** Why a pending intent waits. */
export type WaitingReason =
  | "network-failure"
  | "attempt-timeout"
  | "offline"
  | "server-busy"
  | "still-running"
  | "not-acknowledged"
  | "unauthorized"
  | "not-sent"
  | "queued";

/** Why the server refused: it did not act, and a repetition would not help. */
export type RefusedReason = "invalid" | "forbidden" | "conflict";

/** Why a person has to decide: no further automatic attempt, the evidence is kept. */
export type ParkedReason =
  | "attempts-exhausted"
  | "max-age"
  | "key-expired"
  | "retry-after-too-long"
  | "outcome-unknown"
  | "redirected"
  | "unexpected"
  | "replayed-failure"
  | "blocked-by-csp"
  | "body-lost"
  | "hook-failed"
  | "unauthorized";

/** Why an intent was given up. */
export type CancelledReason = "discarded" | "superseded" | "cleared" | "expired";

/**
 * Why a submission is not on this device's disk. `asked`: `durable: false`, `storage: "memory"`, or given up before it was
 * stored. `no-storage`: there is no IndexedDB here. `storage-failed`: it refused. `storage-silent`: it did not answer in time.
 */
export type NotDurableReason = "asked" | "no-storage" | "storage-failed" | "storage-silent";

/** JSON, as `JSON.stringify` writes it. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** `T` where `JSON.stringify` can say it, also where an interface declares it; what it can't say becomes `never`. */
export type JsonOf<T> = T extends Json | undefined
  ? T
  : T extends (...args: never) => unknown
    ? never
    : T extends object
      ? { [Name in keyof T]: JsonOf<T[Name]> }
      : never;

/** How long to wait, how often to try, when to stop. Data only; stored with the intent. */
export interface PolicyFields {
  /** The preset that the other fields change. Default: `"patient"` in an outbox, `"interactive"` in `submitWithRetry`. */
  preset?: Preset;
  /** How many attempts may be spent. 1 or more. */
  maxAttempts?: number;
  /** The bound of the first retry; doubles with each. Takes the place of the preset's table. */
  baseMs?: number;
  /** The largest bound of that series. */
  ceilingMs?: number;
  /** A table of bounds, one per retry, the last repeated. */
  delaysMs?: readonly number[];
  /** `"full"` (default): a delay is drawn from 0 to its bound. `"none"`: it is the bound. */
  jitter?: "full" | "none";
  /** How long one attempt may take, besides a second for every 16 KiB of body. Default 30,000. */
  attemptTimeoutMs?: number;
  /** How long after the submission the last attempt may begin, sleep and reloads included. Default 7 days. */
  maxAgeMs?: number;
  /** How long after its first use a key may be sent again. Default 23 h: a server's usual day, less a margin. */
  keyTtlMs?: number;
  /** The longest `Retry-After` that is waited. Default 24 h; 1 min in `"interactive"`. */
  maxRetryAfterMs?: number;
  /** Within how long of reconnecting the next attempt comes. Default 500. */
  reconnectSpreadMs?: number;
}

/**
 * `interactive`: 4 attempts, at most 0.5, 1 and 2 s apart. `background`: 5 attempts, at most 5, 15, 45 and 135 s apart (then
 * 405 s, for who raises the number). `patient`: 40 attempts, soon at first, in the end every half hour.
 */
export type Preset = "interactive" | "background" | "patient";

/** A policy: a preset's name, or a preset with changes. */
export type Policy = Preset | PolicyFields;

/** What the last answer was. */
export interface Evidence {
  /** When it came, as `Date.now()`. */
  readonly at: number;
  /** The status; absent where there was no answer. */
  readonly status?: number;
  /** The URL that answered. */
  readonly url: string;
  /** Whether that is another than was asked. */
  readonly redirected: boolean;
  /** The headers that matter for the verdict, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The first 4 KiB of the body, if it is text. Never put into a page as HTML. */
  readonly excerpt?: string;
  /** What may be behind failures that a page cannot tell apart. */
  readonly hint?: "blocked-or-cors";
}

/** What is kept of a delivery. */
export interface Receipt {
  /** When the answer came, as `Date.now()`. */
  readonly at: number;
  readonly status: number;
  /** The URL that answered. */
  readonly url: string;
  /** The `Location` header. */
  readonly location?: string;
  /** The first 4 KiB of the body, if it is text. */
  readonly excerpt?: string;
}

interface IntentFields {
  /** The idempotency key. */
  readonly key: string;
  /** How often an attempt was begun. */
  readonly attempt: number;
  /**
   * Which attempt will be the last, as far as is known: a person's retry brings a full new budget, and an attempt that is
   * not spent (offline, the first still running) moves the end by one.
   */
  readonly maxAttempts: number;
  /** When the next attempt is due, as `Date.now()`; `null` when none is. */
  readonly nextAttemptAt: number | null;
  /** When it was submitted, as `Date.now()`. */
  readonly createdAt: number;
  readonly method: string;
  readonly url: string;
  /** What the application gave as `options.meta`. */
  readonly meta: Json;
  readonly formKey: string | null;
  readonly lane: string | null;
  /** Whether it is on this device's disk: it then survives a reload. */
  readonly durable: boolean;
  /** Whether an attempt was made and nothing proves that the server did not act. */
  readonly maybeDelivered: boolean;
  readonly evidence: Evidence | null;
  readonly receipt: Receipt | null;
}

/** One decision of a person to submit. The same object while nothing about it changed. */
export type Intent = Readonly<
  IntentFields &
    (
      | { state: "pending" | "sending"; reason: WaitingReason | null }
      | { state: "delivered"; reason: null }
      | { state: "refused"; reason: RefusedReason }
      | { state: "parked"; reason: ParkedReason }
      | { state: "cancelled"; reason: CancelledReason }
    )
>;

interface OutcomeFields {
  readonly key: string;
  /** How many attempts were begun. */
  readonly attempts: number;
  /** Whether nothing proves that the server did not act. Always `true` once delivered. */
  readonly maybeDelivered: boolean;
}

/** How a submission ended. */
export type Outcome = Readonly<
  OutcomeFields &
    (
      | {
          status: "delivered";
          /**
           * The browser's own response, unread, for everybody in this page who followed the intent when it settled: one
           * object, so `clone()` it where several read it. `null` where another page has it, and in a `submission(key)`
           * that was taken later: `receipt` is what is kept.
           */
          response: Response | null;
          receipt: Receipt;
        }
      | { status: "refused"; reason: RefusedReason; response: Response | null; evidence: Evidence }
      | { status: "parked"; reason: ParkedReason; evidence: Evidence | null }
      | { status: "cancelled"; reason: CancelledReason }
    )
>;

/** Whether a submission is on the disk. */
export type Stored = { readonly durable: true } | { readonly durable: false; readonly reason: NotDurableReason };

/** What `cancel` came to. `cancelled` is false where a finished answer was first. */
export interface Cancelled {
  readonly cancelled: boolean;
  /** Whether an attempt may have reached the server all the same. */
  readonly maybeDelivered: boolean;
}

/** `RequestInit`, with `json` for a body that is JSON. The method is POST by default. */
export interface SubmitInit extends RequestInit {
  /** Sets the body and, unless there is one, the `Content-Type`. */
  json?: unknown;
}

/** Of `meta`, and nothing is inferred from here: `NoInfer`, which older compilers lack. */
interface Says<Meta> {
  meta?: JsonOf<[Meta][Meta extends unknown ? 0 : never]>;
}

/** Options of one submission: data only, but for `signal`. `Meta` follows from `meta`. */
export interface SubmitOptions<Meta = Json> {
  /** The application's own idempotency key: 1 to 255 characters of `A-Z a-z 0-9 - _`. Default: a fresh UUID v4. */
  key?: string;
  /** The application's own JSON, up to 4 KiB. Comes back as `intent.meta`, in the list and in events, also after a reload. */
  meta?: Meta;
  /** Names the form, so that a page finds the intent again after a reload. */
  formKey?: string;
  /**
   * The order to keep: an intent goes when those of its lane that were submitted before it have settled; those of other lanes,
   * or of none, do not wait for it. Waiting behind others its reason is `queued`. Default: the `coalesceKey`, if there is one.
   * (What lives in a page's memory alone keeps its order among itself.)
   */
  lane?: string;
  /**
   * Whether a parked intent holds its lane until a person retries or discards it, or leaves it; a retry then brings it back to the
   * end. Default `"hold"`; with a `coalesceKey` and no `lane` `"skip"`, since a newer one says what it would have said.
   */
  onParked?: "hold" | "skip";
  /**
   * What it stands for. A newer intent takes the place of an older one of its `coalesceKey` that was never sent, which ends as
   * `cancelled`, `superseded`; behind one that may have been sent it waits. A parked one is superseded when a newer is delivered.
   */
  coalesceKey?: string;
  /** The schedule. Default: the outbox's. */
  policy?: Policy;
  /** `false`: keep the disk out of it. Default `true`. */
  durable?: boolean;
  /** Ends it: rejects with `signal.reason` at once. */
  signal?: AbortSignal;
  /** What an abort does once the intent is stored: give it up, or only stop the reporting. Default `"cancel"`; in `outbox.fetch` `"detach"`. */
  onAbort?: "cancel" | "detach";
  /** `"park"` is for a server that does not know the key. Default `"resend"`. */
  onMaybeDelivered?: "resend" | "park";
  /** What a 2xx must be to count as delivered. Default: the outbox's. */
  isDelivered?: Acknowledgement;
}

/**
 * What `classify` may say: `delivered`; `retry`, under the same key and not before what `Retry-After` says; `refused`, as `invalid`;
 * `parked`, as `unexpected`; `unauthorized`.
 */
export type Classified = "delivered" | "retry" | "refused" | "parked" | "unauthorized";

/** What a 2xx must be to count as delivered; at least one of them. From a captive portal, say, it is not. */
export interface Acknowledgement {
  /** One of these statuses, from 200 to 299. */
  statuses?: readonly number[];
  /** This media type; parameters do not count. */
  contentType?: string;
  /** This header: `"Name"` with any value, or `"Name: value"`. From another origin the server has to expose it. */
  header?: string;
}

/** Why `authorize` is asked: for an intent's first attempt in this page, or because the server refused what it was sent. */
export type AuthorizeReason = "first" | "unauthorized";

/** Options of an outbox. */
export interface OutboxOptions {
  /**
   * The name of the outbox and of its database. Default `"resubmit"`. One page has one outbox of a name: while it is open,
   * `createOutbox` returns it, and the other options of that call are ignored.
   */
  name?: string;
  /**
   * Whose intents these are, from this page load on: what `setOwner` sets; `null` is nobody. Default: whoever the database
   * says is current, at first `"anonymous"`.
   */
  owner?: string | null;
  /** The schedule of submissions that bring none. Default `"patient"`. */
  policy?: Policy;
  /** The form of the key header: the bare token (default), or the quoted string of the IETF draft. */
  keyFormat?: "bare" | "sf-string";
  /** The name of the key header. Default `"Idempotency-Key"`. */
  keyHeader?: string;
  /** Puts the key into this field of a form body instead of a header, so that a cross-origin request stays simple. */
  keyField?: string;
  /**
   * Names of headers that may be stored, besides `accept`, `accept-language`, `content-language` and `content-type`.
   * Others are sent while this page lives and never written; an intent that has such headers waits after a reload.
   * `Authorization`, cookies and CSRF headers cannot be named.
   */
  persistHeaders?: readonly string[];
  /**
   * Supplies credentials: resolves with headers, or with `null` for "not now: the person has to sign in". Asked before an intent's
   * first attempt in a page, unless it was submitted there with headers that are not stored, and once more when the server
   * refuses (401, 419, 403 where headers were left out, a redirect to a sign-in page). Its headers take the place of those
   * of the same name and are never stored. It has 30 s; where it throws it is asked again later. One `"unauthorized"` runs at a
   * time per origin, over all tabs. Intents submitted with it wait for a page that has it.
   */
  authorize?: (intent: Intent, why: AuthorizeReason) => HeadersInit | null | Promise<HeadersInit | null>;
  /**
   * Says what an answer means, in place of the table; `undefined` or `null`: the table decides. Gets a copy of the response. It and
   * `isDelivered` have 5 s together (half of what is left of the attempt, if that is less). Where one throws or says what it
   * may not, a 2xx is parked as `hook-failed`, since nobody knows what it means, and of everything else the table decides.
   * Intents submitted with it wait for a page that has it.
   */
  classify?: (response: Response, intent: Intent) => Classified | null | undefined | void | Promise<Classified | null | undefined | void>;
  /**
   * What a 2xx must be to count as delivered: otherwise it is tried again, under the same key. A function gets a copy of the response,
   * and says `true` or `false`; intents submitted with it wait for a page that has it. As data it is stored with the intent, and
   * every page judges by it.
   */
  isDelivered?: Acknowledgement | ((response: Response, intent: Intent) => boolean | Promise<boolean>);
  /** What an abort of the caller's signal does by default. */
  onAbort?: "cancel" | "detach";
  /** `"park"` is for a server that does not know the key. Default `"resend"`. */
  onMaybeDelivered?: "resend" | "park";
  /**
   * How long a settled intent may keep its body, evidence and receipt on the device. Then its key, the times and the reason `expired`
   * are left, until somebody is shown that, for a week at most. Stored with the intent. Default 30 days.
   */
  retentionMs?: number;
  /** The largest body, in bytes. Default 25 MiB. */
  maxBodyBytes?: number;
  /** `"memory"`: keep everything in this page. Default `"indexeddb"`. */
  storage?: "indexeddb" | "memory";
  /** Where the module is: a URL, or its bytes, a response or a compiled module. Default: beside this script. */
  wasm?: string | URL | Response | BufferSource | WebAssembly.Module | Promise<Response>;
}

/** What every event of an outbox and of a submission carries in `detail`. */
export interface OutboxEventDetail {
  readonly key: string;
  /** The intent as it is after the event; `null` where its row is gone or was never known. */
  readonly intent: Intent | null;
  /** In `stored`. */
  readonly stored?: Stored;
  /** In `settled`. */
  readonly outcome?: Outcome;
}

export interface OutboxEventMap {
  /** It is known whether the intent is on the disk. */
  stored: CustomEvent<OutboxEventDetail>;
  /** An attempt began. */
  attempted: CustomEvent<OutboxEventDetail>;
  /** It waits for the next attempt. */
  waiting: CustomEvent<OutboxEventDetail>;
  /** It settled. */
  settled: CustomEvent<OutboxEventDetail>;
  /** Another owner is current, by `setOwner` here or in another page. `null`: nobody. */
  ownerchange: CustomEvent<{ readonly owner: string | null }>;
  /** The storage failed; what is submitted now goes from memory. */
  degraded: CustomEvent<{ readonly reason: NotDurableReason }>;
}

type SubmissionEventMap = Omit<OutboxEventMap, "degraded" | "ownerchange">;

/** One submission, as this page follows it. Returned at once; nothing about it throws. */
export interface Submission extends EventTarget {
  /** The idempotency key. */
  readonly key: string;
  /** When `retry` had to make a new intent: the new key. */
  readonly newKey?: string;
  /** Resolves when the intent is on the disk, or when it is known that it won't be. Rejects with what was wrong with the input. */
  readonly stored: Promise<Stored>;
  /** Settles once. Rejects with the caller's abort reason, with `detached`, or with what was wrong with the input. */
  readonly outcome: Promise<Outcome>;
  /** Gives it up: `outcome` rejects with `reason`. Resolves when that is committed; an answer that was first wins. */
  cancel(reason?: unknown): Promise<Cancelled>;
  /** Stops the reporting; the intent goes on. */
  detach(): void;
  addEventListener<K extends keyof SubmissionEventMap>(
    type: K,
    listener: (this: Submission, event: SubmissionEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/** A list that can be followed: the store contract of Svelte, and what `useSyncExternalStore` takes. */
export interface Intents {
  /**
   * This owner's intents, newest first. The same array while nothing changed. Read when first subscribed, and fresh only
   * while somebody is: without a subscription it is empty, or what the last one saw.
   */
  readonly current: readonly Intent[];
  /** Calls back with the list now and at every change. Returns what stops it. */
  subscribe(listener: (intents: readonly Intent[]) => void): () => void;
}

export interface Outbox extends EventTarget {
  /** Resolves when it is known whether there is storage. Rejects if the options are wrong or the module cannot run. */
  readonly ready: Promise<Stored>;
  /** This owner's intents. */
  readonly intents: Intents;
  /** How many stored rows this build cannot read; they are left alone. */
  readonly unreadable: number;
  /** Submits. Takes what `fetch` takes, freezes it there and then, and returns at once. */
  submit<Meta = Json>(input: RequestInfo | URL, init?: SubmitInit, options?: SubmitOptions<Meta> & Says<Meta>): Submission;
  /**
   * The signature of `fetch`, with the options as `init.resubmit`; the method is POST by default. Resolves with the response
   * that settled it, of whatever status. It stays pending as long as the intent does, under the outbox's policy for days;
   * `resubmit: { policy: "interactive" }` ends it within minutes. Rejects with `not-delivered` where the intent is parked or
   * discarded, with `answered-elsewhere` where another page has the response, and with `signal.reason`.
   */
  fetch<Meta = Json>(input: RequestInfo | URL, init?: SubmitInit & { resubmit?: SubmitOptions<Meta> & Says<Meta> }): Promise<Response>;
  /** Follows an intent that this page did not submit, or submitted before. Unknown here, it rejects with `unknown-key`. */
  submission(key: string): Submission;
  /**
   * A person's fresh intent: at once, with a full new budget. Where the old key can't be used again, the submission says
   * `newKey`. Rejects with `needs-may-repeat` where it might be done twice: ask the person, then pass `mayRepeat`. Also
   * with `unknown-key`, with `bad-state` where it is on its way, delivered or cancelled, and with `storage-failed`.
   */
  retry(key: string, options?: { mayRepeat?: boolean }): Promise<Submission>;
  /**
   * A person's fresh intent for everything of this owner that is parked, oldest first, as `retry` does it. What might be done
   * twice is left out: it stays parked. Resolves with what was retried; rejects with `storage-failed`.
   */
  retryAll(): Promise<Submission[]>;
  /**
   * Says that the person may have signed in: what waits with the reason `unauthorized` is tried, one of each origin first. A new page,
   * a new submission and a retry do that too.
   */
  resume(reason?: "unauthorized"): Promise<void>;
  /** Deletes an intent, whatever its state. */
  discard(key: string): Promise<void>;
  /** Says that a person has seen how it ended: the receipt goes. */
  acknowledge(key: string): Promise<void>;
  /**
   * Says whose intents are submitted, sent and listed from now on; `null`: nobody's. In this page at once, in others as soon
   * as they look. The attempts of the former owner are aborted; the intents stay, and go on when that owner returns.
   * Resolves when none of those attempts is on its way: await it with `null` before the request that signs somebody in
   * or out. Rejects with `storage-failed` where the database did not hear; this page goes by it all the same.
   */
  setOwner(owner: string | null): Promise<void>;
  /**
   * Deletes everything of an owner, current or not: what is stored, and what lives in this page. Submissions that are
   * followed end as `cancelled`, `cleared`; an answer that comes later is not recorded. Rejects with `storage-failed`.
   */
  clear(owner: string): Promise<void>;
  /** Ends this page's part: timers, listeners, requests. What is stored goes on in another page. */
  close(): void;
  addEventListener<K extends keyof OutboxEventMap>(
    type: K,
    listener: (this: Outbox, event: OutboxEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/**
 * Opens the outbox of that name, at once; one that is open already is returned as it is. On a server it is inert: `ready`,
 * and `stored` and `outcome` of a submission, reject with `no-browser`.
 */
export function createOutbox(options?: OutboxOptions): Outbox;

/** What `submitWithRetry` gives to `send` with every attempt. */
export interface Attempt {
  /** The idempotency key, the same every time. */
  readonly key: string;
  /** 1, 2, … */
  readonly attempt: number;
  /** Ends this attempt: its timeout, or the caller's abort. */
  readonly signal: AbortSignal;
}

/**
 * The loop without the storage, for code that owns its `send`. Resolves with how it ended; rejects with
 * `signal.reason`. `key`: the application's own, or `null` for a fresh one. Default policy: `"interactive"`.
 */
export function submitWithRetry(
  send: (attempt: Attempt) => Promise<Response>,
  key?: string | null,
  signal?: AbortSignal | null,
  policy?: Preset | (PolicyFields & { maxElapsedMs?: number }),
): Promise<Outcome>;

/** Loads the module ahead of the first use. Memoised; may be tried again after a failure. */
export function init(wasm?: OutboxOptions["wasm"]): Promise<void>;

export type ErrorCode =
  | "bad-option"
  | "bad-request"
  | "too-large"
  | "key-reused"
  | "unknown-key"
  | "no-owner"
  | "bad-state"
  | "needs-may-repeat"
  | "storage-failed"
  | "detached"
  | "answered-elsewhere"
  | "closed"
  | "no-browser"
  | "load-failed"
  | "panicked"
  | "not-delivered";

/** An error of the library's: its `code` is stable, its `message` is for the developer. */
export class ResubmitError extends Error {
  readonly name: "ResubmitError";
  readonly code: ErrorCode;
  /** What was thrown below it, if anything was. */
  readonly cause?: unknown;
  /** The key of the submission it is about, if there is one. */
  readonly key?: string;
  /** In `not-delivered` of `outbox.fetch`: how it ended. */
  readonly outcome?: Outcome;
}

/** Whether it is a `ResubmitError`, also one of another copy of the library. */
export function isResubmitError(value: unknown): value is ResubmitError;
