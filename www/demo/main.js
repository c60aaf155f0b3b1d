// The page: what the buttons do, and who is told when something changed.

import { hush } from "./announce.js";
import { countMade, drawCounters, want } from "./counters.js";
import { byId, say } from "./dom.js";
import { drawEvents, forgetEvents } from "./events.js";
import { armFor, choose, drawFaults, showFaultsLeft } from "./faults.js";
import { drawLedger } from "./ledger.js";
import { endNaive, naiveCode, orderNaively } from "./naive.js";
import { outbox, oursCode, submitOrder } from "./ours.js";
import { drawOutbox } from "./outbox-list.js";
import { control, Watch } from "./server.js";
import { givenUp, SIDES, wanted } from "./state.js";
import { drawStory, forgetStory } from "./story.js";

/** @import { Side } from "./state.js" */

/** How many calls of the left side are under way. A reload forgets them, and so does this page. */
let trying = 0;

const watch = new Watch((seen) => {
  drawLedger(seen);
  showFaultsLeft(seen.faults);
  count();
});

function count() {
  const made = countMade(watch.seen.orders);
  const inState = (/** @type {string[]} */ ...states) => outbox.intents.current.filter(({ state }) => states.includes(state)).length;
  drawCounters(made, {
    naive: { under: trying, stopped: 0 },
    ours: { under: inState("pending", "sending"), stopped: inState("parked", "refused") },
  });
  return made;
}

/** @param {FormData} form */
function orderFrom(form) {
  return { customer: String(form.get("customer")), item: String(form.get("item")), quantity: Number(form.get("quantity")) };
}

/**
 * Places the order of the form.
 * @param {readonly Side[]} sides
 */
async function place(sides) {
  const order = orderFrom(new FormData(byId("order")));
  await armFor(sides);
  for (const side of sides) want(side, 1);
  const naive = sides.includes("naive") ? tryNaively(order) : Promise.resolve(false);
  const key = sides.includes("ours") ? submitOrder(order).key : "";
  count();
  watch.stir();
  return { naive, key };
}

/** @param {ReturnType<typeof orderFrom>} order */
async function tryNaively(order) {
  trying++;
  say(byId("naive-says"), "Sending…");
  const worked = await orderNaively(order);
  trying--;
  say(byId("naive-says"), worked ? "“Thank you for your order.”" : "“Something went wrong. Please try again.”");
  watch.stir();
  return worked;
}

async function reset() {
  forgetStory();
  endNaive();
  await outbox.ready.catch(() => {});
  await Promise.allSettled(outbox.intents.current.map(({ key }) => outbox.discard(key)));
  await control("POST", "/control/reset").catch(console.error);
  wanted.set({ naive: 0, ours: 0 });
  givenUp.set([]);
  forgetEvents();
  hush();
  say(byId("naive-says"), "Knows of no order.");
  await choose("fine");
  await watch.look();
}

async function sayStorage() {
  const line = byId("ours-says");
  try {
    const { durable, ...more } = await outbox.ready;
    say(line, durable ? "Orders are written to this device’s disk before they are sent." : `No storage here (${"reason" in more ? more.reason : ""}): orders live in this page only.`);
  } catch (error) {
    say(line, `The library could not start: ${error}`);
  }
}

say(byId("naive-code"), naiveCode);
say(byId("ours-code"), oursCode);
byId("order").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const side = /** @type {HTMLButtonElement | null} */ (event.submitter)?.value;
  place(side === "naive" || side === "ours" ? [side] : SIDES);
});
byId("reload").addEventListener("click", () => location.reload());
byId("reset").addEventListener("click", reset);

drawFaults();
drawOutbox(outbox, (key) => {
  want("ours", -1);
  givenUp.set([...givenUp.get(), key]);
  count();
});
drawEvents(outbox);
drawStory({
  outbox,
  reset,
  choose,
  orderBoth: () => place(SIDES),
  async count() {
    await watch.look();
    return count();
  },
});
outbox.intents.subscribe(() => {
  count();
  watch.stir();
});
sayStorage();
setInterval(() => showFaultsLeft(watch.seen.faults), 500);
watch.look();
