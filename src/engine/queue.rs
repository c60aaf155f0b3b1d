//! The state machine of one page's outbox: of one owner's intents, of which a page may have several, one at a time its
//! turn.
//!
//! Four kinds of method, as in other sans-IO designs: *getters*; one *input*, [`Queue::handle`], that takes what
//! happened; one *output*, [`Queue::poll_effect`], to be drained after every input; and [`Queue::next_deadline`], after
//! which an [`Event::Tick`] is due. Effects are to be run in order, and what they come to is handed back as events.

use super::env::{Clocks, Env, Millis, Wall};
use super::error::{Code, Error};
use super::gate::Gate;
use super::key::Key;
use super::lane::{self, Around, Vacated};
use super::op::{Applied, Beside, Op};
use super::owner::{Owner, ANONYMOUS};
use super::record::{Reason, Record, State};
use super::sign_in::{Credentials, Why};
use super::table::Table;
use super::transition::GRACE;
use super::verdict::{Answer, Failure};
use std::collections::VecDeque;
use std::rc::Rc;

/// How many attempts of one page may run at once to one origin: more would only queue in the browser.
pub const PER_ORIGIN: usize = 4;

/// How often a page looks again while something waits: the net under every timer and event that was missed.
pub const RECHECK: Millis = 30_000;

/// How much the two clocks may disagree between two events before the page counts as woken from sleep.
const ASLEEP: Millis = 5_000;

/// How long after `authorize` failed it is asked for another intent; for the same one after [`RECHECK`].
const FAILED: Millis = 1_000;

/// How recent an answer must be to show that the network is there.
const LATELY: Millis = 60_000;

/// What names a call of the shell's, so that its reply can find it.
pub type Ticket = u64;

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A person submits. `durable`: through the store; otherwise from this page's memory alone.
    Submit {
        /// The intent.
        record: Rc<Record>,
        /// Whether it goes through the store.
        durable: bool,
    },
    /// The store is open: what is due may be asked for.
    Opened,
    /// A transaction was committed.
    Committed(Ticket, Op, Box<Applied>),
    /// A transaction failed, or was not answered in time: nothing is known to be written.
    Failed(Ticket, Op),
    /// A transaction was committed after it had been given up ([`Event::Failed`]).
    CommittedLate(Op, Box<Applied>),
    /// The answer to [`Effect::Query`].
    Queried(Due),
    /// An attempt ended.
    Answered(Key, u64, Box<Answer>),
    /// A deadline passed.
    Tick,
    /// The browser says that the network is back.
    Online,
    /// The browser says that the network is gone.
    Offline,
    /// The page became visible, was focused or shown again: look for what is due.
    Look,
    /// The page is being left: what its attempts come to from now on is no news about the server.
    Leaving,
    /// The page was shown again after it was left.
    Returned,
    /// What came of [`Effect::Authorize`].
    Authorized(Key, Credentials),
    /// The person may have signed in: what waits for that is tried.
    SignedIn,
    /// A transaction that somebody asked for.
    Asked(Ticket, Op),
    /// Whose turn it is in this page.
    Turn(Owner),
    /// Everything of this owner is to be deleted, somebody asks.
    Clear(Ticket),
    /// The answer to [`Effect::Clear`]: the rows that somebody follows, as they were.
    Cleared(Ticket, Vec<Rc<Record>>),
    /// What [`Effect::Clear`] asked for failed, or was not answered in time.
    NotCleared(Ticket),
}

/// What waits in the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Due {
    /// A line for every origin, and for every set of things that a page needs to make an attempt. They are read apart, so
    /// that none of them starves another: a page that lacks a header, or an origin that is down.
    pub lines: Vec<Line>,
    /// The gates that are closed.
    pub gates: Vec<Gate>,
    /// The origins at which the owner has to sign in.
    pub signed_out: Vec<String>,
    /// The current owner. `None`: nobody ever said.
    pub owner: Option<Owner>,
}

/// What is due in one line, and the two ends of what is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// Rows that are due, earliest first, up to a limit.
    pub due: Vec<Rc<Record>>,
    /// The earliest row that is not due.
    pub next: Option<Rc<Record>>,
    /// The row with the furthest deadline. If a clock was ahead when it was written, it shows here.
    pub last: Option<Rc<Record>>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Run a transaction; answer with [`Event::Committed`] or [`Event::Failed`].
    Transact(Ticket, Op),
    /// Ask the store what is due; answer with [`Event::Queried`].
    Query,
    /// Bring forward what waits in the store, a transaction per row ([`Op::BringForward`]), then [`Event::Look`].
    BringForward,
    /// Ask the application for credentials; answer with [`Event::Authorized`].
    Authorize(Rc<Record>, Why),
    /// Call `fetch` now, in this task; answer with [`Event::Answered`].
    Send(Rc<Record>),
    /// A person's retry needed a new key, the second, of an intent made at that moment: what this page holds goes with
    /// it, before anything else is done.
    Renew(Key, Key, Wall),
    /// Delete every row and body of this owner; answer with [`Event::Cleared`] or [`Event::NotCleared`].
    Clear(Ticket),
    /// The store says that it is another owner's turn: change over, and say so with [`Event::Turn`]. Until then this queue
    /// sends nothing.
    ChangeOver,
    /// Abort the attempt of that fence.
    Abort(Key, u64),
    /// Tell who listens.
    Report(Report),
    /// Answer the call of that ticket.
    Reply(Ticket, Result<Box<Applied>, Error>),
}

/// What a listener is told, in the past tense.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// It is known whether the intent is on the disk.
    Stored(Key, bool),
    /// The application's key was known: the submission is this one.
    Known(Rc<Record>),
    /// It could not be submitted; nothing was stored or sent.
    ///
    /// The print is that of the request: others under the same key may be well.
    Rejected(Key, Option<String>, Error),
    /// An attempt began.
    Attempted(Rc<Record>),
    /// The intent waits for its next attempt.
    Waiting(Rc<Record>),
    /// The intent settled. `fence`: of the attempt whose answer settled it.
    Settled(Rc<Record>, Option<u64>),
    /// Its row is gone.
    Removed(Key),
    /// Everything is gone.
    Cleared,
}

/// What this page does with an intent.
#[derive(Debug)]
struct Live {
    record: Rc<Record>,
    place: Place,
    phase: Phase,
    /// Whether this page submitted it or made an attempt: then it tells how it ended, wherever that was.
    ours: bool,
    /// How many refusals the credentials are younger than that this page holds for it.
    authorized: Option<u32>,
    /// When `authorize` failed for it.
    failed: Option<Clocks>,
    /// Whether everything is being deleted: what becomes of it is no news.
    doomed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Disk,
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The write-ahead runs.
    Storing(Clocks),
    /// Nothing runs.
    Idle,
    /// The application is asked for credentials.
    Authorizing(Why),
    /// The claim runs.
    Claiming(Clocks),
    /// The attempt runs.
    Sending(Attempt),
    /// The attempt ended; the transaction that says so runs.
    Settling(u64),
    /// A transaction runs that ends it: nothing else is begun. The attempt of that fence was ended by this page, or it will
    /// never be made.
    Ending(Option<u64>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Attempt {
    fence: u64,
    since: Clocks,
    timeout: Millis,
    offline: bool,
}

/// The state machine of one page's outbox.
#[derive(Debug)]
pub struct Queue {
    /// Whose intents these are.
    owner: Owner,
    /// Whether it is another's turn: nothing is sent, and nothing looked for.
    away: bool,
    live: Table<Key, Live>,
    effects: VecDeque<Effect>,
    open: bool,
    /// A query runs.
    querying: bool,
    /// Something may be due that was not asked for yet.
    look: bool,
    /// Due work was left for want of a free slot.
    backlog: bool,
    /// When the store has work again.
    next_due: Option<Wall>,
    /// What this page knows of the origins.
    origins: Table<String, Origin>,
    /// When `authorize` last failed, for any intent.
    hook_failed: Option<Clocks>,
    clocks: Option<Clocks>,
    offline: bool,
    offline_is_a_lie: bool,
    answered: Option<Millis>,
    leaving: bool,
    tickets: Ticket,
    supplies: Supplies,
    /// What the page was told of and the store has yet to hear, because its transaction failed: verdicts, and what was
    /// given up. To be written when the store answers again.
    unwritten: Vec<Unwritten>,
}

/// What a page has for attempts of intents that it did not submit itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supplies {
    /// Headers that are not stored: it has an `authorize`.
    pub headers: bool,
    /// The names of its hooks.
    pub hooks: Vec<String>,
}

impl Supplies {
    /// Whether that is all that an attempt of the row needs.
    pub fn suffice(&self, record: &Record) -> bool {
        (self.headers || record.left_out.is_empty())
            && record.hooks.iter().all(|hook| self.hooks.contains(hook))
    }
}

/// What this page knows of an origin.
#[derive(Debug, Default)]
struct Origin {
    /// Its gate, if that is closed.
    gate: Option<Gate>,
    /// Whether the sign-in gate is closed.
    signed_out: bool,
    /// Whether this page has tried nevertheless, since there was reason to.
    tried: bool,
    /// When `authorize` last gave fresh credentials for it.
    refreshed: Option<Wall>,
}

/// What was told, and what the store has yet to hear of.
#[derive(Debug)]
struct Unwritten {
    op: Op,
    /// The transaction that tries again, while it runs.
    ticket: Option<Ticket>,
    /// The row, if the verdict settled it.
    settled: Option<Rc<Record>>,
}

impl Default for Queue {
    fn default() -> Self {
        Queue::new(false, Supplies::default())
    }
}

impl Queue {
    /// A page's queue. `offline`: what `navigator.onLine` denies at the start.
    pub fn new(offline: bool, supplies: Supplies) -> Self {
        Queue {
            owner: Some(ANONYMOUS.to_owned()),
            away: false,
            live: Table::default(),
            effects: VecDeque::new(),
            open: false,
            querying: false,
            look: false,
            backlog: false,
            next_due: None,
            origins: Table::default(),
            hook_failed: None,
            clocks: None,
            offline,
            offline_is_a_lie: false,
            answered: None,
            leaving: false,
            // The shell's own tickets are even numbers, those of the queue odd ones.
            tickets: 1,
            supplies,
            unwritten: Vec::new(),
        }
    }

    /// Says whose it is, before anything is submitted. Default: [`ANONYMOUS`].
    pub fn belong_to(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// Whose it is.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether it is another's turn.
    pub fn is_away(&self) -> bool {
        self.away
    }

    /// Whether it holds nothing that another page could not find in the store, and waits for nothing.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.unwritten.is_empty() && !self.querying
    }

    /// The next effect to run, in order. To be drained after every [`Queue::handle`].
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The intent, if this page holds it.
    pub fn record(&self, key: &Key) -> Option<&Rc<Record>> {
        self.live.get(key).map(|live| &live.record)
    }

    /// Whether the intent lives in this page's memory alone.
    pub fn in_memory(&self, key: &Key) -> bool {
        self.live
            .get(key)
            .is_some_and(|live| live.place == Place::Memory)
    }

    /// What this page knows of what stands beside the row of a transaction: the gate, and of what lives in its memory
    /// everything.
    pub fn beside(&self, op: &Op) -> Beside {
        let live = self.live.get(op.key());
        let record = match (op, live) {
            (Op::Store(record), _) => record,
            (_, Some(live)) => &live.record,
            (_, None) => return Beside::default(),
        };
        let around = match (op, live) {
            (_, None) => Around::default(),
            (_, Some(live)) if live.place == Place::Disk => Around::default(),
            (Op::Store(_), Some(_)) => Around::of(op, None),
            (_, Some(live)) => Around::of(op, Some(&live.record)),
        };
        let others = || {
            self.memory()
                .filter(|other| other.key != record.key && other.owner == record.owner)
        };
        let Around {
            lane, coalesce_key, ..
        } = around;
        Beside {
            gate: self.gate(&record.origin).cloned(),
            signed_out: self.is_signed_out(&record.origin),
            ended: live.and_then(|live| match live.phase {
                Phase::Ending(fence) => fence,
                _ => None,
            }),
            lane_end: others()
                .filter(|other| lane.is_some() && other.lane == lane)
                .filter_map(|other| other.lane_seq)
                .max()
                .unwrap_or(0),
            twins: others()
                .filter(|other| coalesce_key.is_some() && other.coalesce_key == coalesce_key)
                .cloned()
                .collect(),
            ..Beside::default()
        }
    }

    /// The gate of an origin, if it is closed as far as this page knows.
    fn gate(&self, origin: &String) -> Option<&Gate> {
        self.origins.get(origin)?.gate.as_ref()
    }

    fn is_signed_out(&self, origin: &String) -> bool {
        self.origins
            .get(origin)
            .is_some_and(|origin| origin.signed_out)
    }

    /// When an intent of that origin that is due may be tried: where its gate is closed, as the probe.
    fn opens(&self, origin: &String, due: Wall, now: Wall) -> Wall {
        match self.gate(origin) {
            Some(gate) if !gate.lets_pass(now) => due.max(gate.probe.at()),
            _ => due,
        }
    }

    /// Whether the application was asked for its credentials, and they are wanted still.
    pub fn is_authorizing(&self, key: &Key) -> bool {
        let live = self.live.get(key);
        live.is_some_and(|live| matches!(live.phase, Phase::Authorizing(_)))
    }

    /// Whether it is not known yet if the intent is on the disk.
    pub fn is_storing(&self, key: &Key) -> bool {
        let live = self.live.get(key);
        live.is_some_and(|live| matches!(live.phase, Phase::Storing(_)))
    }

    /// The intents that live in this page's memory alone.
    pub fn memory(&self) -> impl Iterator<Item = &Rc<Record>> {
        self.live
            .values()
            .filter(|live| live.place == Place::Memory)
            .map(|live| &live.record)
    }

    /// The intents whose next attempt this page makes by itself, without finding them in the store: those that live in
    /// its memory alone, and those for which it alone has what they need.
    fn own(&self) -> impl Iterator<Item = &Live> {
        self.live.values().filter(|live| {
            live.phase == Phase::Idle
                && (live.place == Place::Memory || !live.record.needs.is_empty())
        })
    }

    /// How long from now an [`Event::Tick`] is due, if anything waits.
    pub fn next_deadline(&self, now: Clocks) -> Option<Millis> {
        let mut soonest: Option<Millis> = None;
        let mut within = |ms: Millis| soonest = Some(soonest.map_or(ms, |least| least.min(ms)));
        for live in self.live.values() {
            if let Phase::Sending(attempt) = live.phase {
                let passed = now.longest_since(attempt.since);
                within(attempt.timeout.saturating_sub(passed));
            }
        }
        for live in self.own().filter(|_| !self.away) {
            if let Some(due) = live.record.next_attempt_at {
                within(self.until(self.opens(&live.record.origin, due, now.wall), now));
            }
        }
        if let Some(due) = self.next_due.filter(|_| !self.away) {
            within(self.until(due, now));
        }
        if !self.unwritten.is_empty() {
            within(RECHECK);
        }
        soonest
    }

    /// How long to wait for work. What was due already when the queue last looked was left for want of a free slot, or
    /// waits for the store: it is looked for again in a while. What became due since is due now.
    fn until(&self, due: Wall, now: Clocks) -> Millis {
        if self.clocks.is_some_and(|seen| due <= seen.wall) {
            RECHECK
        } else {
            due.saturating_sub(now.wall).min(RECHECK)
        }
    }

    /// Takes what happened.
    pub fn handle(&mut self, event: Event, env: &mut Env) {
        let woken = self
            .clocks
            .replace(env.clocks())
            .is_some_and(|last| env.clocks().disagreement_since(last) > ASLEEP);
        if woken {
            self.reconnect(env);
        }
        match event {
            Event::Submit { record, durable } => self.submit(record, durable, env),
            Event::Opened => {
                self.open = true;
                self.look = true;
            }
            Event::Committed(ticket, op, applied) => self.written(ticket, op, *applied, env),
            Event::Failed(ticket, op) => self.failed(ticket, op, env),
            Event::CommittedLate(op, applied) => self.written_after_all(&op, *applied, env),
            Event::Queried(due) => self.queried(due, env),
            Event::Answered(key, fence, answer) => self.answered(key, fence, answer, env),
            Event::Tick => {
                self.look |= self.open;
                self.rewrite();
            }
            Event::Look => self.look = true,
            Event::Authorized(key, credentials) => self.authorized(key, credentials, env),
            Event::SignedIn => self.signed_in(),
            Event::Online => {
                self.offline = false;
                self.ask_again();
                // An attempt that saw the network go hangs on a connection that is no more.
                self.time_out(env, |attempt, _| attempt.offline);
                self.reconnect(env);
            }
            Event::Offline => {
                self.offline = true;
                for live in self.live.values_mut() {
                    if let Phase::Sending(attempt) = &mut live.phase {
                        attempt.offline = true;
                    }
                }
            }
            Event::Leaving => self.leaving = true,
            Event::Returned => {
                self.leaving = false;
                self.look = true;
            }
            Event::Asked(ticket, op) => self.asked(ticket, op, env),
            Event::Turn(current) => self.turn(&current, env),
            Event::Clear(ticket) => self.clear(ticket),
            Event::Cleared(ticket, rows) => self.cleared(ticket, rows, env),
            Event::NotCleared(ticket) => self.not_cleared(ticket),
        }
        self.time_out(env, |attempt, now| {
            now.longest_since(attempt.since) >= attempt.timeout
        });
        self.pump(env);
    }

    fn emit(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    fn report(&mut self, report: Report) {
        self.emit(Effect::Report(report));
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 2;
        self.tickets
    }

    // Submitting

    fn submit(&mut self, mut record: Rc<Record>, durable: bool, env: &mut Env) {
        let key = record.key.clone();
        if self.owner.is_none() {
            let nobody = Error::new(Code::NoOwner, "nobody is signed in: whose would it be?");
            let print = record.fingerprint.clone();
            return self.report(Report::Rejected(key, print, nobody));
        }
        if let Some(live) = self.live.get(&key) {
            let op = Op::Store(record.clone());
            let known = op.apply(Some(live.record.clone()), env);
            return self.known(&record, &known);
        }
        let authorized = (!record.left_out.is_empty()).then_some(0);
        // A person who submits may have signed in.
        if let Some(origin) = self.origins.get_mut(&record.origin) {
            origin.tried = false;
        }
        if let Some(reason) = self.holds_new(&record, env.wall) {
            Rc::make_mut(&mut record).hold(reason, env.wall);
        } else if is_authorized(&record, authorized) && self.free_slot(&record.origin) {
            Rc::make_mut(&mut record).claim(env);
        }
        let op = Op::Store(record.clone());
        let (place, phase) = if durable {
            (Place::Disk, Phase::Storing(env.clocks()))
        } else {
            (Place::Memory, Phase::Idle)
        };
        self.live.insert(
            key.clone(),
            Live {
                record,
                place,
                phase,
                ours: true,
                authorized,
                failed: None,
                doomed: false,
            },
        );
        if durable {
            let ticket = self.ticket();
            self.emit(Effect::Transact(ticket, op));
        } else {
            self.degrade(key, env.clocks(), env);
        }
    }

    /// Why a new intent may not be sent at once.
    fn holds_new(&self, record: &Record, now: Wall) -> Option<Reason> {
        if self.away {
            return Some(Reason::NotSent);
        }
        let busy = self.busy(&record.origin) > 0;
        let closed = self.gate(&record.origin).is_some_and(|gate| {
            !gate.lets_pass(now) && (busy || !gate.lets_new_pass(&record.policy, now))
        });
        match (closed, busy && self.is_signed_out(&record.origin)) {
            (true, _) => Some(Reason::ServerBusy),
            (_, true) => Some(Reason::Unauthorized),
            _ => None,
        }
    }

    /// Goes on from memory: what a person submits is attempted whatever the storage does.
    fn degrade(&mut self, key: Key, asked: Clocks, env: &mut Env) {
        self.report(Report::Stored(key.clone(), false));
        if let Some(live) = self.live.get_mut(&key) {
            live.place = Place::Memory;
            live.phase = Phase::Idle;
            let op = Op::Store(live.record.clone());
            let applied = op.run(None, self.beside(&op), env);
            self.note_gate(&applied);
            self.note_others(&applied);
            if let Some(record) = &applied.record {
                self.update(record);
            }
            self.begin(key, asked, env);
            self.promote(applied.vacated, env);
        }
    }

    /// The application's key was known.
    fn known(&mut self, new: &Record, applied: &Applied) {
        if let Some(error) = &applied.error {
            let (key, print) = (new.key.clone(), new.fingerprint.clone());
            self.report(Report::Rejected(key, print, error.clone()));
        } else if let Some(record) = &applied.record {
            self.report(Report::Known(record.clone()));
        }
    }

    // Attempts

    /// Starts the attempt of a row that was just claimed, unless the claim took too long, or it is another's turn by now:
    /// then nothing is sent, and what else may have happened to the row meanwhile is safe.
    fn begin(&mut self, key: Key, asked: Clocks, env: &mut Env) {
        let offline = self.offline;
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if live.record.state != State::Sending {
            live.phase = Phase::Idle;
            self.look = true;
            // Behind a closed gate, or behind others of its lane.
            let held = live.record.reason.is_some();
            if let Some(record) = held.then(|| live.record.clone()) {
                self.waiting(&record);
            }
            return;
        }
        let fence = live.record.fence;
        live.ours = true;
        // (Another page's attempt may have been refused since this one was given its credentials.)
        let unfit = !is_authorized(&live.record, live.authorized);
        if unfit || self.away || env.clocks().longest_since(asked) > GRACE {
            live.phase = Phase::Settling(fence);
            return self.transact(Op::Settle(key, fence, Rc::new(Answer::NotSent)), env);
        }
        live.phase = Phase::Sending(Attempt {
            fence,
            since: env.clocks(),
            timeout: live
                .record
                .policy
                .attempt_timeout(live.record.request.body_bytes),
            offline,
        });
        let record = live.record.clone();
        // Sent first: who listens may take as long as it likes.
        self.emit(Effect::Send(record.clone()));
        self.report(Report::Attempted(record));
    }

    fn answered(&mut self, key: Key, fence: u64, mut answer: Box<Answer>, env: &mut Env) {
        if let Answer::Response(_) = *answer {
            self.answered = Some(env.mono);
            self.offline_is_a_lie |= self.offline;
        }
        let phase = self.live.get(&key).map(|live| live.phase);
        let current = matches!(phase, Some(Phase::Sending(attempt)) if attempt.fence == fence);
        let Some(live) = self.live.get_mut(&key).filter(|_| current) else {
            // Too late: it was given up, or timed out. A delivery is a fact all the same, unless all is being deleted.
            let doomed = self.live.get(&key).is_some_and(|live| live.doomed);
            let known = !doomed && (phase.is_some() || self.open);
            if matches!(*answer, Answer::Response(_)) && known {
                self.transact(Op::Settle(key, fence, answer.into()), env);
            }
            return;
        };
        if let Answer::Failure(failure) = &mut *answer {
            if self.leaving {
                // The browser ends the requests of a page that is left: no news about the server. The claim
                // scheduled already what an unanswered attempt leads to.
                live.phase = Phase::Idle;
                return;
            }
            failure.offline_is_a_lie = self.offline_is_a_lie;
            failure.others_succeed = self
                .answered
                .is_some_and(|at| env.mono.saturating_sub(at) < LATELY);
        }
        live.phase = Phase::Settling(fence);
        self.transact(Op::Settle(key, fence, answer.into()), env);
    }

    fn time_out(&mut self, env: &mut Env, late: impl Fn(&Attempt, Clocks) -> bool) {
        let now = env.clocks();
        let late: Vec<(Key, Attempt)> = self
            .live
            .iter()
            .filter_map(|(key, live)| match live.phase {
                Phase::Sending(attempt) if late(&attempt, now) => Some((key.clone(), attempt)),
                _ => None,
            })
            .collect();
        for (key, attempt) in late {
            self.emit(Effect::Abort(key.clone(), attempt.fence));
            let failure = Failure {
                timed_out: true,
                elapsed: now.longest_since(attempt.since),
                ..Failure::default()
            };
            self.answered(key, attempt.fence, Box::new(Answer::Failure(failure)), env);
        }
    }

    fn free_slot(&self, origin: &str) -> bool {
        self.busy(origin) < PER_ORIGIN
    }

    /// How many attempts to that origin this page makes, or is about to make.
    fn busy(&self, origin: &str) -> usize {
        self.live
            .values()
            .filter(|live| match live.phase {
                Phase::Storing(_) => live.record.state == State::Sending,
                Phase::Authorizing(_)
                | Phase::Claiming(_)
                | Phase::Sending(_)
                | Phase::Settling(_) => true,
                Phase::Idle | Phase::Ending(_) => false,
            })
            .filter(|live| live.record.origin == origin)
            .count()
    }

    // Transactions

    /// Runs a transaction where the intent lives: in memory at once, in the store by an effect.
    fn transact(&mut self, op: Op, env: &mut Env) {
        let ticket = self.ticket();
        self.run(ticket, op, env);
    }

    fn run(&mut self, ticket: Ticket, op: Op, env: &mut Env) {
        match self.live.get(op.key()) {
            Some(live) if live.place == Place::Memory => {
                let applied = op.run(Some(live.record.clone()), self.beside(&op), env);
                let vacated = applied.vacated.clone();
                self.committed(ticket, op, applied, env);
                self.promote(vacated, env);
            }
            _ => self.emit(Effect::Transact(ticket, op)),
        }
    }

    fn asked(&mut self, ticket: Ticket, op: Op, env: &mut Env) {
        if self.owner.is_none() {
            let applied = op.apply(None, env);
            return self.committed(ticket, op, applied, env);
        }
        if self.is_unwritten(op.key()) {
            // What was told comes first.
            self.rewrite();
        }
        if matches!(op, Op::Cancel(_) | Op::Discard(_)) {
            if let Some(live) = self.live.get_mut(op.key()) {
                match live.phase {
                    Phase::Sending(attempt) => {
                        live.phase = Phase::Ending(Some(attempt.fence));
                        self.emit(Effect::Abort(op.key().clone(), attempt.fence));
                    }
                    // A finished answer wins: its transaction is before this one.
                    Phase::Settling(_) | Phase::Ending(_) => {}
                    Phase::Storing(_) => live.phase = Phase::Ending(Some(live.record.fence)),
                    Phase::Claiming(_) => live.phase = Phase::Ending(Some(live.record.fence + 1)),
                    Phase::Idle | Phase::Authorizing(_) => live.phase = Phase::Ending(None),
                }
            }
        }
        self.run(ticket, op, env);
    }

    /// The store committed a transaction.
    fn written(&mut self, ticket: Ticket, op: Op, mut applied: Applied, env: &mut Env) {
        if let Some(at) = self.written_late(ticket) {
            self.unwritten.swap_remove(at);
            self.look |= self.open;
            if let Op::Settle(..) = op {
                // What it says was told already.
                self.note_others(&applied);
                return;
            }
        }
        // The store answers: what it has yet to hear is said again.
        self.rewrite();
        if matches!(op, Op::Cancel(_) | Op::Discard(_)) {
            if self.in_memory(op.key()) {
                return self.end_in_memory(ticket, op, env);
            } else if let Some(settled) = self
                .unwritten
                .iter()
                .filter(|late| late.op.key() == op.key())
                .find_map(|late| late.settled.as_ref())
                .filter(|settled| settled.state != State::Parked)
            {
                // Its answer came first, though the store has yet to hear of it.
                applied.settled = false;
                if let Op::Cancel(_) = op {
                    applied.accepted = false;
                    applied.record = Some(settled.clone());
                }
            }
        }
        self.committed(ticket, op, applied, env);
    }

    /// What was given up was written all the same.
    fn written_after_all(&mut self, op: &Op, applied: Applied, env: &mut Env) {
        self.unwritten.retain(|late| late.op != *op);
        match op {
            // (The person may have signed in since: that the gate is closed is found by looking, and then it is tried.)
            Op::Settle(..) | Op::Claim(_) | Op::Store(_) | Op::Deny { .. } => {
                self.note_others(&applied);
                self.look |= self.open;
            }
            // (No call waits for it any more: the queue's own tickets are odd.)
            _ => self.written(1, op.clone(), applied, env),
        }
    }

    /// Ends what went on from memory while the store was asked to end it.
    fn end_in_memory(&mut self, ticket: Ticket, op: Op, env: &mut Env) {
        self.run(ticket, op, env);
    }

    fn committed(&mut self, ticket: Ticket, op: Op, applied: Applied, env: &mut Env) {
        self.note_gate(&applied);
        self.note_sign_in(&applied);
        self.note_others(&applied);
        if applied.owner.is_some() {
            self.another_is_current(env);
        }
        match &op {
            Op::Store(record) => self.store_committed(record, &applied, env),
            Op::Claim(key) => self.claim_committed(key, &applied, env),
            Op::Deny { key, .. } => self.deny_committed(key, &applied),
            Op::Settle(key, fence, _) => self.settle_committed(&op, key, *fence, &applied, env),
            Op::Cancel(_) | Op::Discard(_) => self.end_committed(&op, &applied),
            Op::Retry { key, .. } => self.retry_committed(key, &applied),
            Op::Forget(key) => {
                if applied.accepted {
                    // The key may have been submitted anew since: that is behind this transaction.
                    if !self.is_storing(key) {
                        self.live.remove(key);
                    }
                    self.report(Report::Removed(key.clone()));
                }
            }
            Op::Expire(key) => {
                if let Some(record) = applied.record.as_ref().filter(|_| applied.accepted) {
                    if applied.settled {
                        self.update(record);
                        self.settled(record.clone(), None);
                    } else {
                        self.live.remove(key);
                        self.report(Report::Removed(key.clone()));
                    }
                }
            }
            // (What was taken back lives in memory by now.)
            Op::Unstore(_) | Op::Spoil(_) => {}
            Op::Reanchor(_) => self.look = true,
            Op::BringForward(_) => {
                if applied.accepted {
                    if let Some(record) = &applied.record {
                        self.update(record);
                        self.waiting(record);
                    }
                }
            }
        }
        if ticket.is_multiple_of(2) {
            self.emit(Effect::Reply(
                ticket,
                match applied.error {
                    Some(error) => Err(error),
                    None => Ok(Box::new(applied)),
                },
            ));
        }
    }

    fn note_gate(&mut self, applied: &Applied) {
        if let (Some(record), Some(gate)) = (&applied.record, &applied.gate) {
            self.origins.or_default(record.origin.clone()).gate = gate.clone();
            // What waited behind it may go.
            self.look |= self.open && gate.is_none();
        }
    }

    /// Takes note of what became of other rows.
    fn note_others(&mut self, applied: &Applied) {
        for record in &applied.also {
            self.update(record);
            if record.state.is_settled() {
                self.settled(record.clone(), None);
            } else {
                self.waiting(record);
            }
        }
    }

    /// Gives the first of a lane its deadline, among those that live in this page's memory.
    fn promote(&mut self, vacated: Option<Vacated>, env: &Env) {
        let Some(vacated) = vacated else { return };
        let first = self
            .memory()
            .filter(|record| record.lane_seq.is_some() && record.owner == vacated.owner)
            .filter(|record| record.lane.as_ref() == Some(&vacated.lane))
            .min_by_key(|record| record.lane_seq)
            .cloned();
        if let Some(first) = first.and_then(|first| lane::promote(first, &vacated, env.wall)) {
            self.update(&first);
            self.waiting(&first);
        }
    }

    fn note_sign_in(&mut self, applied: &Applied) {
        if let (Some(record), Some(closed)) = (&applied.record, applied.sign_in) {
            let origin = self.origins.or_default(record.origin.clone());
            self.look |= self.open && origin.signed_out && !closed;
            origin.signed_out = closed;
            origin.tried = closed;
        }
    }

    fn store_committed(&mut self, new: &Record, applied: &Applied, env: &mut Env) {
        let key = new.key.clone();
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let phase = live.phase;
        if !applied.accepted {
            self.look |= self.backlog;
            self.live.remove(&key);
            if let Some(record) = &applied.record {
                self.note_due(record);
            }
            return self.known(new, applied);
        }
        if let Some(record) = &applied.record {
            live.record = record.clone();
        }
        self.report(Report::Stored(key.clone(), true));
        if let Phase::Storing(asked) = phase {
            self.begin(key, asked, env);
        }
    }

    fn claim_committed(&mut self, key: &Key, applied: &Applied, env: &mut Env) {
        let Some(live) = self.live.get_mut(key) else {
            return;
        };
        let Phase::Claiming(asked) = live.phase else {
            // Cancelled meanwhile: that transaction is behind this one, and has the last word.
            return;
        };
        let Some(record) = &applied.record else {
            self.look |= self.backlog;
            return self.gone(key.clone(), env);
        };
        let told = live.record.state.is_settled();
        live.record = record.clone();
        if applied.accepted {
            return self.begin(key.clone(), asked, env);
        }
        self.look |= self.backlog;
        live.phase = Phase::Idle;
        if applied.settled || record.state.is_settled() && live.ours && !told {
            self.settled(record.clone(), None);
        } else if record.state.is_settled() && told {
            // It stays, since this page alone can send it, and was found as it had been before.
        } else if record.state.is_settled() {
            // It ended elsewhere, or was found before it ended here.
            self.live.remove(key);
        } else {
            // Somebody else has it, and its deadline is all that tells when they are gone.
            self.note_due(record);
        }
    }

    fn deny_committed(&mut self, key: &Key, applied: &Applied) {
        self.look |= self.backlog;
        if let Some(live) = self.live.get_mut(key) {
            live.phase = Phase::Idle;
        }
        if let Some(record) = applied.record.as_ref().filter(|_| applied.accepted) {
            self.update(record);
            self.waiting(record);
        }
    }

    /// The row is gone: somebody gave it up elsewhere. An answer that this page has is a fact all the same.
    fn gone(&mut self, key: Key, env: &mut Env) {
        let Some(mut live) = self.live.remove(&key) else {
            return;
        };
        if live.ours {
            Rc::make_mut(&mut live.record).cancel(env.wall);
            self.settled(live.record, None);
            self.report(Report::Removed(key));
        }
    }

    fn settle_committed(
        &mut self,
        op: &Op,
        key: &Key,
        fence: u64,
        applied: &Applied,
        env: &mut Env,
    ) {
        let mut ours = false;
        if let Some(live) = self.live.get_mut(key) {
            if live.phase == Phase::Settling(fence) {
                live.phase = Phase::Idle;
                ours = !live.record.state.is_settled();
            }
        }
        self.look |= self.backlog;
        let Some(record) = &applied.record else {
            if let Some(live) = self.live.get_mut(key).filter(|_| ours) {
                let applied = op.apply(Some(live.record.clone()), env);
                match applied.record.filter(|_| applied.settled) {
                    Some(record) => live.record = record,
                    None => return self.gone(key.clone(), env),
                }
                let record = live.record.clone();
                self.settled(record, Some(fence));
            }
            return;
        };
        self.update(record);
        if applied.settled || ours && record.state.is_settled() {
            self.settled(record.clone(), applied.accepted.then_some(fence));
        } else if applied.accepted && record.state == State::Pending {
            self.waiting(record);
        }
    }

    fn end_committed(&mut self, op: &Op, applied: &Applied) {
        let key = op.key();
        self.look |= self.backlog;
        // The key may have been submitted anew since: that is behind this transaction.
        let current = !self.is_storing(key);
        if let Some(live) = self.live.get_mut(key).filter(|_| current) {
            live.phase = Phase::Idle;
        }
        if let Some(record) = applied.record.as_ref().filter(|_| current) {
            self.update(record);
            if applied.settled {
                self.settled(record.clone(), None);
            }
        }
        if matches!(op, Op::Discard(_)) && applied.accepted {
            if current {
                self.live.remove(key);
            }
            self.report(Report::Removed(key.clone()));
        }
    }

    fn retry_committed(&mut self, key: &Key, applied: &Applied) {
        let Some(record) = applied.record.as_ref().filter(|_| applied.accepted) else {
            return;
        };
        let renewed = record.key != *key;
        if let Some(mut live) = self.live.remove(key) {
            live.record = record.clone();
            live.ours = true;
            if renewed {
                // (Under the same key, what was begun meanwhile goes on: above all giving it up.)
                live.phase = Phase::Idle;
            }
            self.live.insert(record.key.clone(), live);
        }
        if renewed {
            self.emit(Effect::Renew(
                key.clone(),
                record.key.clone(),
                record.created_at,
            ));
            self.report(Report::Removed(key.clone()));
        }
        self.waiting(record);
        self.signed_in();
    }

    fn update(&mut self, record: &Rc<Record>) {
        if let Some(live) = self.live.get_mut(&record.key) {
            live.record = record.clone();
        }
    }

    fn note_due(&mut self, record: &Record) {
        if let Some(due) = record.next_attempt_at {
            if !self.in_memory(&record.key) {
                let now = self.clocks.map_or(due, |clocks| clocks.wall);
                self.due_at(self.opens(&record.origin, due, now));
            }
        }
    }

    fn due_at(&mut self, due: Wall) {
        self.next_due = Some(self.next_due.map_or(due, |least| least.min(due)));
    }

    fn waiting(&mut self, record: &Rc<Record>) {
        self.note_due(record);
        self.report(Report::Waiting(record.clone()));
    }

    fn settled(&mut self, record: Rc<Record>, fence: Option<u64>) {
        // What this page alone can send stays with it for as long as a person may retry it.
        let kept = !record.needs.is_empty() && !record.state.is_over();
        if !self.in_memory(&record.key) && !kept {
            self.live.remove(&record.key);
        }
        self.report(Report::Settled(record, fence));
    }

    fn failed(&mut self, ticket: Ticket, op: Op, env: &mut Env) {
        let key = op.key().clone();
        if let Some(at) = self.written_late(ticket) {
            self.unwritten[at].ticket = None;
            return;
        }
        match &op {
            Op::Store(_) => match self.live.get_mut(&key) {
                Some(Live {
                    phase: Phase::Storing(asked),
                    ..
                }) => {
                    let asked = *asked;
                    self.degrade(key, asked, env);
                }
                Some(live) => {
                    // Given up meanwhile: that transaction is behind this one, and ends it here.
                    live.place = Place::Memory;
                    self.report(Report::Stored(key, false));
                }
                None => {}
            },
            Op::Claim(_) | Op::Deny { .. } => {
                if let Some(live) = self.live.get_mut(&key) {
                    if let Phase::Claiming(_) = live.phase {
                        live.phase = Phase::Idle;
                    }
                }
                self.try_later(env);
            }
            Op::Cancel(_) | Op::Discard(_) if self.in_memory(&key) => {
                self.end_in_memory(ticket, op, env);
            }
            Op::Settle(_, fence, _) => {
                // The answer is a fact whether or not it can be written: it is told now and written later.
                let mut settled = None;
                if let Some(live) = self.live.get(&key) {
                    let row = Some(live.record.clone());
                    let applied = op.run(row, self.beside(&op), env);
                    self.note_sign_in(&applied);
                    self.settle_committed(&op, &key, *fence, &applied, env);
                    settled = applied.record.filter(|_| applied.settled);
                }
                self.unwritten.push(Unwritten {
                    op,
                    ticket: None,
                    settled,
                });
            }
            _ if ticket.is_multiple_of(2) => {
                self.emit(Effect::Reply(ticket, Err(unanswered())));
                self.look |= self.open;
                let live = self.live.get(&key);
                let gives_up = matches!(op, Op::Cancel(_) | Op::Discard(_));
                if gives_up && live.is_some_and(|live| matches!(live.phase, Phase::Ending(_))) {
                    // Who gave it up has been told that nothing more is sent: it is tried again until it is done.
                    self.unwritten.push(Unwritten {
                        op,
                        ticket: None,
                        settled: None,
                    });
                }
            }
            _ => self.try_later(env),
        }
    }

    /// Whether the store has yet to hear of that intent.
    fn is_unwritten(&self, key: &Key) -> bool {
        self.unwritten.iter().any(|late| late.op.key() == key)
    }

    /// Where the late transaction of that ticket is, if it is one.
    fn written_late(&self, ticket: Ticket) -> Option<usize> {
        self.unwritten
            .iter()
            .position(|late| late.ticket == Some(ticket))
    }

    fn try_later(&mut self, env: &Env) {
        let later = env.wall.saturating_add(RECHECK);
        self.next_due = Some(self.next_due.map_or(later, |least| least.max(later)));
    }

    fn rewrite(&mut self) {
        for at in 0..self.unwritten.len() {
            if self.unwritten[at].ticket.is_none() {
                let ticket = self.ticket();
                self.unwritten[at].ticket = Some(ticket);
                self.emit(Effect::Transact(ticket, self.unwritten[at].op.clone()));
            }
        }
    }

    // Owners

    fn turn(&mut self, current: &Owner, env: &mut Env) {
        self.away = *current != self.owner;
        if self.away {
            self.abandon(env);
        } else {
            self.signed_in();
        }
    }

    /// The store says so.
    fn another_is_current(&mut self, env: &mut Env) {
        if !self.away {
            self.away = true;
            self.abandon(env);
            self.emit(Effect::ChangeOver);
        }
    }

    /// Ends the attempts that are on their way, and those that wait for credentials: they may be the next one's. What they
    /// were for goes on when its owner returns.
    fn abandon(&mut self, env: &mut Env) {
        for live in self.live.values_mut() {
            if let Phase::Authorizing(_) = live.phase {
                live.phase = Phase::Idle;
            }
        }
        for (key, fence) in self.abort_all(Phase::Settling) {
            self.transact(Op::Settle(key, fence, Rc::new(Answer::Abandoned)), env);
        }
    }

    /// Aborts the attempts that are on their way. `then`: the phase that each is in afterwards.
    fn abort_all(&mut self, then: impl Fn(u64) -> Phase) -> Vec<(Key, u64)> {
        let mut aborted = Vec::new();
        for live in self.live.values_mut() {
            if let Phase::Sending(Attempt { fence, .. }) = live.phase {
                live.phase = then(fence);
                aborted.push((live.record.key.clone(), fence));
            }
        }
        for (key, fence) in &aborted {
            self.emit(Effect::Abort(key.clone(), *fence));
        }
        aborted
    }

    fn clear(&mut self, ticket: Ticket) {
        self.abort_all(|fence| Phase::Ending(Some(fence)));
        for live in self.live.values_mut() {
            live.doomed = true;
            // A finished answer wins: its transaction is before this one.
            if !matches!(live.phase, Phase::Settling(_) | Phase::Ending(_)) {
                live.phase = Phase::Ending(None);
            }
        }
        self.emit(Effect::Clear(ticket));
    }

    fn cleared(&mut self, ticket: Ticket, followed: Vec<Rc<Record>>, env: &mut Env) {
        let doomed = self.live.values().filter(|live| live.doomed);
        let mut gone: Vec<Rc<Record>> = doomed.map(|live| live.record.clone()).collect();
        self.live.retain(|live| !live.doomed);
        for record in followed {
            if !self.live.contains_key(&record.key) && gone.iter().all(|row| row.key != record.key)
            {
                gone.push(record);
            }
        }
        self.unwritten.clear();
        for mut record in gone {
            let key = record.key.clone();
            if !record.state.is_settled() {
                Rc::make_mut(&mut record).clear(env.wall);
                self.report(Report::Settled(record, None));
            }
            self.report(Report::Removed(key));
        }
        self.report(Report::Cleared);
        self.emit(Effect::Reply(ticket, Ok(Box::default())));
    }

    /// Nothing is known to be deleted: it goes on.
    fn not_cleared(&mut self, ticket: Ticket) {
        for live in self.live.values_mut().filter(|live| live.doomed) {
            live.doomed = false;
            if let Phase::Ending(_) = live.phase {
                live.phase = Phase::Idle;
            }
        }
        self.look = true;
        self.emit(Effect::Reply(ticket, Err(unanswered())));
    }

    // Due work

    fn reconnect(&mut self, env: &mut Env) {
        if self.away {
            return;
        }
        let here: Vec<Key> = self.memory().map(|record| record.key.clone()).collect();
        for key in here {
            self.transact(Op::BringForward(key), env);
        }
        if self.open {
            self.emit(Effect::BringForward);
        }
    }

    /// Takes what is due, wherever it lies, as far as there are slots.
    fn pump(&mut self, env: &mut Env) {
        if self.leaving || self.away {
            return;
        }
        let due: Vec<Key> = self
            .own()
            .map(|live| &live.record)
            .filter(|record| {
                // What a clock ahead of its time scheduled is not waited for: the claim mends it.
                record
                    .next_attempt_at
                    .is_some_and(|due| due <= env.wall || record.is_from_the_future(env.wall))
            })
            .map(|record| record.key.clone())
            .collect();
        for key in due {
            self.claim(key, env);
        }
        self.look |= self.next_due.is_some_and(|due| due <= env.wall) && !self.backlog;
        if self.look && self.open && !self.querying {
            self.look = false;
            self.querying = true;
            self.emit(Effect::Query);
        }
    }

    fn claim(&mut self, key: Key, env: &mut Env) {
        let Some(live) = self.live.get(&key) else {
            return;
        };
        if live.phase != Phase::Idle || live.doomed || self.leaving || self.away {
            return;
        }
        if live.record.limit_met(env.wall).is_none() {
            if let Some(gate) = self.gate(&live.record.origin) {
                let passes = gate.lets_pass(env.wall);
                if !passes || self.busy(&live.record.origin) > 0 {
                    // Looked for again when the gate lets the next one pass, or when what is on its way has ended.
                    self.backlog |= passes;
                    return;
                }
            }
            let origin = self.origins.get(&live.record.origin);
            if let Some(origin) = origin.filter(|origin| origin.signed_out) {
                if origin.tried {
                    return self.wait_for_sign_in(key, env);
                }
                if self.busy(&live.record.origin) > 0 {
                    self.backlog = true;
                    return;
                }
            }
        }
        if !self.free_slot(&live.record.origin) {
            self.backlog = true;
            return;
        }
        if !is_authorized(&live.record, live.authorized)
            && live.record.limit_met(env.wall).is_none()
        {
            return self.authorize(key, env);
        }
        if let Some(live) = self.live.get_mut(&key) {
            live.phase = Phase::Claiming(env.clocks());
        }
        self.transact(Op::Claim(key), env);
    }

    // Credentials

    /// Behind the closed gate. Another page may hear first that the person has signed in.
    fn wait_for_sign_in(&mut self, key: Key, env: &mut Env) {
        self.due_at(env.wall.saturating_add(RECHECK));
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if live.record.reason != Some(Reason::Unauthorized) {
            // That it waits for the person is to be seen.
            live.phase = Phase::Claiming(env.clocks());
            self.transact(Op::Deny { key, closes: false }, env);
        }
    }

    /// Asks the application for credentials. One refresh of an origin runs at a time: the others go by what it brings.
    fn authorize(&mut self, key: Key, env: &mut Env) {
        let Some(live) = self.live.get(&key) else {
            return;
        };
        let since = |failed: Option<Clocks>| failed.map(|at| env.clocks().longest_since(at));
        for (failed, pause) in [(live.failed, RECHECK), (self.hook_failed, FAILED)] {
            if since(failed).is_some_and(|passed| passed < pause) {
                return self.due_at(env.wall.saturating_add(pause));
            }
        }
        let (record, origin) = (live.record.clone(), &live.record.origin);
        let refused_at = record.evidence.as_ref().map_or(0, |evidence| evidence.at);
        let refreshed = self.origins.get(origin).and_then(|origin| origin.refreshed);
        let why = if record.refused_credentials > 0 && refreshed.is_none_or(|at| at <= refused_at) {
            Why::Unauthorized
        } else {
            Why::First
        };
        let refreshing = self.live.values().any(|other| {
            other.phase == Phase::Authorizing(Why::Unauthorized) && other.record.origin == *origin
        });
        if refreshing {
            self.backlog = true;
            return;
        }
        if let Some(live) = self.live.get_mut(&key) {
            live.phase = Phase::Authorizing(why);
        }
        self.emit(Effect::Authorize(record, why));
    }

    fn authorized(&mut self, key: Key, credentials: Credentials, env: &mut Env) {
        self.look |= self.backlog;
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let Phase::Authorizing(why) = live.phase else {
            return;
        };
        live.phase = Phase::Idle;
        match credentials {
            Credentials::Granted => {
                live.authorized = Some(live.record.refused_credentials);
                if why == Why::Unauthorized {
                    let origin = self.origins.or_default(live.record.origin.clone());
                    origin.refreshed = Some(env.wall);
                }
                self.claim(key, env);
            }
            Credentials::NotNow => {
                live.phase = Phase::Claiming(env.clocks());
                self.transact(Op::Deny { key, closes: true }, env);
            }
            Credentials::Failed => {
                live.failed = Some(env.clocks());
                self.hook_failed = live.failed;
                self.due_at(env.wall.saturating_add(FAILED));
            }
        }
    }

    /// What made `authorize` fail may be over.
    fn ask_again(&mut self) {
        self.hook_failed = None;
        for live in self.live.values_mut() {
            live.failed = None;
        }
    }

    /// There is reason to believe that the person has signed in.
    fn signed_in(&mut self) {
        for origin in self.origins.values_mut() {
            origin.tried = false;
        }
        self.ask_again();
        self.look = true;
    }

    fn queried(&mut self, found: Due, env: &mut Env) {
        self.querying = false;
        self.backlog = false;
        self.next_due = None;
        for origin in self.origins.values_mut() {
            origin.gate = None;
            origin.signed_out = false;
        }
        for gate in found.gates {
            let id = gate.id.clone();
            self.origins.or_default(id).gate = Some(gate);
        }
        for origin in found.signed_out {
            self.origins.or_default(origin).signed_out = true;
        }
        if found.owner.is_some_and(|current| current != self.owner) {
            return self.another_is_current(env);
        }
        for line in found.lines {
            for record in [&line.next, &line.last].into_iter().flatten() {
                if record.is_from_the_future(env.wall) {
                    self.transact(Op::Reanchor(record.key.clone()), env);
                }
            }
            if let Some(next) = line.next.filter(|next| self.supplies.suffice(next)) {
                self.note_due(&next);
            }
            for record in line.due {
                let due = record.next_attempt_at.unwrap_or(env.wall);
                let opens = self.opens(&record.origin, due, env.wall);
                if opens > env.wall && self.supplies.suffice(&record) {
                    self.due_at(opens);
                }
                self.found_due(record, env);
            }
        }
    }

    fn found_due(&mut self, record: Rc<Record>, env: &mut Env) {
        let key = record.key.clone();
        if self.is_unwritten(&key) {
            // The store has yet to hear how that attempt ended.
            return;
        }
        match self.live.get(&key) {
            Some(live) if live.place == Place::Memory => return,
            Some(_) => {}
            // (One that has come to its end is parked without an attempt.)
            None if !self.supplies.suffice(&record) && record.limit_met(env.wall).is_none() => {
                return
            }
            None => {
                let live = Live {
                    authorized: None,
                    record,
                    place: Place::Disk,
                    phase: Phase::Idle,
                    ours: false,
                    failed: None,
                    doomed: false,
                };
                self.live.insert(key.clone(), live);
            }
        }
        self.claim(key, env);
    }
}

/// Whether a page has what the server may take: for an intent that gets its credentials from a hook, those that are younger
/// than the last refusal; otherwise what it was submitted with.
fn is_authorized(record: &Record, authorized: Option<u32>) -> bool {
    if record.asks_authorize() {
        authorized.is_some_and(|refusals| refusals >= record.refused_credentials)
    } else {
        record.left_out.is_empty() || authorized.is_some()
    }
}

fn unanswered() -> Error {
    Error::new(
        Code::StorageFailed,
        "the browser's storage failed or did not answer: it may be done yet",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Head, Policy, Random, RequestHead};

    fn at(ms: Millis) -> Env {
        Env {
            wall: 1_000_000 + ms,
            mono: ms,
            random: Random::new(ms),
        }
    }

    /// The timer is set a moment after the queue looked. A wait that ended in that moment was once taken for work that
    /// had to be left, and put off by half a minute.
    #[test]
    fn what_became_due_since_the_last_look_is_due_now() {
        let key = Key::from_random([1; 16]);
        let policy = Policy {
            delays_ms: vec![1],
            jitter: crate::engine::Jitter::None,
            ..Policy::patient()
        };
        let record = Record::new("a", key.clone(), RequestHead::default(), policy, 1_000_000);
        let mut queue = Queue::default();
        let record = Rc::new(record);
        queue.handle(
            Event::Submit {
                record,
                durable: false,
            },
            &mut at(0),
        );
        let busy = Answer::Response(Head {
            status: 503,
            ..Head::default()
        });
        queue.handle(Event::Answered(key, 1, Box::new(busy)), &mut at(10));
        assert_eq!(queue.next_deadline(at(10).clocks()), Some(1));
        assert_eq!(queue.next_deadline(at(15).clocks()), Some(0));
        while queue.poll_effect().is_some() {}
        queue.handle(Event::Tick, &mut at(15));
        let sent = std::iter::from_fn(|| queue.poll_effect())
            .any(|effect| matches!(effect, Effect::Send(_)));
        assert!(sent);
    }
}
