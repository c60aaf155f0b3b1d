export { ResubmitError, isResubmitError } from "./error.js";
export { init } from "./load.js";
export { createOutbox } from "./outbox.js";
export { submitWithRetry } from "./retry.js";
