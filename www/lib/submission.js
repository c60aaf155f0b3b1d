import { ResubmitError } from "./error.js";

/**
 * A promise with its ends, on which nobody has to listen.
 * @template T
 */
class Deferred {
  constructor() {
    /** @type {Promise<T>} */
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {});
  }
}

/** One submission, as this page follows it. */
export class Submission extends EventTarget {
  /** @type {Deferred<any>} */ #stored = new Deferred();
  /** @type {Deferred<any>} */ #outcome = new Deferred();
  #outbox;
  #watched = false;
  #durable = false;
  #heard = false;
  /** Given up before it was one with the intent of its key. */
  abandoned = false;
  /** Whose it is, once that is known. @type {string | null | undefined} */
  owner;
  /** Whether what happens to its key happens to it. */
  joined = false;
  #ended = false;
  /** Ends what listens to the caller's signals. */
  #over = new AbortController();
  /** @type {{ reason: unknown } | undefined} */
  #cancelled;
  /** How it ended, if it did. @type {any} */
  #how;

  /**
   * @param {any} outbox What carries out its calls.
   * @param {string} key
   * @param {string} [newKey]
   */
  constructor(outbox, key, newKey) {
    super();
    this.#outbox = outbox;
    this.key = key;
    if (newKey !== undefined) this.newKey = newKey;
  }

  get stored() {
    return this.#stored.promise;
  }

  get outcome() {
    this.#seen();
    return this.#outcome.promise;
  }

  /** @param {Parameters<EventTarget["addEventListener"]>} listening */
  addEventListener(...listening) {
    super.addEventListener(...listening);
    this.#outbox.show();
    if (listening[0] === "settled") this.#seen();
  }

  /** @param {unknown} [reason] */
  async cancel(reason = new DOMException("The submission was cancelled.", "AbortError")) {
    const how = this.#how;
    // Its row may be gone by now.
    if (how && how.status !== "parked") return { cancelled: how.status === "cancelled", maybeDelivered: how.maybeDelivered };
    this.#cancelled ??= { reason };
    try {
      const result = await this.#outbox.cancel(this.key, this.owner);
      if (result.cancelled) this.fail(this.#cancelled.reason);
      else this.#cancelled = undefined;
      return result;
    } catch (error) {
      this.#cancelled = undefined;
      throw error;
    }
  }

  detach() {
    this.fail(new ResubmitError("detached", "the reporting was ended; the intent goes on", { key: this.key }));
  }

  /**
   * Ends with the caller's signal: its reason at once, by identity; what becomes of the intent follows.
   * @param {AbortSignal} signal
   * @param {"cancel" | "detach"} onAbort
   */
  follow(signal, onAbort) {
    const abort = () => {
      this.fail(signal.reason);
      if (onAbort === "detach" && this.#durable) return;
      this.abandoned = true;
      if (this.joined) this.#outbox.cancel(this.key, this.owner).catch(() => {});
    };
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { signal: this.#over.signal });
  }

  /** A page has come to see how it ends. */
  #seen() {
    this.#watched = true;
    if (!this.#ended) return;
    // Once: the key may come to mean another intent.
    this.#ended = false;
    this.#outbox.acknowledge(this.key, this.owner).catch(() => {});
  }

  /** Returns whether that is news. @param {any} stored */
  isStored(stored) {
    const first = !this.#heard;
    this.#heard = true;
    this.#durable = stored.durable;
    this.#stored.resolve?.(stored);
    return first;
  }

  /** @param {any} outcome @param {boolean} [durable] */
  settle(outcome, durable) {
    this.#over.abort();
    // It may have been given up before it was stored.
    this.isStored(durable ? { durable } : { durable: false, reason: "asked" });
    this.#how = outcome;
    if (outcome.status === "cancelled" && this.#cancelled) this.#outcome.reject?.(this.#cancelled.reason);
    else this.#outcome.resolve?.(outcome);
    this.#ended = outcome.status === "delivered" || outcome.status === "cancelled";
    // After the listeners of the outcome ran.
    if (this.#watched) setTimeout(() => this.#seen());
  }

  /** @param {unknown} error */
  fail(error) {
    this.#over.abort();
    this.#outbox.forget(this);
    this.#stored.reject?.(error);
    this.#outcome.reject?.(error);
  }
}
