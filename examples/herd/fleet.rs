//! The fleet of the outage model: each browser a [`Queue`], with a store of one row.

use crate::algorithm::Backoff;
use crate::outage::{Outcome, Setting, BIN};
use resubmit::engine::queue::{Due, Line};
use resubmit::engine::{
    Answer, Applied, Clocks, Effect, Env, Event, Failure, Head, Jitter, Key, Millis, Op, Queue,
    Random, Record, RequestHead, State, Supplies, Wall,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// 14 November 2023: when the sale opens.
const OPENS: Wall = 1_700_000_000_000;

/// Within how long of that everybody has pressed Send.
const PRESSES: Millis = 1_000;

/// The network's delay each way: uniform between these, connecting included. (What does not wait is as fast as the
/// network lets it, so a slow one flatters it.)
const NETWORK: (Millis, Millis) = (130, 170);

/// How soon `fetch` is rejected without a network.
const REJECTED: Millis = 3;

/// The shop's address.
const URL: &str = "https://shop.test/orders";

/// One run.
pub fn run(setting: Setting) -> Outcome {
    let mut world = World::new(setting);
    while let Some(Reverse((now, _, who, happening))) = world.agenda.pop() {
        world.now = now;
        world.happened(who, happening);
    }
    world.outcome
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The person presses Send.
    Press,
    /// The network is back.
    Online,
    Tick,
    /// The request of that fence is at the server.
    Arrive(u64),
    /// Its answer, of that status, is at the browser.
    Answer(u64, u16),
    /// It could not leave.
    Rejected(u64),
}

struct Browser {
    queue: Queue,
    row: Option<Rc<Record>>,
    has_network: bool,
    backoff: Backoff,
    tick_at: Option<Millis>,
}

struct World {
    setting: Setting,
    random: Random,
    now: Millis,
    /// By time, then in the order in which it was written there.
    agenda: BinaryHeap<Reverse<(Millis, u64, usize, Happening)>>,
    sequence: u64,
    browsers: Vec<Browser>,
    /// When the server has done what it accepted.
    busy_until: Millis,
    outcome: Outcome,
}

impl World {
    fn new(setting: Setting) -> Self {
        let policy = setting.policy();
        let backoff = Backoff::new(setting.algorithm, &policy, policy.base_ms);
        let browsers = (0..setting.browsers)
            .map(|who| Browser {
                queue: Queue::new(!has_network_at_first(who), Supplies::default()),
                row: None,
                has_network: has_network_at_first(who),
                backoff: backoff.clone(),
                tick_at: None,
            })
            .collect();
        let mut world = World {
            random: Random::new(setting.seed),
            now: 0,
            agenda: BinaryHeap::new(),
            sequence: 0,
            browsers,
            busy_until: 0,
            outcome: Outcome {
                arrivals: Vec::new(),
                orders: vec![0; setting.browsers],
                delivered_at: Vec::new(),
                parked: 0,
            },
            setting,
        };
        for who in 0..setting.browsers {
            let pressed = world.random.up_to(PRESSES);
            world.after(pressed, who, Happening::Press);
            if !has_network_at_first(who) {
                world.after(setting.down_for, who, Happening::Online);
            }
        }
        world
    }

    fn after(&mut self, ms: Millis, who: usize, happening: Happening) {
        self.sequence += 1;
        let entry = (self.now + ms, self.sequence, who, happening);
        self.agenda.push(Reverse(entry));
    }

    fn network(&mut self) -> Millis {
        let (least, most) = NETWORK;
        least + self.random.up_to(most - least)
    }

    fn happened(&mut self, who: usize, happening: Happening) {
        match happening {
            Happening::Press => {
                self.tell(who, Event::Opened);
                let record = Rc::new(self.intent(who));
                let durable = true;
                self.tell(who, Event::Submit { record, durable });
            }
            Happening::Online => {
                self.browsers[who].has_network = true;
                self.tell(who, Event::Online);
            }
            Happening::Tick => {
                // (One that was put off since is on the agenda under its later time.)
                if self.browsers[who].tick_at == Some(self.now) {
                    self.browsers[who].tick_at = None;
                    self.tell(who, Event::Tick);
                }
            }
            Happening::Arrive(fence) => {
                let (wait, status) = self.arrived(who);
                let back = wait + self.network();
                self.after(back, who, Happening::Answer(fence, status));
            }
            Happening::Answer(fence, status) => {
                let head = Head {
                    status,
                    url: URL.into(),
                    ..Head::default()
                };
                self.answer(who, fence, Answer::Response(head));
            }
            Happening::Rejected(fence) => {
                let failure = Failure {
                    elapsed: REJECTED,
                    offline_before: true,
                    offline_after: !self.browsers[who].has_network,
                    ..Failure::default()
                };
                self.answer(who, fence, Answer::Failure(failure));
            }
        }
    }

    fn intent(&mut self, who: usize) -> Record {
        let request = RequestHead {
            method: "POST".into(),
            url: URL.into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body_bytes: 200,
            ..RequestHead::default()
        };
        let key = Key::from_random((who as u128).to_be_bytes());
        let policy = self.browsers[who].backoff.policy().clone();
        Record::new("anonymous", key, request, policy, OPENS + self.now)
    }

    /// A request is at the server: how long it waits there, and the status.
    fn arrived(&mut self, who: usize) -> (Millis, u16) {
        let bin = (self.now / BIN) as usize;
        let arrivals = &mut self.outcome.arrivals;
        arrivals.resize(arrivals.len().max(bin + 1), 0);
        arrivals[bin] += 1;
        let waits = self.busy_until.saturating_sub(self.now);
        if self.now < self.setting.down_for || waits > 1_000 {
            return (0, 503);
        }
        self.outcome.orders[who] += 1;
        let takes = 1_000 / self.setting.per_second;
        self.busy_until = self.now + waits + takes;
        (waits + takes, 201)
    }

    fn answer(&mut self, who: usize, fence: u64, answer: Answer) {
        if let Some(row) = &self.browsers[who].row {
            let key = row.key.clone();
            self.tell(who, Event::Answered(key, fence, Box::new(answer)));
        }
    }

    /// Tells a browser what happened, runs what it decides, and sets its timer.
    fn tell(&mut self, who: usize, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut env = self.env();
            self.browsers[who].queue.handle(event, &mut env);
            while let Some(effect) = self.browsers[who].queue.poll_effect() {
                self.effect(who, effect, &mut events);
            }
        }
        let browser = &mut self.browsers[who];
        let due = browser.queue.next_deadline(clocks(self.now));
        let tick_at = due.map(|ms| self.now + ms);
        if browser.tick_at != tick_at {
            browser.tick_at = tick_at;
            if let Some(ms) = due {
                self.after(ms, who, Happening::Tick);
            }
        }
    }

    fn env(&mut self) -> Env {
        let Clocks { wall, mono } = clocks(self.now);
        Env {
            wall,
            mono,
            random: Random::new(self.random.up_to(u64::MAX - 1)),
        }
    }

    /// Runs an effect. What it comes to follows what is told already.
    fn effect(&mut self, who: usize, effect: Effect, events: &mut VecDeque<Event>) {
        match effect {
            Effect::Transact(ticket, op) => {
                let applied = self.transact(who, &op);
                events.push_back(Event::Committed(ticket, op, Box::new(applied)));
            }
            Effect::Query => {
                let due = due(self.browsers[who].row.as_ref(), OPENS + self.now);
                events.push_back(Event::Queried(due));
            }
            Effect::BringForward => {
                if let Some(row) = &self.browsers[who].row {
                    let op = Op::BringForward(row.key.clone());
                    let applied = self.transact(who, &op);
                    // (No call waits for it: the queue's own tickets are odd.)
                    events.push_back(Event::Committed(1, op, Box::new(applied)));
                }
                events.push_back(Event::Look);
            }
            Effect::Send(record) => {
                if self.browsers[who].has_network {
                    let there = self.network();
                    self.after(there, who, Happening::Arrive(record.fence));
                } else {
                    self.after(REJECTED, who, Happening::Rejected(record.fence));
                }
            }
            // (No attempt here takes as long as its time limit, nobody gives up, and everybody stays who they are.)
            Effect::Abort(..)
            | Effect::Authorize(..)
            | Effect::Renew(..)
            | Effect::Clear(_)
            | Effect::ChangeOver
            | Effect::Report(_)
            | Effect::Reply(..) => {}
        }
    }

    /// Runs a transaction on the row, as every store does.
    fn transact(&mut self, who: usize, op: &Op) -> Applied {
        let mut env = self.env();
        let foil = self.setting.algorithm.is_foil();
        let browser = &mut self.browsers[who];
        let mut row = browser.row.take();
        if let (Op::Settle(..), Some(row), true) = (op, &mut row, foil) {
            // What the engine cannot draw it is handed: a policy of one delay, and no jitter on it.
            let row = Rc::make_mut(row);
            let retry = row.spent.saturating_sub(1);
            row.policy.delays_ms = vec![browser.backoff.delay(retry, &mut env.random)];
            row.policy.jitter = Jitter::None;
        }
        let applied = op.apply(row, &mut env);
        // (Nothing here deletes a row.)
        browser.row = applied.record.clone();
        match &browser.row {
            Some(row) if applied.settled && row.state == State::Delivered => {
                self.outcome.delivered_at.push(self.now);
            }
            _ => self.outcome.parked += u64::from(applied.settled),
        }
        applied
    }
}

/// Every other browser is behind the network that is down.
fn has_network_at_first(who: usize) -> bool {
    who.is_multiple_of(2)
}

fn clocks(now: Millis) -> Clocks {
    Clocks {
        wall: OPENS + now,
        mono: now,
    }
}

/// What the store finds: one line, if its row waits.
fn due(row: Option<&Rc<Record>>, now: Wall) -> Due {
    let Some((row, at)) = row.and_then(|row| Some((row, row.next_attempt_at?))) else {
        return Due::default();
    };
    let mut line = Line::default();
    if at <= now {
        line.due.push(row.clone());
    } else {
        line.next = Some(row.clone());
        line.last = Some(row.clone());
    }
    Due {
        lines: vec![line],
        ..Due::default()
    }
}
