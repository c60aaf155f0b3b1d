// The reference server's control routes, and a watch over what arrived.

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 */
export async function control(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    // Nothing on this page may wait for ever for a server that is being broken on purpose.
    signal: AbortSignal.timeout(5000),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}

/**
 * @typedef {object} Seen
 * @property {boolean} reachable
 * @property {any[]} arrivals POSTs of orders, oldest first
 * @property {any[]} orders oldest first
 * @property {{ key: string, arrivals: number, orders: number }[]} ledger
 * @property {{ route: string, script: any[], then: string }[]} faults
 */

const SOON = 700;
const LATER = 4000;

/** Looks at the server again and again, and says what it saw whenever that changed. */
export class Watch {
  /** @type {Seen} */
  seen = { reachable: true, arrivals: [], orders: [], ledger: [], faults: [] };
  #listener;
  #busyUntil = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #last = "";
  #looking = Promise.resolve();

  /** @param {(seen: Seen) => void} listener */
  constructor(listener) {
    this.#listener = listener;
    document.addEventListener("visibilitychange", () => this.look());
  }

  /** Something is going on: look often for a while. */
  stir() {
    this.#busyUntil = Date.now() + 15_000;
    this.look();
  }

  /** Looks now. Resolves when what it saw was told. */
  look() {
    clearTimeout(this.#timer);
    // One after the other, so that an older look never overwrites a newer one.
    this.#looking = this.#looking.then(() => this.#look());
    return this.#looking;
  }

  async #look() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    try {
      await this.#read();
      this.seen.reachable = true;
    } catch {
      this.seen = { ...this.seen, reachable: false };
      this.#last = "";
    }
    this.#listener(this.seen);
    this.#timer = setTimeout(() => this.look(), Date.now() < this.#busyUntil ? SOON : LATER);
  }

  async #read() {
    const [log, faults] = await Promise.all([control("GET", "/control/log"), control("GET", "/control/faults")]);
    const arrivals = log.filter((/** @type {any} */ entry) => entry.method === "POST" && entry.path.startsWith("/orders"));
    this.seen = { ...this.seen, arrivals, faults };
    // The server logs a look at its orders as well, so there is none unless something arrived or was answered.
    const now = JSON.stringify(arrivals.map((/** @type {any} */ entry) => [entry.seq, entry.time, entry.answered, entry.orderId]));
    if (now === this.#last) return;
    const [orders, ledger] = await Promise.all([control("GET", "/orders"), control("GET", "/control/ledger")]);
    this.seen = { ...this.seen, orders, ledger };
    this.#last = now;
    this.#busyUntil = Math.max(this.#busyUntil, Date.now() + 5000);
  }
}
