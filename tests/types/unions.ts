// Every union is closed: a `switch` over it that knows each member leaves `never`.
import type {
  CancelledReason,
  ErrorCode,
  Intent,
  NotDurableReason,
  Outcome,
  ParkedReason,
  Preset,
  RefusedReason,
  State,
  Stored,
  WaitingReason,
} from "resubmit";

/** Takes what must not be left over. */
function never(value: never): never {
  throw new TypeError(String(value));
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles for `true` alone. */
type Holds<_T extends true> = true;

export function outcome(outcome: Outcome): string {
  switch (outcome.status) {
    case "delivered":
      return `${outcome.receipt.status} ${outcome.response?.url ?? outcome.receipt.url}`;
    case "refused":
      return refused(outcome.reason) + (outcome.response?.status ?? outcome.evidence.status ?? 0);
    case "parked":
      return parked(outcome.reason) + (outcome.evidence?.hint ?? "");
    case "cancelled":
      return cancelled(outcome.reason);
    default:
      return never(outcome);
  }
}

export function intent(intent: Intent): string {
  switch (intent.state) {
    case "pending":
    case "sending":
      return intent.reason === null ? "" : waiting(intent.reason);
    case "delivered":
      return String(intent.reason satisfies null);
    case "refused":
      return refused(intent.reason);
    case "parked":
      return parked(intent.reason);
    case "cancelled":
      return cancelled(intent.reason);
    default:
      return never(intent);
  }
}

export function waiting(reason: WaitingReason): string {
  switch (reason) {
    case "network-failure":
    case "attempt-timeout":
    case "offline":
    case "server-busy":
    case "still-running":
    case "not-acknowledged":
    case "unauthorized":
    case "not-sent":
    case "queued":
      return reason;
    default:
      return never(reason);
  }
}

export function refused(reason: RefusedReason): string {
  switch (reason) {
    case "invalid":
    case "forbidden":
    case "conflict":
      return reason;
    default:
      return never(reason);
  }
}

export function parked(reason: ParkedReason): string {
  switch (reason) {
    case "attempts-exhausted":
    case "max-age":
    case "key-expired":
    case "retry-after-too-long":
    case "outcome-unknown":
    case "redirected":
    case "unexpected":
    case "replayed-failure":
    case "blocked-by-csp":
    case "body-lost":
    case "hook-failed":
    case "unauthorized":
      return reason;
    default:
      return never(reason);
  }
}

export function cancelled(reason: CancelledReason): string {
  switch (reason) {
    case "discarded":
    case "superseded":
    case "cleared":
    case "expired":
      return reason;
    default:
      return never(reason);
  }
}

export function stored(stored: Stored): string {
  if (stored.durable) return "";
  const reason: NotDurableReason = stored.reason;
  switch (reason) {
    case "asked":
    case "no-storage":
    case "storage-failed":
    case "storage-silent":
      return reason;
    default:
      return never(reason);
  }
}

export function code(code: ErrorCode): string {
  switch (code) {
    case "bad-option":
    case "bad-request":
    case "too-large":
    case "key-reused":
    case "unknown-key":
    case "no-owner":
    case "bad-state":
    case "needs-may-repeat":
    case "storage-failed":
    case "detached":
    case "answered-elsewhere":
    case "closed":
    case "no-browser":
    case "load-failed":
    case "panicked":
    case "not-delivered":
      return code;
    default:
      return never(code);
  }
}

/** One member short, and `never` takes it for what it is. */
export function short(state: State): string {
  switch (state) {
    case "pending":
    case "sending":
    case "delivered":
    case "refused":
    case "parked":
      return state;
    default:
      // @ts-expect-error "cancelled" is left
      return never(state);
  }
}

// The discriminants are the unions that are exported under a name.
export type Checks = [
  Holds<Same<Intent["state"], State>>,
  Holds<Same<Outcome["status"], "delivered" | "refused" | "parked" | "cancelled">>,
  Holds<Same<Extract<Intent, { state: "parked" }>["reason"], ParkedReason>>,
  Holds<Same<Extract<Outcome, { status: "parked" }>["reason"], ParkedReason>>,
  Holds<Same<Extract<Outcome, { status: "refused" }>["reason"], RefusedReason>>,
  Holds<Same<Preset, "interactive" | "background" | "patient">>,
];
