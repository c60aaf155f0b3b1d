// Medians, and how far to trust a ratio of two.

/** @param {number[]} values @param {number} q */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
}

/** @param {number[]} values */
export const median = (values) => quantile(values, 0.5);

/**
 * The ratio of the medians of paired times, and its 95 % interval: by drawing the pairs again, with repetition.
 * @param {number[]} ours
 * @param {number[]} theirs
 * @returns {{ ratio: number, interval: [number, number] }}
 */
export function ratioOf(ours, theirs) {
  const random = generator(1);
  const ratios = Array.from({ length: 1000 }, () => {
    const drawn = ours.map(() => Math.floor(random() * ours.length));
    return median(drawn.map((at) => ours[at] ?? NaN)) / median(drawn.map((at) => theirs[at] ?? NaN));
  });
  return { ratio: median(ours) / median(theirs), interval: [quantile(ratios, 0.025), quantile(ratios, 0.975)] };
}

/** The same numbers every time (mulberry32), so that one set of times has one interval. @param {number} seed */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
