// Timing two sides of one comparison against each other.

/** How long the page rests between two measurements, so that what one leaves to be done is not charged to the next. */
const REST_MS = 8;

/**
 * A side: what is timed, then what is not. Returns the second.
 * @typedef {() => Promise<void | (() => unknown)>} Side
 */

/**
 * Runs two sides alternately and times each.
 * @param {number} rounds
 * @param {Side} ours
 * @param {Side} theirs
 */
export async function pairs(rounds, ours, theirs) {
  /** @type {{ ours: number[], theirs: number[] }} */
  const times = { ours: [], theirs: [] };
  const sides = { ours, theirs };
  const warmUp = Math.max(5, Math.ceil(rounds / 10));
  for (let round = -warmUp; round < rounds; round++) {
    /** @type {("ours" | "theirs")[]} */
    const order = round % 2 === 0 ? ["ours", "theirs"] : ["theirs", "ours"];
    for (const side of order) {
      await rest();
      const began = performance.now();
      const untimed = await sides[side]();
      const took = performance.now() - began;
      await untimed?.();
      if (round >= 0) times[side].push(took);
    }
  }
  return times;
}

export const rest = () => new Promise((resolve) => setTimeout(resolve, REST_MS));

/** @param {number[]} values */
export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
