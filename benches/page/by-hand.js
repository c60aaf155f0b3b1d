// The same work by hand: what a careful front-end engineer would write, once, for one form. The intent and its body are
// on the disk before the first byte leaves; the receipt is there before the page is told; a receipt that was shown goes.
// Nothing is retried, nothing resumed, and no other tab is reckoned with.

/**
 * Opens the database: two stores, and indexes for what is due and for the list. As many index entries as the library
 * writes for one intent.
 * @param {string} name
 * @returns {Promise<IDBDatabase>}
 */
export function openByHand(name) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      const intents = request.result.createObjectStore("intents", { keyPath: "key" });
      for (const index of ["nextAttemptAt", "createdAt", "forgetAt"]) intents.createIndex(index, index);
      request.result.createObjectStore("bodies");
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * One transaction with strict durability and an explicit commit.
 * @param {IDBDatabase} database
 * @param {(intents: IDBObjectStore, bodies: IDBObjectStore, commit: () => void) => void} write calls `commit` after its last request
 * @param {"strict" | "relaxed"} [durability]
 * @returns {Promise<void>}
 */
function transact(database, write, durability = "strict") {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(["intents", "bodies"], "readwrite", { durability });
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
    write(transaction.objectStore("intents"), transaction.objectStore("bodies"), () => transaction.commit());
  });
}

/**
 * Puts an order on the disk, as one that is being sent.
 * @param {IDBDatabase} database
 * @param {string} url
 * @param {unknown} order
 */
export async function storeByHand(database, url, order) {
  const key = crypto.randomUUID();
  const body = new TextEncoder().encode(JSON.stringify(order));
  const now = Date.now();
  const headers = [["content-type", "application/json"]];
  const row = { key, url, method: "POST", headers, createdAt: now, nextAttemptAt: now + 30_000, state: "sending", attempts: 1 };
  await transact(database, (intents, bodies, commit) => {
    intents.put(row);
    bodies.put(body, key);
    commit();
  });
  return { row, body };
}

/**
 * Submits an order and resolves when its receipt is on the disk. `reading`: looks at the row again before it is written
 * over, as one has to where another tab may have cancelled or taken it.
 * @param {IDBDatabase} database
 * @param {string} url
 * @param {unknown} order
 * @param {boolean} [reading]
 */
export async function submitByHand(database, url, order, reading = false) {
  const { row, body } = await storeByHand(database, url, order);
  const { key, nextAttemptAt, ...rest } = row;
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body,
  });
  if (!response.ok) throw new Error("not delivered");
  const excerpt = (await response.clone().text()).slice(0, 4096);
  const now = Date.now();
  const receipt = { at: now, status: response.status, url: response.url, location: response.headers.get("location"), excerpt };
  const settled = { ...rest, key, state: "delivered", receipt, forgetAt: now + 604_800_000 };
  await transact(database, (intents, bodies, commit) => {
    const write = () => {
      intents.put(settled);
      bodies.delete(key);
      commit();
    };
    if (!reading) return write();
    const known = intents.get(key);
    known.onsuccess = () => known.result?.state === "sending" && write();
  });
  // The receipt is shown now; that it goes need not be waited for.
  setTimeout(() => transact(database, (intents, _bodies, commit) => (intents.delete(key), commit()), "relaxed"));
  return response;
}

/**
 * A `fetch` with the headers that the library sends, and nothing else.
 * @param {string} url
 * @param {unknown} order
 */
export async function fetchByHand(url, order) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify(order),
  });
  if (!response.ok) throw new Error("not delivered");
  return response;
}
