/** Marks the errors of every copy of the library. */
const MARK = Symbol.for("resubmit.error");

/** An error with a stable code. */
export class ResubmitError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{ key?: string, cause?: unknown, outcome?: unknown }} [more]
   */
  constructor(code, message, { key, cause, outcome } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ResubmitError";
    this.code = code;
    if (key !== undefined) this.key = key;
    if (outcome !== undefined) this.outcome = outcome;
  }

  get [MARK]() {
    return true;
  }
}

/** @param {any} value */
export function isResubmitError(value) {
  return value instanceof Error && MARK in value;
}

/**
 * The error that the module threw as `{ code, message }`, or whatever else was thrown.
 * @param {any} thrown
 * @param {string} [key]
 */
export function fromCore(thrown, key) {
  if (thrown instanceof Error) {
    // A trap: the panic hook said why.
    return isResubmitError(thrown)
      ? thrown
      : new ResubmitError("panicked", "the module failed; what was stored is safe", { key, cause: thrown });
  }
  return new ResubmitError(thrown.code, thrown.message, { key });
}
