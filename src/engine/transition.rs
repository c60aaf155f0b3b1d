//! What may happen to a row: each function is the body of one transaction, given the row and the clocks.

use super::backoff;
use super::env::{Env, Millis, Wall};
use super::error::{Code, Error};
use super::key::Key;
use super::policy::{OnMaybeDelivered, Policy};
use super::record::{
    Deadline, Evidence, Lease, OnParked, Reason, Receipt, Record, RequestHead, State,
};
use super::retry_after::Floor;
use super::verdict::{hint, verdict, About, Answer, Head, Verdict};

/// How much later than a claim its `fetch` may begin, in milliseconds on either clock. A lease is longer than the
/// attempt by twice this, so that a holder that was held up cannot send beside the next.
pub const GRACE: Millis = 2_000;

/// How often a page that is offline tries all the same: `navigator.onLine` is a hint, never a gate.
pub const OFFLINE_PROBE: Millis = 5 * 60_000;

/// What came of asking for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The attempt may be made.
    Granted,
    /// Not now: it is not due, or another holder's lease runs.
    NotNow,
    /// A limit was met instead: the intent settled as parked.
    Parked,
}

impl Record {
    /// Takes the intent for one attempt: raises `attempts` and `spent`, writes the lease, and schedules already what
    /// an unanswered failure would lead to, so that a crash needs no repair.
    pub fn claim(&mut self, env: &mut Env) -> Claim {
        let now = env.wall;
        if self.state.is_settled() || self.next_attempt_at.is_none_or(|due| due > now) {
            return Claim::NotNow;
        }
        if let Some(reason) = self.limit_met(now) {
            self.park(reason, now);
            return Claim::Parked;
        }
        let timeout = self.policy.attempt_timeout(self.request.body_bytes);
        let lease = timeout.saturating_add(2 * GRACE);
        let delay = backoff::delay(&self.policy, self.spent, &mut env.random);
        if self.state == State::Sending {
            // The last attempt was never answered: the next 409 may be about that one.
            self.conflicts = 0;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.spent = self.spent.saturating_add(1);
        self.fence += 1;
        self.lease = Some(Lease {
            written_at: now,
            length_ms: lease,
            locked: false,
        });
        self.state = State::Sending;
        self.maybe_delivered_before = self.maybe_delivered;
        self.maybe_delivered = true;
        self.may_repeat = false;
        self.key_used_at.get_or_insert(now);
        self.not_before = None;
        self.cuttable = false;
        self.schedule(Deadline::after(
            now,
            timeout.saturating_add(delay).max(lease),
        ));
        Claim::Granted
    }

    /// Waits for a gate that is closed: nothing was claimed. It stays due, so that it goes as soon as the gate opens,
    /// whoever opened it.
    pub(super) fn hold(&mut self, reason: Reason, now: Wall) {
        self.pend(reason, Deadline::after(now, 0));
    }

    /// Waits behind the sign-in gate, if it waits. Returns whether the row changed.
    pub fn deny(&mut self, now: Wall) -> bool {
        let waits = self.state == State::Pending && self.next_attempt_at.is_some();
        if waits {
            // A floor that has passed is served, also if the clock is set back behind it now.
            let floor = self.not_before.filter(|floor| floor.at() > now);
            let wait = floor.map_or(0, |floor| floor.at() - now);
            self.not_before = floor;
            self.pend(Reason::Unauthorized, Deadline::after(now, wait));
        }
        waits
    }

    /// Takes back the claim that it was to be stored with: nothing was sent.
    pub(super) fn unclaim(&mut self) {
        self.attempts = 0;
        self.spent = 0;
        self.maybe_delivered = false;
        self.key_used_at = None;
        self.lease = None;
    }

    /// The limit that forbids another attempt at `now`, if one is met. The age of the key outranks every other.
    pub fn limit_met(&self, now: Wall) -> Option<Reason> {
        if self.maybe_delivered && self.key_expired(now) {
            Some(Reason::KeyExpired)
        } else if self.maybe_delivered
            && self.policy.on_maybe_delivered == OnMaybeDelivered::Park
            && !self.may_repeat
        {
            Some(Reason::OutcomeUnknown)
        } else if now.saturating_sub(self.budget_from) > self.policy.max_age_ms {
            Some(Reason::MaxAge)
        } else if self.spent >= self.policy.max_attempts {
            Some(Reason::AttemptsExhausted)
        } else {
            None
        }
    }

    /// Whether the server may have forgotten the key. An age below zero is unknown, and counts as too old.
    pub fn key_expired(&self, now: Wall) -> bool {
        self.key_used_at
            .is_some_and(|used| used > now || now - used > self.policy.key_ttl_ms)
    }

    /// Ends the attempt of that fence. An older fence changes nothing, except that a delivery is a fact about the key
    /// and is recorded whatever the fence. Returns whether the row changed.
    pub fn settle(&mut self, fence: u64, answer: &Answer, env: &mut Env) -> bool {
        let now = env.wall;
        let verdict = verdict(
            answer,
            &About {
                url: &self.request.url,
                maybe_delivered_before: self.maybe_delivered_before,
                left_out: !self.left_out.is_empty(),
                conflicts: self.conflicts,
                conflict_is_twin: self.conflict_is_twin,
                acknowledgement: self.is_delivered.as_ref(),
                redirect_is_error: self.request.refuses_redirects(),
                now,
            },
        );
        if verdict == Verdict::Delivered {
            return self.deliver(answer, now);
        }
        if self.state != State::Sending || self.fence != fence {
            return false;
        }
        self.lease = None;
        if !matches!(verdict, Verdict::NotSent | Verdict::Abandoned) {
            self.evidence = Some(evidence(answer, now));
        }
        if put_back(answer, &verdict) {
            self.maybe_delivered = self.maybe_delivered_before;
        }
        match verdict {
            Verdict::StillRunning { .. }
            | Verdict::NotSent
            | Verdict::Offline { never_left: true } => {}
            _ => self.conflicts = 0,
        }
        if matches!(answer, Answer::Response(_)) && verdict != Verdict::Unauthorized {
            self.refused_credentials = 0;
        }
        self.apply(verdict, env);
        true
    }

    fn apply(&mut self, verdict: Verdict, env: &mut Env) {
        let now = env.wall;
        match verdict {
            Verdict::Delivered => {}
            Verdict::Refused(reason) => self.end(State::Refused, reason, now),
            Verdict::Parked(reason) => self.park(reason, now),
            Verdict::Retry { reason, floor } => self.wait(reason, floor, env),
            Verdict::Offline { .. } => {
                self.give_back();
                match self.limit_met(now) {
                    Some(limit) => self.park(limit, now),
                    None => {
                        self.pend(Reason::Offline, Deadline::after(now, OFFLINE_PROBE));
                        self.cuttable = true;
                    }
                }
            }
            Verdict::StillRunning { floor, twin } => {
                self.give_back();
                self.conflict_is_twin = twin;
                self.conflicts += 1;
                // Its own backoff: how long the first attempt still runs has nothing to do with the budget.
                let n = self.conflicts;
                self.wait_over(n, Reason::StillRunning, floor, env);
            }
            Verdict::Unauthorized => {
                self.give_back();
                self.refused_credentials = self.refused_credentials.saturating_add(1);
                // At once with fresh credentials, if there are; else the sign-in gate holds it.
                self.hold(Reason::Unauthorized, now);
            }
            Verdict::Abandoned => {
                self.give_back();
                match self.limit_met(now) {
                    Some(limit) => self.park(limit, now),
                    None => {
                        self.state = State::Pending;
                        self.reason = None;
                        self.schedule(Deadline::after(now, 0));
                    }
                }
            }
            Verdict::NotSent => {
                self.give_back();
                let delay = env.random.up_to(1_000);
                self.pend(Reason::NotSent, Deadline::after(now, delay));
            }
        }
    }

    /// Waits for the next attempt, or parks where none may follow.
    fn wait(&mut self, reason: Reason, floor: Option<Floor>, env: &mut Env) {
        self.wait_over(self.spent, reason, floor, env);
        self.cuttable = self.state == State::Pending
            && self.not_before.is_none()
            && matches!(
                reason,
                Reason::NetworkFailure | Reason::AttemptTimeout | Reason::ServerBusy
            )
            && self.failed_or_5xx();
    }

    fn failed_or_5xx(&self) -> bool {
        self.evidence
            .as_ref()
            .and_then(|evidence| evidence.status)
            .is_none_or(|status| status >= 500)
    }

    /// Waits the delay before retry `n − 1`.
    fn wait_over(&mut self, n: u32, reason: Reason, floor: Option<Floor>, env: &mut Env) {
        let now = env.wall;
        let n = n.saturating_sub(1);
        if let Some(limit) = self.limit_met(now) {
            return self.park(limit, now);
        }
        let Some(floor) = floor else {
            let delay = backoff::delay(&self.policy, n, &mut env.random);
            // What no further attempt could change is said now rather than when the wait is over.
            return match self.limit_met(now.saturating_add(delay)) {
                Some(limit) => self.park(limit, now),
                None => self.pend(reason, Deadline::after(now, delay)),
            };
        };
        let Some(ms) = self.accepted_floor(floor, now) else {
            return self.park(Reason::RetryAfterTooLong, now);
        };
        let delay = backoff::delay_over_floor(&self.policy, n, ms, &mut env.random);
        self.pend(reason, Deadline::after(now, delay));
        self.not_before = Some(Deadline::after(now, ms));
    }

    /// The floor as it will be waited, or `None` where that would outlast the key, the policy's age or sense. A date
    /// that had to be compared with the local clock is wrong by the clock's error, so it is cut to the limit instead.
    fn accepted_floor(&self, floor: Floor, now: Wall) -> Option<Millis> {
        let longest = self.policy.max_retry_after_ms;
        let ms = if floor.by_local_clock {
            floor.ms.min(longest)
        } else {
            floor.ms
        };
        let then = now.saturating_add(ms);
        let too_late = ms > longest
            || then.saturating_sub(self.budget_from) > self.policy.max_age_ms
            || self.maybe_delivered && self.key_expired(then);
        (!too_late).then_some(ms)
    }

    fn give_back(&mut self) {
        self.spent = self.spent.saturating_sub(1);
    }

    fn pend(&mut self, reason: Reason, deadline: Deadline) {
        self.state = State::Pending;
        self.reason = Some(reason);
        self.schedule(deadline);
    }

    pub(super) fn park(&mut self, reason: Reason, now: Wall) {
        self.end(State::Parked, reason, now);
    }

    fn end(&mut self, state: State, reason: Reason, now: Wall) {
        self.state = state;
        self.reason = Some(reason);
        self.settled_at = Some(now);
        self.forget_at = Some(now.saturating_add(self.retention_ms));
        self.leave_schedule();
        self.leave_lane();
    }

    /// When nobody is to be shown how it ended any more, if nobody was until then.
    fn keep_receipt(&mut self, now: Wall) {
        let kept = self.policy.max_age_ms.min(self.retention_ms);
        self.forget_at = Some(now.saturating_add(kept));
    }

    /// Nobody came back to it in time: nothing but the key, the times and the reason is left. That is shown like any end.
    pub(super) fn expire(&mut self, now: Wall) {
        let mut left = Record::new(
            &self.owner,
            self.key.clone(),
            RequestHead::default(),
            Policy::patient(),
            self.created_at,
        );
        left.fence = self.fence;
        left.attempts = self.attempts;
        left.maybe_delivered = self.maybe_delivered;
        left.cancel_for(Reason::Expired, now);
        *self = left;
    }

    /// Whether it is time to forget it.
    pub(super) fn is_old(&self, now: Wall) -> bool {
        self.state.is_settled() && self.forget_at.is_some_and(|at| at <= now)
    }

    /// Counts from now what a clock that was ahead counted from later. Returns whether the row changed.
    pub(super) fn anchor_retention(&mut self, now: Wall) -> bool {
        let Some((settled, forget)) = self.settled_at.zip(self.forget_at) else {
            return false;
        };
        let wrong = settled > now;
        if wrong {
            self.settled_at = Some(now);
            self.forget_at = Some(now.saturating_add(forget.saturating_sub(settled)));
        }
        wrong
    }

    /// A settled row leaves its lane, unless it holds it; and nothing is to take the place of what is over.
    fn leave_lane(&mut self) {
        if self.state != State::Parked || self.on_parked == OnParked::Skip {
            self.lane_seq = None;
        }
        if self.state.is_over() {
            self.coalesce_key = None;
        }
    }

    /// Parks what waits and has lost its body.
    pub fn spoil(&mut self, now: Wall) {
        if !self.state.is_settled() {
            self.park(Reason::BodyLost, now);
        }
    }

    pub(super) fn leave_schedule(&mut self) {
        self.next_attempt_at = None;
        self.schedule = None;
        self.not_before = None;
        self.lease = None;
        self.cuttable = false;
    }

    fn deliver(&mut self, answer: &Answer, now: Wall) -> bool {
        let Answer::Response(head) = answer else {
            return false;
        };
        if self.state == State::Delivered || self.receipt.is_some() {
            return false;
        }
        self.receipt = Some(Receipt {
            at: now,
            status: head.status,
            url: head.url.clone(),
            location: head.location.clone(),
            excerpt: head.excerpt.clone(),
        });
        // A late answer may find a row that was put back since.
        self.maybe_delivered = true;
        if self.state != State::Cancelled {
            self.state = State::Delivered;
            self.reason = None;
            self.evidence = None;
            self.settled_at = Some(now);
        }
        self.keep_receipt(now);
        self.leave_schedule();
        self.leave_lane();
        true
    }

    /// Gives the intent up. A finished answer wins: then nothing changes. Returns whether it is cancelled.
    pub fn cancel(&mut self, now: Wall) -> bool {
        match self.state {
            State::Cancelled => true,
            State::Delivered | State::Refused => false,
            _ => {
                self.give_up(now);
                true
            }
        }
    }

    /// Everything of its owner was deleted.
    pub(crate) fn clear(&mut self, now: Wall) {
        self.end(State::Cancelled, Reason::Cleared, now);
    }

    /// Gives it up, whatever was answered.
    pub(crate) fn give_up(&mut self, now: Wall) {
        self.cancel_for(Reason::Discarded, now);
    }

    /// A newer one takes its place.
    pub(super) fn supersede(&mut self, now: Wall) {
        self.cancel_for(Reason::Superseded, now);
    }

    fn cancel_for(&mut self, reason: Reason, now: Wall) {
        self.end(State::Cancelled, reason, now);
        self.keep_receipt(now);
    }

    /// Brings the next attempt forward to within the policy's spread, because the network is back: once per wait, never
    /// before the server's floor. Returns whether the row changed.
    pub fn bring_forward(&mut self, env: &mut Env) -> bool {
        let now = env.wall;
        if self.state != State::Pending || !self.cuttable {
            return false;
        }
        self.cuttable = false;
        let spread = env.random.up_to(self.policy.reconnect_spread_ms);
        let floor = self.not_before.map_or(now, Deadline::at).max(now);
        let sooner = floor.saturating_add(spread);
        if self.next_attempt_at.is_some_and(|due| sooner < due) {
            self.schedule(Deadline::after(now, sooner - now));
        }
        true
    }

    /// Waits again from now where the clock was ahead when a deadline was written. Returns whether the row changed.
    pub fn reanchor(&mut self, now: Wall) -> bool {
        let wrong = self.is_from_the_future(now);
        if wrong {
            self.anchor(now);
        }
        wrong
    }

    /// Whether nothing became of a row since it was stored as `stored`: it waits and was never claimed, or it is as it was,
    /// since whatever happens to it changes its state, its fence or its schedule. Another submission under its key was made
    /// at another time or of other bytes.
    pub fn is_unchanged_since(&self, stored: &Record) -> bool {
        let waits = self.state == State::Pending && self.attempts == 0;
        let same = (self.state, self.fence, self.schedule)
            == (stored.state, stored.fence, stored.schedule);
        (waits || same)
            && (self.created_at, &self.fingerprint) == (stored.created_at, &stored.fingerprint)
    }

    /// Whether a person's `retry` keeps the key or needs a new one.
    ///
    /// # Errors
    /// `bad-state` unless the intent is parked, refused or waiting; `needs-may-repeat` where a retry would risk a
    /// repetition that `may_repeat` does not allow.
    pub fn retry_needs_new_key(&self, may_repeat: bool, now: Wall) -> Result<bool, Error> {
        match self.state {
            State::Pending => return Ok(false),
            State::Parked | State::Refused => {}
            State::Sending | State::Delivered | State::Cancelled => {
                return Err(Error::about(
                    Code::BadState,
                    "retry",
                    "expected an intent that is parked, refused or waiting",
                ));
            }
        }
        let new_key = self.key_expired(now)
            || self.reason == Some(Reason::ReplayedFailure)
            || (self.state == State::Refused && !self.maybe_delivered);
        let key_decides = !new_key && self.policy.on_maybe_delivered == OnMaybeDelivered::Resend;
        if self.maybe_delivered && !key_decides && !may_repeat {
            return Err(Error::about(
                Code::NeedsMayRepeat,
                "retry",
                "may already have been received: pass { mayRepeat: true } if it may be done twice",
            ));
        }
        Ok(new_key)
    }

    /// A person's fresh intent under the same key: due at once, with a full new budget.
    pub fn retry(&mut self, may_repeat: bool, now: Wall) {
        self.reanchor(now);
        self.spent = 0;
        self.conflicts = 0;
        self.conflict_is_twin = false;
        self.refused_credentials = 0;
        self.budget_from = now;
        self.may_repeat = may_repeat;
        self.settled_at = None;
        self.forget_at = None;
        // What is left of the server's floor, written anew with the schedule, so that a clock set back moves both alike.
        let floor = self
            .not_before
            .map_or(now, Deadline::at)
            .saturating_sub(now);
        let deadline = Deadline::after(now, floor);
        self.not_before = (floor > 0).then_some(deadline);
        self.state = State::Pending;
        self.reason = None;
        self.schedule(deadline);
    }

    /// A person's fresh intent under a new key, made from this one.
    pub fn renewed(&self, key: Key, now: Wall) -> Record {
        let mut renewed = Record {
            replaces: Some(self.key.clone()),
            key,
            key_used_at: None,
            attempts: 0,
            fence: 0,
            maybe_delivered: false,
            maybe_delivered_before: false,
            evidence: None,
            fingerprint: None,
            created_at: now,
            ..self.clone()
        };
        renewed.retry(false, now);
        renewed
    }
}

/// Whether an attempt's end proves that this attempt changed nothing at the server: a 4xx other than 408 and 409, or
/// a failure that never left the machine. A 4xx after a redirect is the next page's, and says nothing about the POST.
///
/// A violation of `connect-src` is no proof: a redirect that the policy forbids is reported under the URL that was asked,
/// when the server has acted already (seen in Chromium 156).
fn put_back(answer: &Answer, verdict: &Verdict) -> bool {
    match (answer, verdict) {
        (_, Verdict::NotSent) => true,
        (_, Verdict::Offline { never_left }) => *never_left,
        (
            Answer::Response(Head {
                status, redirected, ..
            }),
            _,
        ) => (400..500).contains(status) && !matches!(status, 408 | 409) && !redirected,
        _ => false,
    }
}

fn evidence(answer: &Answer, now: Wall) -> Evidence {
    let Answer::Response(head) = answer else {
        return Evidence {
            at: now,
            hint: hint(answer),
            ..Evidence::default()
        };
    };
    let headers = [
        ("content-type", &head.content_type),
        ("date", &head.date),
        ("location", &head.location),
        ("retry-after", &head.retry_after),
    ];
    Evidence {
        at: now,
        status: Some(head.status),
        url: head.url.clone(),
        redirected: head.redirected,
        headers: headers
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .chain(
                head.replayed
                    .then(|| ("idempotent-replayed".to_owned(), "true".to_owned())),
            )
            .collect(),
        excerpt: head.excerpt.clone(),
        hint: None,
    }
}
