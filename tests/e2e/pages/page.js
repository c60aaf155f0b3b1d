// The page under test: the built package, nothing else. The tests call it through `window`.
import * as resubmit from "/dist/index.js";

window.resubmit = resubmit;

/** Opens the outbox that the tests mean when they don't say which. */
window.open_ = (options) => (window.outbox = resubmit.createOutbox(options));

/** How a submission ended, as data; an error as its code, any other reason of a rejection as it is. */
window.endOf = async (submission) => {
  try {
    const { response = null, ...outcome } = await submission.outcome;
    return response ? { ...outcome, response: { status: response.status, redirected: response.redirected, bodyUsed: response.bodyUsed } } : outcome;
  } catch (error) {
    return resubmit.isResubmitError(error) ? { error: error.code, message: error.message } : { error };
  }
};

/** The intent at the next event of that type. */
window.next = (target, type) =>
  new Promise((resolve) => target.addEventListener(type, ({ detail }) => resolve(detail.intent), { once: true }));

/** The list of intents, as soon as it is what `when` asks for. */
window.listed = (when, of = window.outbox) =>
  new Promise((resolve) => {
    let done = false;
    const stop = of.intents.subscribe((intents) => {
      if (done || !when(intents)) return;
      done = true;
      queueMicrotask(() => stop());
      resolve(intents);
    });
  });

/** The list of intents, as soon as there are some and none waits or is sent. */
window.allSettled = (of) => window.listed((all) => all.length > 0 && all.every(({ state }) => state !== "pending" && state !== "sending"), of);

/** Keeps the stores of an outbox to this page, in one transaction that does not end before `letGo` is called. */
window.holdStores = async (name = "resubmit") => {
  const open = indexedDB.open("resubmit:" + name);
  await new Promise((resolve) => (open.onsuccess = resolve));
  const store = open.result.transaction(["intents", "bodies"], "readwrite").objectStore("intents");
  let held = true;
  window.letGo = () => (held = false);
  await new Promise((begun) => {
    const again = () => {
      begun();
      if (held) store.count().onsuccess = again;
      else open.result.close();
    };
    store.count().onsuccess = again;
  });
};
