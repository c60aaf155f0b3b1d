//! A simulated world: a clock that may jump, a store, a network, a server, and a page that runs a [`Queue`] and may die
//! after any of its effects. Nothing sleeps; time passes from happening to happening.
//!
//! What must hold is asserted where it happens, under the names of the invariants.

use super::{head, named, status, Json};
use resubmit::engine::gate::Gate;
use resubmit::engine::queue::{Due, RECHECK};
use resubmit::engine::record::Unreadable;
use resubmit::engine::transition::{GRACE, OFFLINE_PROBE};
use resubmit::engine::verdict::Ruling;
use resubmit::engine::{
    Answer, Applied, Beside, Clocks, Credentials, Effect, Env, Event, Failure, Head, Key, Millis,
    OnMaybeDelivered, OnParked, Op, Owner, Policy, Queue, Random, Reason, Record, Report, State,
    Supplies, Wall, Write,
};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

pub const NO_SEND_BEFORE_COMMIT: &str =
    "invariant 1: no send before its row is committed or memory mode was announced";
pub const ONE_KEY_ONE_BODY: &str =
    "invariant 2: one key per intent for life, never the same key with other bytes";
pub const REMOVED_ONLY_AFTER_ITS_END: &str =
    "invariant 3: a row is removed only after a final outcome was recorded";
pub const ONE_IN_FLIGHT: &str = "invariant 4: at most one attempt in flight per intent and fence";
pub const OLD_FENCE: &str =
    "invariant 4: a late answer with an old fence changes nothing, except that a delivery is recorded";
pub const SETTLES_ONCE: &str = "invariant 5: every intent settles exactly once";
pub const ABORT_WINS: &str = "invariant 5: abort wins over a retry";
pub const FINISHED_WINS: &str = "invariant 5: abort loses to a finished answer";
pub const FLOOR: &str = "invariant 6: the delay is never below the server's floor";
pub const CAP: &str =
    "invariant 6: the delay is never above the larger of cap and floor plus jitter";
pub const NO_STORM: &str = "invariant 7: a clock that jumps never starts a storm";
pub const NO_LONG_DELAY: &str =
    "invariant 7: a clock that jumps delays an intent by no more than the cap";
pub const RECONNECT: &str = "invariant 8: reconnecting never undercuts a server's floor";
pub const FOREIGN: &str = "invariant 9: rows of an unknown version are kept and reported";
pub const SETTLES: &str = "every durable intent settles in the end";
pub const NOT_LOST: &str = "what was stored is not lost";
pub const IN_ORDER: &str = "the head of a lane alone is due";
pub const SUPERSEDED: &str = "a newer one replaces only what was never sent, or is parked";
pub const ONE_ORDER: &str = "one order per delivered intent at a server that knows the key";
pub const NEVER_TWO: &str = "never two orders for one intent without mayRepeat";
pub const ABORTED_NEVER_SENT: &str = "aborted before it was sent: never sent";
pub const NO_BUSY_LOOP: &str = "no busy loop: a deadline of zero is followed by progress";
pub const OWN_TURN: &str = "nothing is claimed or sent in another's session";
pub const DETERMINISM: &str = "the same events give the same effects";

/// How long the shell waits for the store before it says that it failed.
const STORE_TIMEOUT: Millis = 10_000;

/// What the server does to one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Nothing: it answers as it should.
    None,
    /// The request never arrives.
    DropBefore,
    /// The server acts, and the answer is lost.
    DropAfter,
    /// It does not act, and answers so.
    Status(u16, Option<u32>),
    /// It acts, and a gateway answers so.
    ActsThen(u16),
    /// It stores a failure under the key.
    StoresFailure,
    /// It acts after so many milliseconds.
    Slow(u32),
    /// It acts and never answers.
    Silent,
    /// The browser sent the request twice, and hears what the second came to.
    Twin,
    /// A redirect to the sign-in page.
    SignIn,
    /// It acts and says so, and the application's hooks say this of it.
    Judged(Ruling),
}

/// What the store does to transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoreFault {
    Fails,
    /// Each takes so many milliseconds.
    Slow(u32),
}

/// One thing that happens to the world from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Submit {
        durable: bool,
    },
    /// A submission that keeps its order with others of its lane.
    Laned {
        lane: u8,
        skips: bool,
        coalesces: bool,
        durable: bool,
    },
    /// A submission whose credentials come from the application's hook.
    Asking,
    /// The person has signed in.
    SignIn,
    /// Another is the current owner, or this page's is again; the page hears it or has to find it.
    Owner {
        theirs: bool,
        heard: bool,
    },
    /// What was kept for long enough is forgotten.
    Sweep,
    /// The same submission under the same key.
    Again(usize),
    Wait(u32),
    Network {
        on: bool,
        heard: bool,
    },
    Fault(Fault),
    Store(StoreFault, u8),
    Crash,
    /// The page dies after so many more effects.
    CrashAfter(u8),
    Open,
    Leave,
    Return,
    Look,
    Cancel(usize),
    Discard(usize),
    Retry(usize),
    Forget(usize),
    /// The wall clock is set by so many milliseconds.
    Jump(i64),
    /// The machine sleeps: the monotonic clock stands still.
    Sleep(u32),
}

/// How the world is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub seed: u64,
    pub policy: Policy,
    /// Whether the server knows the key.
    pub server_knows_key: bool,
}

enum Happening {
    Commit(u32, u64, Op, bool),
    /// Committed after the page gave up on it.
    CommitLate(u32, Op, bool),
    Query(u32, bool),
    BringForward(u32),
    Tell(u32, Event),
    Arrive(u32, Key, String, Fault),
    Acts(Key),
    Answer(u32, Key, u64, Answer),
}

#[derive(Default)]
struct Server {
    script: VecDeque<Fault>,
    /// By key: the status that was stored.
    stored: BTreeMap<Key, u16>,
    running: BTreeSet<Key>,
    orders: BTreeMap<Key, u32>,
    bodies: BTreeMap<Key, String>,
    /// By arrival, not yet answered.
    answers: BTreeMap<Key, Answer>,
}

struct InFlight {
    since: u64,
    offline_before: bool,
}

struct Page {
    id: u32,
    started_offline: bool,
    queue: Queue,
    bodies: BTreeMap<Key, String>,
    in_flight: BTreeMap<(Key, u64), InFlight>,
    /// Keys of which it was said that they are in memory alone.
    announced: BTreeSet<Key>,
    settled: BTreeMap<Key, State>,
    history: Vec<(Env, Event, Vec<Effect>)>,
    /// The true time of the next tick.
    tick_at: Option<u64>,
    ticks_at_once: (u64, u32),
    /// A cancel or discard runs for these.
    ending: BTreeSet<Key>,
}

/// The world.
pub struct World {
    setting: Setting,
    random: Random,
    /// The true time that passed.
    now: u64,
    skew: i64,
    slept: u64,
    agenda: BTreeMap<(u64, u64), Happening>,
    sequence: u64,
    rows: BTreeMap<Key, Value>,
    stored_bodies: BTreeMap<Key, String>,
    claims: BTreeSet<(Key, u64)>,
    last_commit: u64,
    last_told: u64,
    store_faults: VecDeque<StoreFault>,
    server: Server,
    network: bool,
    browser_says_online: bool,
    page: Option<Page>,
    pages: u32,
    crash_after: Option<u32>,
    effects: u32,
    tickets: u64,
    asked: BTreeMap<u64, Op>,
    /// Every key, in the order of submission, and the intent that it belongs to.
    keys: Vec<Key>,
    root: BTreeMap<Key, Key>,
    bodies: BTreeMap<Key, String>,
    /// Reported as on the disk.
    promised: BTreeSet<Key>,
    /// Removed on demand.
    removed: BTreeSet<Key>,
    cancelled: BTreeSet<Key>,
    /// Said to be in a page's memory alone.
    unsaved: BTreeSet<Key>,
    /// Write-aheads that were committed after the page had given up on them.
    committed_late: BTreeSet<Key>,
    sent: BTreeMap<Key, Vec<u64>>,
    delivered: BTreeSet<Key>,
    /// When something happened that may bring attempts forward.
    nudges: Vec<u64>,
    unreadable: u32,
    /// The closed gates, as they are stored.
    gates: BTreeMap<String, Gate>,
    /// The origins at which the owner has to sign in, as they are stored.
    signed_out: BTreeSet<String>,
    /// The current owner, as it is stored.
    owner: Owner,
    /// Everything works from now on.
    healed: bool,
}

fn foreign() -> Key {
    super::key("of-a-newer-build")
}

fn foreign_row() -> Value {
    json!({ "v": 2, "owner": "anonymous", "key": "of-a-newer-build", "nextAttemptAt": 1, "new": ["?"] })
}

impl World {
    pub fn new(setting: Setting) -> Self {
        let mut world = World {
            random: Random::new(setting.seed),
            setting,
            now: 0,
            skew: 0,
            slept: 0,
            agenda: BTreeMap::new(),
            sequence: 0,
            rows: BTreeMap::new(),
            stored_bodies: BTreeMap::new(),
            claims: BTreeSet::new(),
            last_commit: 0,
            last_told: 0,
            store_faults: VecDeque::new(),
            server: Server::default(),
            network: true,
            browser_says_online: true,
            page: None,
            pages: 0,
            crash_after: None,
            effects: 0,
            tickets: 0,
            asked: BTreeMap::new(),
            keys: Vec::new(),
            root: BTreeMap::new(),
            bodies: BTreeMap::new(),
            promised: BTreeSet::new(),
            removed: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            committed_late: BTreeSet::new(),
            sent: BTreeMap::new(),
            delivered: BTreeSet::new(),
            nudges: Vec::new(),
            unreadable: 0,
            gates: BTreeMap::new(),
            signed_out: BTreeSet::new(),
            owner: ours(),
            healed: false,
        };
        world.rows.insert(foreign(), foreign_row());
        world.open();
        world
    }

    /// Runs a whole schedule: the steps, then a healthy world until everything is settled.
    pub fn run(setting: Setting, steps: &[Step]) -> World {
        let mut world = World::new(setting);
        for step in steps {
            world.step(step);
        }
        world.heal();
        world
    }

    /// Runs it with the page dying after effect `n` (counted from 0) of the whole run.
    pub fn run_with_crash(setting: Setting, steps: &[Step], n: u32) -> World {
        let mut world = World::new(setting);
        world.crash_after = Some(n);
        for step in steps {
            world.step(step);
        }
        world.heal();
        world
    }

    /// How many effects were run.
    pub fn effects(&self) -> u32 {
        self.effects
    }

    /// How many orders the server made, over all intents.
    pub fn orders(&self) -> u32 {
        self.server.orders.values().sum()
    }

    /// How many attempts were sent.
    pub fn sends(&self) -> usize {
        self.sent.values().map(Vec::len).sum()
    }

    /// The rows, as this build reads them.
    pub fn stored(&self) -> Vec<Record> {
        self.rows
            .values()
            .filter_map(|row| read(row).ok())
            .collect()
    }

    // Time

    fn wall(&self) -> Wall {
        (super::NOW + self.now).saturating_add_signed(self.skew)
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            wall: self.wall(),
            mono: self.now - self.slept,
        }
    }

    fn env(&mut self) -> Env {
        let clocks = self.clocks();
        Env {
            wall: clocks.wall,
            mono: clocks.mono,
            random: Random::new(self.random.up_to(u64::MAX - 1)),
        }
    }

    fn draw(&mut self, from: u64, to: u64) -> u64 {
        from + self.random.up_to(to - from)
    }

    fn coin(&mut self) -> bool {
        self.random.up_to(1) == 1
    }

    fn after(&mut self, ms: Millis, happening: Happening) {
        self.at(self.now + ms, happening);
    }

    fn at(&mut self, time: u64, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((time, self.sequence), happening);
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: Millis) {
        let until = self.now + ms;
        while self.happen(until) {}
        self.now = until;
    }

    /// The next thing that happens before `until`.
    fn happen(&mut self, until: u64) -> bool {
        let next = self.agenda.keys().next().copied();
        let tick = self.page.as_ref().and_then(|page| page.tick_at);
        match (next, tick) {
            (Some((time, sequence)), tick) if time <= tick.unwrap_or(time).min(until) => {
                self.now = self.now.max(time);
                if let Some(happening) = self.agenda.remove(&(time, sequence)) {
                    self.happened(happening);
                }
                true
            }
            (_, Some(tick)) if tick <= until => {
                self.now = self.now.max(tick);
                if let Some(page) = &mut self.page {
                    if page.ticks_at_once.0 == self.now {
                        page.ticks_at_once.1 += 1;
                    } else {
                        page.ticks_at_once = (self.now, 0);
                    }
                    assert!(page.ticks_at_once.1 < 4, "{NO_BUSY_LOOP}");
                }
                self.tell(Event::Tick);
                true
            }
            _ => false,
        }
    }

    // The page

    fn open(&mut self) {
        if self.page.is_some() {
            return;
        }
        self.pages += 1;
        self.page = Some(Page {
            id: self.pages,
            started_offline: !self.browser_says_online,
            queue: Queue::new(!self.browser_says_online, supplies()),
            bodies: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            announced: BTreeSet::new(),
            settled: BTreeMap::new(),
            history: Vec::new(),
            tick_at: None,
            ticks_at_once: (0, 0),
            ending: BTreeSet::new(),
        });
        let ms = self.draw(0, 30);
        self.after(ms, Happening::Tell(self.pages, Event::Opened));
        let turn = Event::Turn(self.owner.clone());
        self.after(ms, Happening::Tell(self.pages, turn));
    }

    fn crash(&mut self) {
        self.crash_after = None;
        let Some(page) = self.page.take() else {
            return;
        };
        // A list of events with their surroundings is a test: played again, it gives the same effects.
        let mut again = Queue::new(page.started_offline, supplies());
        for (env, event, effects) in page.history {
            again.handle(event, &mut env.clone());
            let drained: Vec<Effect> = std::iter::from_fn(|| again.poll_effect()).collect();
            assert_eq!(drained, effects, "{DETERMINISM}");
        }
    }

    /// Tells the page what happened, and runs the effects.
    fn tell(&mut self, event: Event) {
        let env = self.env();
        let Some(page) = &mut self.page else {
            return;
        };
        let id = page.id;
        if let Event::Asked(_, Op::Cancel(key) | Op::Discard(key)) = &event {
            page.ending.insert(key.clone());
        }
        page.queue.handle(event.clone(), &mut env.clone());
        let effects: Vec<Effect> = std::iter::from_fn(|| page.queue.poll_effect()).collect();
        page.history.push((env, event, effects.clone()));
        for effect in effects {
            self.effect(effect);
            self.effects += 1;
            if let Some(left) = &mut self.crash_after {
                if *left == 0 {
                    return self.crash();
                }
                *left -= 1;
            }
            if self.page.as_ref().is_none_or(|page| page.id != id) {
                return;
            }
        }
        let (now, clocks) = (self.now, self.clocks());
        if let Some(page) = &mut self.page {
            page.tick_at = page.queue.next_deadline(clocks).map(|ms| {
                assert!(
                    ms <= RECHECK.max(40_000),
                    "a deadline beyond the net under it"
                );
                now + ms
            });
        }
    }

    fn effect(&mut self, effect: Effect) {
        let Some(page) = &mut self.page else {
            return;
        };
        let id = page.id;
        match effect {
            Effect::Transact(ticket, op) => {
                let (at, fails) = self.store_time();
                if at > self.now + STORE_TIMEOUT {
                    // Silent: the page gives up on it, and it is committed all the same.
                    let failed = Event::Failed(ticket, op.clone());
                    self.after(STORE_TIMEOUT, Happening::Tell(id, failed));
                    self.at(at, Happening::CommitLate(id, op, fails));
                } else {
                    self.at(at, Happening::Commit(id, ticket, op, fails));
                }
            }
            Effect::Query => {
                let (at, fails) = self.store_time();
                let silent = at > self.now + STORE_TIMEOUT;
                let at = at.min(self.now + STORE_TIMEOUT);
                self.at(at, Happening::Query(id, fails || silent));
            }
            Effect::BringForward => {
                let (at, _) = self.store_time();
                self.at(at, Happening::BringForward(id));
            }
            Effect::Send(record) => {
                assert!(!page.queue.is_away(), "{OWN_TURN}");
                self.send((*record).clone());
            }
            Effect::Abort(key, fence) => {
                let flight = page.in_flight.remove(&(key.clone(), fence));
                let elapsed = flight.map_or(0, |flight| self.now - flight.since);
                // An answer that came just before may still be told.
                if self.coin() {
                    let failure = Answer::Failure(Failure {
                        elapsed,
                        ..Failure::default()
                    });
                    let told = Event::Answered(key, fence, Box::new(failure));
                    self.after(1, Happening::Tell(id, told));
                } else if let Some(answer) = self.server.answers.get(&key).cloned() {
                    let told = Event::Answered(key, fence, Box::new(answer));
                    self.after(0, Happening::Tell(id, told));
                }
            }
            Effect::Authorize(record, _) => {
                let (credentials, ms) = match self.draw(0, 9) {
                    _ if self.healed => (Credentials::Granted, 100),
                    0 => (Credentials::NotNow, 1_000),
                    1 => (Credentials::Failed, 30_000),
                    ms => (Credentials::Granted, 100 * ms),
                };
                let told = Event::Authorized(record.key.clone(), credentials);
                self.after(ms, Happening::Tell(id, told));
            }
            // (Bodies go over with the reply.)
            Effect::Renew(..) | Effect::Clear(_) => {}
            Effect::ChangeOver => {
                let told = Event::Turn(self.owner.clone());
                self.after(1, Happening::Tell(id, told));
            }
            Effect::Report(report) => self.report(report),
            Effect::Reply(ticket, result) => {
                self.reply(ticket, result.ok().map(|applied| *applied))
            }
        }
    }

    fn report(&mut self, report: Report) {
        let Some(page) = &mut self.page else {
            return;
        };
        match report {
            Report::Stored(key, true) => {
                let there = self.rows.contains_key(&key) || self.removed.contains(&key);
                assert!(there, "{NOT_LOST}");
                self.promised.insert(key);
            }
            Report::Stored(key, false) => {
                self.unsaved.insert(key.clone());
                page.announced.insert(key);
            }
            Report::Settled(record, _) => {
                assert!(record.state.is_settled());
                let before = page.settled.insert(record.key.clone(), record.state);
                let may_follow = match before {
                    None => true,
                    // A parked intent may be given up, and a late delivery is a fact over it.
                    Some(State::Parked) => {
                        matches!(record.state, State::Cancelled | State::Delivered)
                    }
                    Some(State::Refused) => {
                        matches!(record.state, State::Cancelled | State::Delivered)
                    }
                    // What went on from memory, and is gone from there, may have been committed late all the same.
                    // And a key that was forgotten is a new one.
                    Some(_) => {
                        self.removed.contains(&record.key)
                            || self.unsaved.contains(&record.key)
                                && page.queue.record(&record.key).is_none()
                    }
                };
                assert!(may_follow, "{SETTLES_ONCE}: {before:?}, then {record:?}");
                if record.state == State::Delivered {
                    self.delivered.insert(record.key.clone());
                }
            }
            Report::Waiting(record) => {
                assert_eq!(record.state, State::Pending, "only what is pending waits");
                page.settled.remove(&record.key);
            }
            Report::Known(_) | Report::Attempted(_) | Report::Removed(_) | Report::Cleared => {}
            Report::Rejected(key, _, error) => panic!("{ONE_KEY_ONE_BODY}: {key:?} {error}"),
        }
    }

    fn reply(&mut self, ticket: u64, applied: Option<Applied>) {
        let Some(op) = self.asked.remove(&ticket) else {
            return;
        };
        let Some(page) = &mut self.page else {
            return;
        };
        if let Op::Cancel(key) | Op::Discard(key) = &op {
            page.ending.remove(key);
        }
        let Some(applied) = applied else {
            return;
        };
        match op {
            Op::Cancel(key) if applied.accepted => {
                let told = page.settled.get(&key);
                let finished = matches!(told, Some(State::Delivered | State::Refused));
                // Where the store failed to hear of the answer, it has a receipt for it at least.
                let receipt = applied.record.is_some_and(|row| row.receipt.is_some());
                let excused = receipt || self.unsaved.contains(&key);
                assert!(!finished || excused, "{FINISHED_WINS}");
                self.cancelled.insert(key);
            }
            Op::Retry { key, new_key, .. } => {
                if let Some(record) = applied.record.filter(|_| applied.accepted) {
                    page.settled.remove(&record.key);
                    if record.key != key {
                        assert_eq!(record.key, new_key);
                        self.removed.insert(key.clone());
                        if page.announced.contains(&key) {
                            page.announced.insert(new_key.clone());
                            self.unsaved.insert(new_key.clone());
                        }
                        if let Some(body) = page.bodies.get(&key).cloned() {
                            page.bodies.insert(new_key.clone(), body);
                        }
                    }
                }
            }
            Op::Discard(key) | Op::Forget(key) if applied.accepted => {
                self.removed.insert(key.clone());
                self.cancelled.insert(key);
            }
            _ => {}
        }
    }

    // The store

    /// When the next transaction is committed, and whether it fails. They run one after another.
    fn store_time(&mut self) -> (u64, bool) {
        let fault = self.store_faults.pop_front();
        let ms = match fault {
            Some(StoreFault::Slow(ms)) => u64::from(ms),
            _ => self.draw(0, 8),
        };
        self.last_commit = self.last_commit.max(self.now) + ms;
        (self.last_commit, fault == Some(StoreFault::Fails))
    }

    fn row(&self, key: &Key) -> Option<Record> {
        self.rows.get(key).and_then(|row| read(row).ok())
    }

    fn alive(&self, id: u32) -> bool {
        self.page.as_ref().is_some_and(|page| page.id == id)
    }

    /// The page hears of its transactions in their order, a little later.
    fn tell_of_store(&mut self, id: u32, event: Event) {
        self.last_told = self.last_told.max(self.now + self.random.up_to(3));
        self.at(self.last_told, Happening::Tell(id, event));
    }

    fn commit(&mut self, id: u32, ticket: u64, op: Op, fails: bool) {
        let orphan = !self.alive(id);
        if orphan && self.coin() {
            // The page died, and its transaction with it.
            return;
        }
        if fails {
            return self.tell_of_store(id, Event::Failed(ticket, op));
        }
        let applied = self.apply(&op);
        if orphan {
            return;
        }
        if let (Op::Claim(key), true, Some(page)) = (&op, applied.accepted, &mut self.page) {
            let body = self.stored_bodies.get(key);
            let body = body.unwrap_or_else(|| panic!("{NOT_LOST}: the body of {key:?}"));
            page.bodies.insert(key.clone(), body.clone());
        }
        self.tell_of_store(id, Event::Committed(ticket, op, Box::new(applied)));
    }

    /// Runs a transaction, and checks what it does to the row.
    fn apply(&mut self, op: &Op) -> Applied {
        let before = self.row(op.key());
        let mut env = self.env();
        let origin = match (op, &before) {
            (_, Some(row)) => row.origin.clone(),
            (Op::Store(record), None) => record.origin.clone(),
            _ => String::new(),
        };
        let page = self.page.as_ref();
        let mut beside = page.map_or_else(Beside::default, |page| page.queue.beside(op));
        if let Op::Claim(_) | Op::BringForward(_) = op {
            // As the store reads it, since only one page may take the probe.
            beside.gate = self.gates.get(&origin).cloned();
        }
        beside.signed_out = self.signed_out.contains(&origin);
        if let Op::Claim(_) | Op::Store(_) = op {
            beside.owner = Some(self.owner.clone());
        }
        let applied = super::transact(self.stored(), op, beside, &mut env);
        match &applied.gate {
            Some(Some(gate)) => drop(self.gates.insert(origin.clone(), gate.clone())),
            Some(None) => drop(self.gates.remove(&origin)),
            None => {}
        }
        match applied.sign_in {
            Some(true) => drop(self.signed_out.insert(origin)),
            Some(false) => drop(self.signed_out.remove(&origin)),
            None => {}
        }
        for write in &applied.writes {
            match write {
                Write::Put(record) => {
                    if let Some(before) = before.as_ref().filter(|row| row.key == record.key) {
                        self.check_change(op, before, record, env.wall);
                    }
                    self.check_row(record, env.wall);
                    if record.state == State::Sending {
                        let claims = matches!(op, Op::Claim(_) | Op::Store(_));
                        assert!(!claims || self.owner == ours(), "{OWN_TURN}");
                        self.claims.insert((record.key.clone(), record.fence));
                    }
                    if record.state == State::Delivered {
                        self.delivered.insert(record.key.clone());
                    }
                    let swept = matches!(op, Op::Expire(_));
                    if record.reason == Some(Reason::Superseded) && !swept {
                        self.check_superseded(record);
                        self.cancelled.insert(record.key.clone());
                    }
                    self.rows.insert(record.key.clone(), super::stored(record));
                }
                Write::PutBody(key) => {
                    self.stored_bodies
                        .insert(key.clone(), self.bodies[key].clone());
                }
                Write::CopyBody(from, to) => {
                    let body = self.stored_bodies.get(from).cloned();
                    let body = body.unwrap_or_else(|| panic!("{NOT_LOST}: the body of {from:?}"));
                    self.stored_bodies.insert(to.clone(), body);
                }
                Write::DropBody(key) => {
                    self.stored_bodies.remove(key);
                }
                Write::Delete(key) => {
                    let state = before.as_ref().map(|row| row.state);
                    let may_go = match op {
                        Op::Discard(_) | Op::Unstore(_) => true,
                        Op::Forget(_) | Op::Expire(_) => {
                            matches!(state, Some(State::Delivered | State::Cancelled))
                        }
                        Op::Retry { .. } => state.is_some_and(State::is_settled),
                        _ => false,
                    };
                    assert!(may_go, "{REMOVED_ONLY_AFTER_ITS_END}");
                    self.rows.remove(key);
                    // (What was taken back lives on in the page.)
                    if !matches!(op, Op::Unstore(_)) {
                        self.removed.insert(key.clone());
                    }
                }
            }
        }
        self.check_lanes();
        applied
    }

    /// A newer one takes the place of what was never sent, or of what is parked when it is delivered.
    fn check_superseded(&self, record: &Record) {
        let before = self.row(&record.key).expect("superseded from nowhere");
        let never_sent = before.state == State::Pending && !before.maybe_delivered;
        assert!(
            never_sent || before.state == State::Parked,
            "{SUPERSEDED}: {before:?}"
        );
    }

    /// In every lane the first alone is due, or holds it.
    fn check_lanes(&self) {
        let mut lanes: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        for row in self.stored() {
            if let (Some(lane), Some(_)) = (&row.lane, row.lane_seq) {
                lanes.entry(lane.clone()).or_default().push(row);
            }
        }
        for rows in lanes.values_mut() {
            rows.sort_by_key(|row| row.lane_seq);
            let places: BTreeSet<_> = rows.iter().map(|row| row.lane_seq).collect();
            assert_eq!(places.len(), rows.len(), "{IN_ORDER}: two in one place");
            for (at, row) in rows.iter().enumerate() {
                assert_eq!(row.heads_lane(), at == 0, "{IN_ORDER}: {rows:?}");
            }
        }
    }

    fn check_change(&self, op: &Op, before: &Record, after: &Record, wall: Wall) {
        if !matches!(op, Op::Expire(_)) {
            assert_eq!(before.request, after.request, "{ONE_KEY_ONE_BODY}");
            assert_eq!(before.key_place, after.key_place, "{ONE_KEY_ONE_BODY}");
        }
        assert!(after.attempts >= before.attempts, "attempts never go down");
        assert!(after.fence >= before.fence, "the fence never goes down");
        match op {
            Op::Settle(_, fence, answer) => {
                let delivery = after.receipt.is_some() && before.receipt.is_none();
                assert!(
                    delivery || *fence == before.fence && before.state == State::Sending,
                    "{OLD_FENCE}"
                );
                if before.state.is_settled() {
                    let recorded = matches!(after.state, State::Delivered)
                        || before.state == State::Cancelled && after.state == State::Cancelled;
                    assert!(recorded && delivery, "{SETTLES_ONCE}");
                    assert_ne!(before.state, State::Delivered, "{SETTLES_ONCE}");
                }
                if let (Answer::Response(head), State::Pending) = (&**answer, after.state) {
                    let carries = matches!(head.status, 408 | 409 | 413 | 425 | 429 | 500..);
                    if let Some(seconds) = head.retry_after.as_ref().filter(|_| carries) {
                        let asked = seconds.parse::<u64>().unwrap_or(0) * 1_000;
                        let due = after.next_attempt_at.unwrap_or(0);
                        assert!(due >= wall + asked, "{FLOOR}");
                    }
                }
            }
            Op::Claim(_) if after.fence != before.fence => {
                assert!(!before.state.is_settled(), "{ABORT_WINS}");
                let due = before
                    .next_attempt_at
                    .expect("claimed what has no deadline");
                assert!(
                    due <= wall || before.is_from_the_future(wall),
                    "a future deadline is never due"
                );
                if let Some(floor) = before.not_before {
                    assert!(floor.at() <= wall, "{FLOOR}");
                }
                if let Some(lease) = before.lease {
                    assert!(
                        lease.written_at.saturating_add(lease.length_ms) <= wall,
                        "{ONE_IN_FLIGHT}: another lease runs"
                    );
                }
            }
            Op::BringForward(_) => {
                let due = after.next_attempt_at.expect("brought forward to nowhere");
                assert!(Some(due) <= before.next_attempt_at, "{RECONNECT}: later");
                let floor = before.not_before.map_or(0, |floor| floor.at());
                assert!(due >= floor, "{RECONNECT}");
                assert!(due >= wall.min(before.next_attempt_at.unwrap_or(0)));
            }
            Op::Cancel(_) => assert!(
                !matches!(before.state, State::Delivered | State::Refused),
                "{FINISHED_WINS}"
            ),
            Op::Retry { .. } => assert!(
                !matches!(
                    before.state,
                    State::Sending | State::Delivered | State::Cancelled
                ),
                "{SETTLES_ONCE}"
            ),
            _ => {}
        }
    }

    fn check_row(&self, row: &Record, wall: Wall) {
        assert_eq!(
            row.next_attempt_at.is_none(),
            row.state.is_settled() || row.reason == Some(Reason::Queued),
            "settled rows are not due, nor what waits in a lane; all others are some time"
        );
        assert!(row.spent <= row.attempts, "what is spent was claimed");
        assert!(row.spent <= row.policy.max_attempts, "the budget");
        if let Some(due) = row.next_attempt_at {
            // A row that a clock ahead of its time wrote is re-anchored when it is met.
            let written = row.schedule.expect("due without a length").written_at;
            let latest = wall.max(written).saturating_add(cap(&row.policy));
            assert!(due <= latest, "{CAP}: {row:?} at {wall}");
        }
        let replaced = row.replaces.is_some();
        assert!(
            replaced || row.attempts > 0 || !row.maybe_delivered,
            "what was never claimed was never sent"
        );
    }

    fn due(&mut self) -> Due {
        let wall = self.wall();
        let mut waiting = Vec::new();
        self.unreadable = 0;
        for row in self.rows.values() {
            match read(row) {
                Ok(record) => waiting.push(record),
                Err(Unreadable::Newer) => self.unreadable += 1,
                Err(Unreadable::Damaged(error)) => panic!("{NOT_LOST}: {error}"),
            }
        }
        assert_eq!(self.unreadable, 1, "{FOREIGN}");
        Due {
            gates: self.gates.values().cloned().collect(),
            signed_out: self.signed_out.iter().cloned().collect(),
            owner: Some(self.owner.clone()),
            ..super::lines(waiting, wall, 16)
        }
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Commit(id, ticket, op, fails) => self.commit(id, ticket, op, fails),
            Happening::CommitLate(id, op, fails) => {
                let lost = !self.alive(id) && self.coin();
                if !fails && !lost {
                    let applied = Box::new(self.apply(&op));
                    if !matches!(op, Op::Store(_)) {
                        let late = Event::CommittedLate(op.clone(), applied);
                        self.tell_of_store(id, late);
                    }
                    if let Op::Store(record) = op {
                        // Taken back right behind it, unless the page died first.
                        if self.alive(id) || self.coin() {
                            let undo = Op::Unstore(record);
                            let applied = Box::new(self.apply(&undo));
                            self.tell_of_store(id, Event::CommittedLate(undo, applied));
                        } else {
                            self.committed_late.insert(record.key.clone());
                        }
                    }
                }
            }
            Happening::Query(id, fails) => {
                if self.alive(id) {
                    let mut due = Due::default();
                    if fails {
                        self.after(STORE_TIMEOUT, Happening::Tell(id, Event::Look));
                    } else {
                        due = self.due();
                    }
                    self.after(1, Happening::Tell(id, Event::Queried(due)));
                }
            }
            Happening::BringForward(id) => {
                if !self.alive(id) {
                    return;
                }
                let waiting: Vec<Key> = self.stored().into_iter().map(|row| row.key).collect();
                for key in waiting {
                    let op = Op::BringForward(key);
                    let applied = self.apply(&op);
                    if applied.accepted {
                        let committed = Event::Committed(u64::MAX, op, Box::new(applied));
                        self.after(0, Happening::Tell(id, committed));
                    }
                }
                self.after(0, Happening::Tell(id, Event::Look));
            }
            Happening::Tell(id, event) => {
                if self.alive(id) {
                    self.tell(event);
                }
            }
            Happening::Arrive(id, key, body, fault) => {
                // What a page had not sent yet when it died may be lost.
                if self.alive(id) || self.coin() {
                    self.arrived(&key, &body, &fault);
                }
            }
            Happening::Acts(key) => {
                self.server.running.remove(&key);
                self.act(&key, 201);
            }
            Happening::Answer(id, key, fence, answer) => self.answer(id, key, fence, answer),
        }
    }

    // The network and the server

    fn send(&mut self, record: Record) {
        let (now, wall) = (self.now, self.wall());
        let browser_says_online = self.browser_says_online;
        let Some(page) = &mut self.page else {
            return;
        };
        let id = page.id;
        let (key, fence) = (record.key.clone(), record.fence);
        assert_eq!(record.state, State::Sending);
        assert!(
            page.announced.contains(&key) || self.claims.contains(&(key.clone(), fence)),
            "{NO_SEND_BEFORE_COMMIT}"
        );
        assert!(!page.ending.contains(&key), "{ABORTED_NEVER_SENT}");
        let given_up = self.cancelled.contains(&key) && !self.unsaved.contains(&key);
        assert!(!given_up, "{ABORT_WINS}");
        let body = page.bodies.get(&key).cloned();
        assert_eq!(body.as_ref(), self.bodies.get(&key), "{ONE_KEY_ONE_BODY}");
        assert!(
            page.in_flight.keys().all(|(other, _)| *other != key),
            "{ONE_IN_FLIGHT}"
        );
        let origin = page.in_flight.len();
        assert!(origin < 4, "four attempts at once to one origin");
        let lease = record.lease.expect("a claim without a lease");
        assert!(
            wall.abs_diff(lease.written_at) <= GRACE,
            "{ONE_IN_FLIGHT}: sent later than the grace after its claim"
        );
        page.in_flight.insert(
            (key.clone(), fence),
            InFlight {
                since: now,
                offline_before: !browser_says_online,
            },
        );
        self.server.answers.remove(&key);
        let sent = self.sent.entry(key.clone()).or_default();
        sent.push(now);
        let lately = sent.iter().filter(|at| now - **at < 60_000).count();
        let nudges = self.nudges.iter().filter(|at| now - **at < 120_000).count();
        let allowed = record.policy.max_attempts as usize + 8 + nudges;
        assert!(lately <= allowed, "{NO_STORM}: {lately} in a minute");

        let body = body.unwrap_or_default();
        if !self.network {
            let ms = if self.coin() { 5 } else { 400 };
            return self.after(ms, Happening::Answer(id, key, fence, failure()));
        }
        let fault = self.server.script.pop_front().unwrap_or(Fault::None);
        let there = self.draw(1, 150);
        let back = there + self.draw(1, 150);
        match &fault {
            Fault::DropBefore => {
                self.after(back, Happening::Answer(id, key, fence, failure()));
            }
            Fault::DropAfter => {
                // Later than what could pass for a failure that never left the machine.
                let back = back.max(120);
                self.after(there, Happening::Arrive(id, key.clone(), body, fault));
                self.after(back, Happening::Answer(id, key, fence, failure()));
            }
            Fault::Silent => {
                self.after(there, Happening::Arrive(id, key, body, fault));
            }
            Fault::Slow(ms) => {
                let back = back + u64::from(*ms);
                self.after(
                    there,
                    Happening::Arrive(id, key.clone(), body, fault.clone()),
                );
                self.after(back, Happening::Answer(id, key, fence, Answer::NotSent));
            }
            _ => {
                self.after(
                    there,
                    Happening::Arrive(id, key.clone(), body, fault.clone()),
                );
                self.after(back, Happening::Answer(id, key, fence, Answer::NotSent));
            }
        }
    }

    /// A request reaches the server.
    fn arrived(&mut self, key: &Key, body: &str, fault: &Fault) {
        if let Some(known) = self.server.bodies.get(key) {
            assert_eq!(known, body, "{ONE_KEY_ONE_BODY}");
        }
        self.server.bodies.insert(key.clone(), body.to_owned());
        let knows = self.setting.server_knows_key;
        let known = self.server.stored.get(key).copied().filter(|_| knows);
        let running = knows && self.server.running.contains(key);
        let answer = match (known, fault) {
            (_, Fault::Status(code, retry_after)) => Answer::Response(Head {
                retry_after: retry_after.map(|seconds| seconds.to_string()),
                ..head(*code)
            }),
            (_, Fault::SignIn) => super::redirected(200, "https://shop.test/login"),
            (_, Fault::ActsThen(code)) => {
                if known.is_none() && !running {
                    self.act(key, 201);
                }
                status(*code)
            }
            (Some(code), _) => super::replayed(code),
            (None, _) if running => status(409),
            (None, Fault::StoresFailure) => {
                self.server.stored.insert(key.clone(), 500);
                status(500)
            }
            (None, Fault::Slow(ms)) => {
                self.server.running.insert(key.clone());
                self.after(u64::from(*ms), Happening::Acts(key.clone()));
                status(201)
            }
            (None, Fault::Twin) if knows => {
                self.act(key, 201);
                status(409)
            }
            (None, _) => {
                self.act(key, 201);
                status(201)
            }
        };
        let answer = match (answer, fault) {
            (Answer::Response(head), Fault::Judged(ruling)) => Answer::Response(Head {
                ruling: ruling.clone(),
                ..head
            }),
            (answer, _) => answer,
        };
        if !matches!(fault, Fault::DropAfter | Fault::Silent) {
            self.server.answers.insert(key.clone(), answer);
        }
    }

    fn act(&mut self, key: &Key, code: u16) {
        self.server.stored.insert(key.clone(), code);
        *self.server.orders.entry(key.clone()).or_default() += 1;
        let root = self.root[key].clone();
        let of_intent: u32 = self
            .server
            .orders
            .iter()
            .filter(|(key, _)| self.root[*key] == root)
            .map(|(_, orders)| orders)
            .sum();
        let parks = self.setting.policy.on_maybe_delivered == OnMaybeDelivered::Park;
        // A write-ahead that the store committed after the page had given up on it and died: the next page finds a row
        // that says it was never sent. Only a server that knows the key can help.
        let undone = !self.committed_late.contains(key);
        if self.setting.server_knows_key || parks && undone {
            assert_eq!(of_intent, 1, "{NEVER_TWO}: {key:?}");
        }
    }

    /// The answer reaches the page, if that is still there and waits for it.
    fn answer(&mut self, id: u32, key: Key, fence: u64, answer: Answer) {
        let (now, offline_after) = (self.now, !self.browser_says_online);
        let Some(page) = self.page.as_mut().filter(|page| page.id == id) else {
            return;
        };
        let Some(flight) = page.in_flight.remove(&(key.clone(), fence)) else {
            return;
        };
        let answer = match answer {
            Answer::NotSent => self.server.answers.get(&key).cloned(),
            failure => Some(failure),
        };
        let answer = match answer {
            Some(Answer::Failure(failure)) => Answer::Failure(Failure {
                elapsed: now - flight.since,
                offline_before: flight.offline_before,
                offline_after,
                ..failure
            }),
            Some(answer) => answer,
            None => failure(),
        };
        self.tell(Event::Answered(key, fence, Box::new(answer)));
    }

    // Steps

    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Submit { durable } => self.submit(*durable, |_| {}),
            Step::Asking => self.submit(true, |record| {
                record.require(Vec::new(), vec!["authorize".into()]);
            }),
            Step::SignIn => self.tell(Event::SignedIn),
            Step::Laned {
                lane,
                skips,
                coalesces,
                durable,
            } => self.submit(*durable, |record| {
                let lane = Some(format!("lane-{lane}"));
                record.on_parked = if *skips {
                    OnParked::Skip
                } else {
                    OnParked::Hold
                };
                record.coalesce_key = lane.clone().filter(|_| *coalesces);
                record.lane = lane;
            }),
            Step::Again(n) => {
                if let Some(key) = self.pick(*n) {
                    // Whether a key is known can't be told where the store doesn't answer.
                    let store_answers =
                        self.store_faults.is_empty() && self.last_commit < self.now + GRACE;
                    let known = self.promised.contains(&key) && !self.unsaved.contains(&key);
                    let intent = known
                        && self.root[&key] == key
                        && !self.removed.contains(&key)
                        && self.asked.values().all(|op| *op.key() != key);
                    if intent && store_answers {
                        self.submit_as(&key, true, |_| {});
                    }
                }
            }
            Step::Wait(ms) => self.pass(u64::from(*ms)),
            Step::Network { on, heard } => {
                self.network = *on;
                if *heard && self.browser_says_online != *on {
                    self.browser_says_online = *on;
                    self.nudges.push(self.now);
                    self.tell(if *on { Event::Online } else { Event::Offline });
                }
            }
            Step::Fault(fault) => self.server.script.push_back(fault.clone()),
            Step::Store(fault, times) => {
                for _ in 0..*times {
                    self.store_faults.push_back(*fault);
                }
            }
            Step::Crash => self.crash(),
            Step::CrashAfter(effects) => self.crash_after = Some(u32::from(*effects)),
            Step::Open => self.open(),
            Step::Leave => {
                self.tell(Event::Leaving);
                let flights: Vec<(Key, u64)> = match &self.page {
                    Some(page) => page.in_flight.keys().cloned().collect(),
                    None => return,
                };
                for (key, fence) in flights {
                    if self.coin() {
                        let id = self.pages;
                        self.answer(id, key, fence, failure());
                    }
                }
            }
            Step::Return => self.tell(Event::Returned),
            Step::Look => self.tell(Event::Look),
            Step::Owner { theirs, heard } => {
                self.owner = if *theirs { None } else { ours() };
                self.nudges.push(self.now);
                if *heard {
                    self.tell(Event::Turn(self.owner.clone()));
                }
            }
            Step::Sweep => {
                let keys: Vec<Key> = self.stored().into_iter().map(|row| row.key).collect();
                for key in keys {
                    let op = Op::Expire(key);
                    let applied = self.apply(&op);
                    if !applied.writes.is_empty() {
                        let id = self.pages;
                        let event = Event::Committed(1, op, Box::new(applied));
                        self.tell_of_store(id, event);
                    }
                }
            }
            Step::Cancel(n) => self.ask(*n, Op::Cancel),
            Step::Discard(n) => self.ask(*n, Op::Discard),
            Step::Forget(n) => self.ask(*n, Op::Forget),
            Step::Retry(n) => self.retry(*n),
            Step::Jump(ms) => {
                self.skew = self.skew.saturating_add(*ms).max(-(super::NOW as i64) / 2);
                self.nudges.push(self.now);
            }
            Step::Sleep(ms) => {
                let until = self.now + u64::from(*ms);
                self.now = until;
                self.slept += u64::from(*ms);
                self.nudges.push(self.now);
            }
        }
    }

    fn pick(&mut self, n: usize) -> Option<Key> {
        let count = self.keys.len();
        (count > 0).then(|| self.keys[n % count].clone())
    }

    fn submit(&mut self, durable: bool, change: impl FnOnce(&mut Record)) {
        let key = super::key(&format!("intent-{}", self.keys.len()));
        self.keys.push(key.clone());
        self.root.insert(key.clone(), key.clone());
        self.bodies
            .insert(key.clone(), format!("body of {}", key.as_str()));
        self.submit_as(&key, durable, change);
    }

    fn submit_as(&mut self, key: &Key, durable: bool, change: impl FnOnce(&mut Record)) {
        self.open();
        let wall = self.wall();
        let Some(page) = &mut self.page else {
            return;
        };
        let body = self.bodies[key].clone();
        let new = named(key.as_str(), self.setting.policy.clone());
        let mut record = Record::new(&new.owner, key.clone(), new.request, new.policy, wall);
        record.fingerprint = Some(body.clone());
        change(&mut record);
        page.bodies.insert(key.clone(), body);
        self.tell(Event::Submit {
            record: Rc::new(record),
            durable,
        });
    }

    fn ask(&mut self, n: usize, op: fn(Key) -> Op) {
        if let Some(key) = self.pick(n) {
            self.asking(op(key));
        }
    }

    fn retry(&mut self, n: usize) {
        let Some(key) = self.pick(n) else {
            return;
        };
        let new_key = super::key(&format!("intent-{}", self.keys.len()));
        self.keys.push(new_key.clone());
        self.root.insert(new_key.clone(), self.root[&key].clone());
        self.bodies
            .insert(new_key.clone(), self.bodies[&key].clone());
        self.asking(Op::Retry {
            key,
            new_key,
            may_repeat: false,
        });
    }

    fn asking(&mut self, op: Op) {
        if self.page.is_none() {
            return;
        }
        self.tickets += 2;
        self.asked.insert(self.tickets, op.clone());
        self.tell(Event::Asked(self.tickets, op));
    }

    // The end

    fn unsettled(&self) -> Vec<Record> {
        let in_memory: Vec<Record> = match &self.page {
            Some(page) => page.queue.memory().map(|row| (**row).clone()).collect(),
            None => Vec::new(),
        };
        let mut all = self.stored();
        all.extend(in_memory);
        let held: BTreeSet<Option<String>> = all
            .iter()
            .filter(|row| row.heads_lane() && row.state.is_settled())
            .map(|row| row.lane.clone())
            .collect();
        // What is behind a parked one waits for a person.
        all.retain(|row| {
            let behind = row.reason == Some(Reason::Queued) && held.contains(&row.lane);
            !row.state.is_settled() && !behind
        });
        all
    }

    /// Everything works from now on; everything has to settle, and in time.
    fn heal(&mut self) {
        self.healed = true;
        self.network = true;
        self.owner = ours();
        self.server.script.clear();
        self.store_faults.clear();
        self.open();
        if !self.browser_says_online {
            self.browser_says_online = true;
            self.tell(Event::Online);
        }
        self.tell(Event::Returned);
        // The page may still be about to die.
        self.pass(20_000);
        self.crash_after = None;
        self.open();
        self.tell(Event::Turn(ours()));
        self.tell(Event::SignedIn);
        let before = self.unsettled();
        let longest = cap(&self.setting.policy) + 2 * RECHECK + 60_000;
        let until = self.now + longest;
        while self.now < until && !self.unsettled().is_empty() {
            self.pass(RECHECK);
        }
        for row in self.unsettled() {
            let first = before.iter().find(|first| first.key == row.key);
            let queued = first.is_some_and(|first| first.reason == Some(Reason::Queued));
            let tried = queued || first.is_none_or(|first| row.attempts > first.attempts);
            assert!(tried, "{NO_LONG_DELAY}: {row:?} at {}", self.wall());
        }
        let mut more = 0;
        while !self.unsettled().is_empty() {
            more += 1;
            // Whoever has to sign in does.
            self.tell(Event::SignedIn);
            assert!(more < 10_000, "{SETTLES}: {:?}", self.unsettled());
            self.pass(RECHECK);
        }
        self.pass(2 * RECHECK);
        self.check_end();
        self.crash();
    }

    fn check_end(&mut self) {
        assert_eq!(self.rows.get(&foreign()), Some(&foreign_row()), "{FOREIGN}");
        for key in &self.promised {
            assert!(
                self.rows.contains_key(key) || self.removed.contains(key),
                "{NOT_LOST}: {key:?}"
            );
        }
        if self.setting.server_knows_key {
            for key in &self.delivered {
                assert_eq!(
                    self.server.orders.get(key),
                    Some(&1),
                    "{ONE_ORDER}: {key:?}"
                );
            }
        }
        for row in self.stored() {
            let sent = self.sent.contains_key(&row.key);
            assert!(
                row.state != State::Delivered || sent,
                "delivered without an attempt"
            );
            assert!(
                !matches!(row.state, State::Parked | State::Refused) || row.reason.is_some(),
                "settled for no reason"
            );
            if row.reason == Some(Reason::Discarded) && !row.maybe_delivered {
                assert!(
                    !self.server.orders.contains_key(&row.key),
                    "cancelled as never sent, and the server has it"
                );
            }
        }
    }
}

fn ours() -> Owner {
    Some("anonymous".into())
}

fn supplies() -> Supplies {
    Supplies {
        headers: true,
        hooks: vec!["authorize".into()],
    }
}

fn failure() -> Answer {
    Answer::Failure(Failure {
        elapsed: 300,
        ..Failure::default()
    })
}

fn read(row: &Value) -> Result<Record, Unreadable> {
    Record::read(&Json(row.clone()))
}

/// The furthest that any deadline may lie: what a policy can lead to, its attempt's own time, and the probe of a page
/// that is offline.
fn cap(policy: &Policy) -> Millis {
    let claimed = policy.attempt_timeout(11) + policy.horizon().max(2 * GRACE);
    policy.horizon().max(claimed).max(OFFLINE_PROBE)
}
