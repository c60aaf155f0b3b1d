// node tests/e2e/kill.mjs [--rounds 500] [--seed N]: as tests/e2e/kill.test.mjs, for as long as you like.
import { parseArgs } from "node:util";
import { killRounds } from "./killing.mjs";

const { rounds, seed } = parseArgs({ options: { rounds: { type: "string", default: "500" }, seed: { type: "string" } } }).values;
const chosen = Number(seed ?? Math.floor(Math.random() * 2 ** 32));
console.log(`seed ${chosen}`);
console.log(await killRounds({ rounds: Number(rounds), seed: chosen, log: console.log }));
