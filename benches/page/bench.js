// What is compared with what, for the runner to call.
import { init } from "/dist/index.js";
import { opening } from "./open.js";
import { steps } from "./steps.js";
import { durable, notDurable, stored } from "./submit.js";

// Loading the module is what `npm run size` is about.
await init();

/** @type {{ name: string, what: string, target?: number, run: (rounds: number) => Promise<{ ours: number[], theirs: number[] }> }[]} */
const comparisons = [
  {
    name: "durable submit",
    what: "submit to delivered, against: strict put, fetch, excerpt, strict put, by hand",
    target: 1.15,
    run: (rounds) => durable(rounds),
  },
  {
    name: "durable submit, two tabs",
    what: "the same, by hand with the row read again before it is written over",
    run: (rounds) => durable(rounds, "/orders", true),
  },
  {
    name: "durable submit, answer in 20 ms",
    what: "as the first, over a server that takes 20 ms",
    run: (rounds) => durable(Math.ceil(rounds / 2), "/orders?after=20"),
  },
  {
    name: "stored",
    what: "submit to stored, against a strict put of intent and body by hand",
    run: (rounds) => stored(rounds),
  },
  {
    name: "non-durable submit",
    what: "submit with durable: false to delivered, against a bare fetch",
    target: 1.05,
    run: (rounds) => notDurable(rounds),
  },
  {
    name: "non-durable submit, answer in 20 ms",
    what: "the same over a server that takes 20 ms",
    run: (rounds) => notDurable(Math.ceil(rounds / 2), "/orders?after=20"),
  },
  {
    name: "open over 10,000 waiting",
    what: "createOutbox to ready and asked what is due, 10,000 rows waiting, against none",
    target: 1.5,
    run: (rounds) => opening(Math.ceil(rounds / 2)),
  },
];

Object.assign(window, {
  bench: {
    list: () => comparisons.map(({ run, ...comparison }) => comparison),
    run: (/** @type {string} */ name, /** @type {number} */ rounds) => comparisons.find((one) => one.name === name)?.run(rounds),
    steps,
  },
});
