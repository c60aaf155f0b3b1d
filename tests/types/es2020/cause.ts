// Where `Error` declares no `cause`, ours does.
import { isResubmitError } from "resubmit";

export function below(error: unknown): unknown {
  return isResubmitError(error) ? error.cause : error;
}

export function misread(error: unknown) {
  if (!isResubmitError(error)) return;
  // @ts-expect-error whatever was thrown
  error.cause.message;
  // @ts-expect-error read only
  error.cause = "another";
}
