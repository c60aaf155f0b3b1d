/** One line per finished step, so that a quiet set-up still shows what it looked at. */
export const done = (/** @type {string} */ step, /** @type {string} */ detail) =>
  console.log(`  ${step.padEnd(23)} ${detail}`);

/** Announces a step that takes long enough to make one wonder. */
export const working = (/** @type {string} */ step, /** @type {string} */ detail) =>
  console.log(`  ${step.padEnd(23)} ${detail} …`);
