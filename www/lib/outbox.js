import { Core } from "#glue";
import { ResubmitError, fromCore } from "./error.js";
import { inBrowser, init, whenTrapped } from "./load.js";
import { Submission } from "./submission.js";

/** One realm has one outbox of a name. @type {Map<string, Outbox>} */
const outboxes = new Map();

/** @param {any} [options] */
export function createOutbox(options) {
  options ??= {};
  const name = options.name ?? "resubmit";
  let outbox = outboxes.get(name);
  if (!outbox) outboxes.set(name, (outbox = new Outbox(options, () => outboxes.delete(name))));
  return outbox;
}

/** An outbox. What is called before the module is there waits for it. */
class Outbox extends EventTarget {
  #options;
  #gone;
  /** @type {(() => void) | undefined} */
  #untrap;
  /** @type {Core | undefined} */
  #core;
  /** @type {Promise<Core>} */
  #opened;
  #closed = false;
  /** Whether anybody listens to events. */
  #shows = false;
  /** @type {Map<string, Set<Submission>>} */
  #submissions = new Map();
  /** Submissions that the module has not answered yet. @type {Set<Submission>} */
  #unheard = new Set();
  #intents;
  /** Of the load that was tried last. @type {Promise<any>} */
  ready = /** @type {any} */ (undefined);

  /**
   * @param {any} options
   * @param {() => void} gone
   */
  constructor(options, gone) {
    super();
    const { wasm, onAbort, authorize, classify, ...rest } = options;
    const hooks = { authorize, classify, isDelivered: undefined };
    // As data it is stored.
    if (typeof rest.isDelivered === "function") [hooks.isDelivered, rest.isDelivered] = [rest.isDelivered, undefined];
    this.#options = { wasm, onAbort, hooks, rest };
    this.#gone = gone;
    this.#intents = new Intents(() => this.#core?.intents());
    this.#opened = this.#open();
    // Handed on as values: a `typeof fetch`, a store's `subscribe`.
    this.fetch = this.fetch.bind(this);
    if (inBrowser) this.#untrap = whenTrapped((error) => this.#trapped(error));
  }

  get intents() {
    return this.#intents;
  }

  get unreadable() {
    return this.#core?.unreadable() ?? 0;
  }

  /** @returns {Promise<Core>} */
  #open() {
    const opened = init(this.#options.wasm).then(() => {
      if (this.#closed) throw closed();
      try {
        this.#core = new Core(this.#options.rest, this.#options.hooks, (/** @type {any[]} */ ...told) => this.#told(...told));
      } catch (error) {
        throw fromCore(error);
      }
      if (this.#shows) this.#core.show();
      this.#intents.changed();
      return this.#core;
    });
    this.ready = opened.then((core) => core.ready());
    this.ready.catch(() => {});
    return opened;
  }

  /** @param {ResubmitError} error */
  #trapped(error) {
    if (!this.#core) return;
    this.#core = undefined;
    this.#fail(error);
    if (!this.#closed) this.#opened = this.#open();
  }

  /** Ends the reporting of everything that is open. @param {ResubmitError} error */
  #fail(error) {
    const open = [...this.#submissions.values()].flatMap((all) => [...all]);
    for (const submission of [...this.#unheard, ...open]) submission.fail(error);
  }

  /** Calls the module once it is there. @param {(core: Core) => any} call @param {string} [key] */
  async #call(call, key) {
    // A load that failed is tried again with the next call.
    const opened = this.#opened;
    const core = await opened.catch(() => (this.#opened === opened ? (this.#opened = this.#open()) : this.#opened));
    if (this.#closed) throw closed(key);
    try {
      return await call(core);
    } catch (error) {
      throw fromCore(error, key);
    }
  }

  /**
   * @param {any} input
   * @param {any} [init]
   * @param {any} [options]
   */
  submit(input, init, options) {
    const submission = new Submission(this, mintKey());
    try {
      init ??= {};
      const { signal, onAbort = this.#options.onAbort ?? "cancel", ...rest } = options ?? {};
      const key = (submission.key = String(rest.key ?? submission.key));
      if (!inBrowser) throw new ResubmitError("no-browser", "there is no browser here: nothing is stored or sent");
      if (onAbort !== "cancel" && onAbort !== "detach") throw badOption('options.onAbort: expected "cancel" or "detach"');
      const frozen = { ...freeze(input, init), named: [...new Headers(init.headers).keys()] };
      if (rest.meta !== undefined) rest.meta = asJson(rest.meta, "options.meta");
      // Two ways to say it: the one in `init`, or in the `Request`, is `fetch`'s.
      for (const each of [init.signal ?? input.signal, signal]) if (each) submission.follow(each, onAbort);
      this.#unheard.add(submission);
      // Given up before, it must not touch another submission of its key.
      const joins = (/** @type {string | null} */ owner) => !submission.abandoned && !!this.#follow(submission, owner);
      this.#call((core) => submission.abandoned || core.submit(key, frozen, rest, joins), key)
        .then((ended) => ended?.status && submission.settle(ended))
        .catch((error) => submission.fail(error))
        .finally(() => this.#unheard.delete(submission));
    } catch (/** @type {any} */ cause) {
      if (cause instanceof ResubmitError) submission.fail(cause);
      else submission.fail(new ResubmitError("bad-request", "request: " + (cause?.message ?? cause), { key: submission.key, cause }));
    }
    return submission;
  }

  /**
   * @param {RequestInfo | URL} input
   * @param {any} [init]
   */
  async fetch(input, init) {
    const options = { onAbort: this.#options.onAbort ?? "detach", ...init?.resubmit };
    const { outcome: ended, key } = this.submit(input, init, options);
    const outcome = await ended;
    if (outcome.response) return outcome.response;
    const answered = outcome.status === "delivered" || outcome.status === "refused";
    throw new ResubmitError(
      answered ? "answered-elsewhere" : "not-delivered",
      answered ? "another page has the response" : `${outcome.status}: ${outcome.reason}`,
      { key, outcome },
    );
  }

  /** @param {string} key */
  submission(key) {
    return this.#resume(new Submission(this, String(key)));
  }

  /** Follows an intent that is known. @param {Submission} submission */
  #resume(submission) {
    const { key } = submission;
    this.#unheard.add(submission);
    this.#call((core) => core.follow(key, (/** @type {string | null} */ owner) => this.#follow(submission, owner)), key)
      .catch((error) => submission.fail(error))
      .finally(() => this.#unheard.delete(submission));
    return submission;
  }

  /**
   * @param {string} key
   * @param {{ mayRepeat?: boolean }} [options]
   */
  async retry(key, { mayRepeat = false } = {}) {
    const kept = await this.#call((core) => core.retry(key, mayRepeat), key);
    return this.#resume(new Submission(this, kept, kept === key ? undefined : kept));
  }

  async retryAll() {
    /** @type {string[]} */
    const keys = await this.#call((core) => core.retryAll());
    return keys.map((key) => this.submission(key));
  }

  /** @param {string} [reason] */
  async resume(reason = "unauthorized") {
    if (reason !== "unauthorized") throw badOption('reason: expected "unauthorized"');
    await this.#call((core) => core.resume());
  }

  /** @param {string} key */
  discard(key) {
    return this.#call((core) => core.discard(key), key);
  }

  /** @param {string} key @param {string | null} [owner] Default: the current one. */
  acknowledge(key, owner) {
    return this.#call((core) => core.acknowledge(key, owner), key);
  }

  /** @param {string} key @param {string | null} [owner] Default: the current one. */
  cancel(key, owner) {
    return this.#call((core) => core.cancel(key, owner), key);
  }

  /** @param {string | null} owner */
  setOwner(owner) {
    if (typeof owner !== "string" && owner !== null) return Promise.reject(badOption("owner: expected a string or null"));
    return this.#call((core) => core.setOwner(owner));
  }

  /** @param {string} owner */
  clear(owner) {
    return this.#call((core) => core.clear(String(owner)));
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone();
    this.#untrap?.();
    this.#fail(closed());
    const core = this.#core;
    this.#core = undefined;
    core?.close();
    // Later, since a listener may have closed it: the module is still at it then.
    if (core) queueMicrotask(() => core.free());
  }

  /** What is told of its key is told to it from now on. @param {Submission} submission @param {string | null} owner */
  #follow(submission, owner) {
    submission.owner = owner;
    const id = idOf(submission.key, owner);
    const all = this.#submissions.get(id) ?? new Set();
    this.#submissions.set(id, all.add(submission));
    submission.joined = true;
    return submission;
  }

  /** @param {Submission} submission */
  forget(submission) {
    const id = idOf(submission.key, submission.owner);
    const all = this.#submissions.get(id);
    all?.delete(submission);
    if (all?.size === 0) this.#submissions.delete(id);
  }

  /** @param {Parameters<EventTarget["addEventListener"]>} listening */
  addEventListener(...listening) {
    super.addEventListener(...listening);
    this.show();
  }

  /** Somebody listens, here or at a submission: events are made from now on. */
  show() {
    this.#shows = true;
    this.#core?.show();
  }

  /** What the module tells. @param {any[]} told */
  #told(...[what, key, intent, extra, owner, current]) {
    if (key === null && !current) return;
    if (what === "listed") return this.#intents.changed();
    if (what === "degraded") return emit(this, what, { reason: extra });
    if (what === "ownerchange") {
      this.#intents.renew();
      return emit(this, what, { owner });
    }
    const type = AGAIN[what] ?? what;
    const detail = { key, intent };
    if (type === "stored") Object.assign(detail, { stored: extra });
    if (type === "settled") Object.assign(detail, { outcome: extra });
    for (const submission of [...(this.#submissions.get(idOf(key, owner)) ?? [])]) {
      if (type === "stored" && !submission.isStored(extra)) continue;
      if (type === "settled") {
        this.forget(submission);
        submission.settle(extra, intent?.durable);
      }
      if (this.#shows) emit(submission, type, detail);
    }
    // Those who follow one submission follow it whoever is current; the outbox is the current owner's.
    if (type === what && this.#shows && current) emit(this, type, detail);
  }
}

/** Two owners may have the same key. @param {string} key @param {string | null} [owner] */
const idOf = (key, owner) => key + " " + owner;

/** What happened before, told to those who follow it only now. @type {Record<string, string>} */
const AGAIN = { known: "stored", ended: "settled" };

/** The list of intents: the store contract of Svelte. */
class Intents {
  #read;
  /** @type {readonly any[]} */
  #current = Object.freeze([]);
  /** @type {Set<(intents: readonly any[]) => void>} */
  #listeners = new Set();
  #queued = false;

  /** @param {() => any[] | undefined} read */
  constructor(read) {
    this.#read = read;
    this.subscribe = this.subscribe.bind(this);
  }

  get current() {
    return this.#current;
  }

  /** @param {(intents: readonly any[]) => void} listener */
  subscribe(listener) {
    // A function of its own, so that subscribing one twice is two subscriptions.
    const own = (/** @type {readonly any[]} */ intents) => listener(intents);
    this.#listeners.add(own);
    if (this.#listeners.size === 1) this.#refresh();
    this.#call(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  /** Reads the list again before the next task, once, however much changed. */
  changed() {
    if (this.#queued || this.#listeners.size === 0) return;
    this.#queued = true;
    queueMicrotask(() => {
      this.#queued = false;
      if (this.#refresh()) this.#tell();
    });
  }

  /** Another owner's turn: what was listed is not theirs to see. */
  renew() {
    if (this.#current.length > 0) {
      this.#current = Object.freeze([]);
      this.#tell();
    }
    this.changed();
  }

  #tell() {
    for (const listener of [...this.#listeners]) this.#call(listener);
  }

  /** As an event would: what one listener throws is none of the others' business. @param {Function} listener */
  #call(listener) {
    try {
      listener(this.#current);
    } catch (error) {
      reportError(error);
    }
  }

  #refresh() {
    const read = this.#read();
    const changed = read?.length !== this.#current.length || read.some((intent, at) => intent !== this.#current[at]);
    if (read && changed) this.#current = Object.freeze(read);
    return read && changed;
  }
}

/** @param {EventTarget} target @param {string} type @param {any} detail */
function emit(target, type, detail) {
  target.dispatchEvent(new CustomEvent(type, { detail }));
}

/**
 * A UUID version 4, also where `crypto.randomUUID` is missing. Minted here, since a submission has its key at once and
 * the module may still be on its way; the bytes come from the same source as `getrandom`'s.
 */
function mintKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  return [...bytes].map((byte, at) => (/^(4|6|8|10)$/.test(String(at)) ? "-" : "") + (byte + 256).toString(16).slice(1)).join("");
}

/** The members of `RequestInit` that make the request. */
const MEMBERS = ["method", "headers", "body", "mode", "credentials", "cache", "redirect", "referrer", "referrerPolicy", "integrity"];

/**
 * The browser's own encoding of the input, taken now: one multipart boundary, one snapshot.
 * @param {any} input
 * @param {any} given
 */
function freeze(input, given) {
  const { json } = given instanceof Request ? {} : given;
  /** @type {any} */
  const init = {};
  // By name, since a member may be inherited, or a getter. (`signal` is followed, not sent along.)
  for (const name of MEMBERS) if (given[name] !== undefined) init[name] = given[name];
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  if (json !== undefined) {
    if (init.body != null) throw badOption("init.json: expected no body beside it");
    init.body = asJson(json, "init.json");
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    init.headers = headers;
  }
  if (!(input instanceof Request)) init.method ??= "POST";
  // A stream is buffered before anything is sent. Where `Request` does not take it, it would make a text of it.
  const body = init.body instanceof ReadableStream ? new Response(init.body) : undefined;
  if (body) init.body = new Uint8Array();
  const request = new Request(input, init);
  if (request.bodyUsed) throw new TypeError("the body was read already");
  return { request, body };
}

/** @param {unknown} value @param {string} field */
function asJson(value, field) {
  let text, cause;
  try {
    text = JSON.stringify(value);
  } catch (thrown) {
    cause = thrown;
  }
  if (text === undefined) throw badOption(field + ": expected what JSON can say", cause);
  return text;
}

/** @param {string} message @param {unknown} [cause] */
function badOption(message, cause) {
  return new ResubmitError("bad-option", message, { cause });
}

/** @param {string} [key] */
function closed(key) {
  return new ResubmitError("closed", "the outbox was closed", { key });
}
