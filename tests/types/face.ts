// The JavaScript face has what the declarations promise. Most of its values are `any` to the compiler, which comes to
// know them from the module at run time; what is checked is that every function and member is there, and its arity.
import type * as declared from "resubmit";
import { createOutbox } from "../../www/lib/outbox.js";
import { init } from "../../www/lib/load.js";
import { isResubmitError, ResubmitError } from "../../www/lib/error.js";
import { submitWithRetry } from "../../www/lib/retry.js";
import { Submission } from "../../www/lib/submission.js";

type Made = ReturnType<typeof createOutbox>;

export const outbox: (options?: declared.OutboxOptions) => Record<keyof declared.Outbox, unknown> = createOutbox;
export const submit = (made: Made): declared.Outbox["submit"] => made.submit;
export const fetch = (made: Made): declared.Outbox["fetch"] => made.fetch;
export const submission = (made: Made): declared.Outbox["submission"] => made.submission;
export const retry = (made: Made): declared.Outbox["retry"] => made.retry;
export const discard = (made: Made): declared.Outbox["discard"] => made.discard;
export const acknowledge = (made: Made): declared.Outbox["acknowledge"] => made.acknowledge;
export const close = (made: Made): declared.Outbox["close"] => made.close;
export const ready = (made: Made): declared.Outbox["ready"] => made.ready;
export const intents = (made: Made): declared.Outbox["intents"] => made.intents;
export const unreadable = (made: Made): declared.Outbox["unreadable"] => made.unreadable;

export const made: declared.Submission = new Submission(undefined, "key");
export const loads: typeof declared.init = init;
export const loops: typeof declared.submitWithRetry = submitWithRetry;
export const knows: (value: unknown) => boolean = isResubmitError;
export const error: Record<"name" | "code" | "message", string> = new ResubmitError("closed", "the outbox was closed");
