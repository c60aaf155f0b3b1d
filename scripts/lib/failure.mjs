/** Something the person at the keyboard must see and can act on: what is wrong, and what to do about it. */
export class Failure extends Error {
  /**
   * @param {string} what
   * @param {string} [remedy]
   */
  constructor(what, remedy) {
    super(remedy ? `${what}\n  ${remedy.replaceAll("\n", "\n  ")}` : what);
    this.name = "Failure";
  }
}

/**
 * Runs a script's main function: a `Failure` is printed without a stack, anything else is a bug and keeps it.
 * @param {() => Promise<void>} main
 */
export async function runMain(main) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof Failure ? `\nerror: ${error.message}` : error);
    process.exit(1);
  }
}
