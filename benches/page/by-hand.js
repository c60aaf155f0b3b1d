// The same work by hand: what a careful front-end engineer would write, once, for one form. The intent is on the disk
// before its first byte leaves, and its receipt in its place when the answer is there; nothing is retried.

/** Opens a database; `stores: null` takes it as it is. */
export function open(name, stores = ["intents", "bodies"]) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    request.onupgradeneeded = () => {
      for (const store of stores ?? []) {
        const made = request.result.createObjectStore(store, store === "intents" ? { keyPath: "key" } : {});
        if (store === "intents") for (const index of ["nextAttemptAt", "createdAt"]) made.createIndex(index, index);
      }
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function strict(database, write) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(["intents", "bodies"], "readwrite", { durability: "strict" });
    write(transaction.objectStore("intents"), transaction.objectStore("bodies"));
    transaction.commit();
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}

export async function submitByHand(database, url, order) {
  const key = crypto.randomUUID();
  const body = new TextEncoder().encode(JSON.stringify(order));
  const row = { key, url, method: "POST", headers: [["content-type", "application/json"]], createdAt: Date.now(), nextAttemptAt: Date.now() + 30_000, state: "sending", attempts: 1 };
  await strict(database, (intents, bodies) => {
    intents.put(row);
    bodies.put(body, key);
  });
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const response = await fetch(url, { method: "POST", headers, body });
  const excerpt = (await response.clone().text()).slice(0, 4096);
  const { nextAttemptAt, ...rest } = row;
  await strict(database, (intents, bodies) => {
    intents.put({ ...rest, state: "delivered", receipt: { status: response.status, excerpt } });
    bodies.delete(key);
  });
  // The receipt was seen; not waited for.
  const seen = database.transaction("intents", "readwrite", { durability: "relaxed" });
  seen.objectStore("intents").delete(key);
  seen.commit();
  return response;
}
