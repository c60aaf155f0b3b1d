//! The outbox on disk: one IndexedDB database, its transactions, and its queries.
//!
//! Rows are in `intents`, bodies in `bodies`, both under `[owner, key]`; `gates` holds the closed gates, `meta` who the
//! current owner is.

use super::latch::Latch;
use super::source::{get, set, Js};
use crate::engine::decode::Fields;
use crate::engine::encode::write;
use crate::engine::gate::Gate;
use crate::engine::lane::{self, Around, Vacated};
use crate::engine::queue::{Due, Line};
use crate::engine::record::Unreadable;
use crate::engine::shape::Shape;
use crate::engine::{Applied, Beside, Env, Key, Op, Owner, Record, Wall, Write};
use idb::{
    request::GetStoreRequest, CursorDirection, Database, DatabaseEvent, Factory, IndexParams,
    KeyPath, KeyRange, ObjectStore, ObjectStoreParams, Query, Transaction,
};
use js_sys::{Array, Object, Uint8Array};
use std::cell::{Cell, RefCell};
use std::future::IntoFuture;
use std::ops::Deref;
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use web_sys::IdbDatabase;

/// The version of the database's shape. Rows have a version of their own.
const VERSION: u32 = 1;

const INTENTS: &str = "intents";
const BODIES: &str = "bodies";
const GATES: &str = "gates";
const META: &str = "meta";

/// The record of `meta` that says who the current owner is.
const OWNER: &str = "owner";

/// The indexes of `intents`: their names and key paths. A row without the property is not in the index.
const INDEXES: [(&str, &[&str]); 6] = [
    (DUE, &["owner", "origin", "needs", "nextAttemptAt"]),
    (LISTED, &["owner", "createdAt"]),
    (LANE, &["owner", "lane", "laneSeq"]),
    (COALESCE, &["owner", "coalesceKey"]),
    ("form", &["owner", "formKey"]),
    (FORGET, &["forgetAt"]),
];
const DUE: &str = "due";
const LISTED: &str = "listed";
const LANE: &str = "lane";
const COALESCE: &str = "coalesce";
const FORGET: &str = "forget";

/// How many due rows of a line are taken at once.
const DUE_LIMIT: u32 = 16;

/// How many rows are read or written in one transaction, where there may be many.
pub const PAGE: u32 = 256;

/// Why the storage did not do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageError {
    /// There is none here, or it may not be touched.
    Absent,
    /// It said no.
    Failed,
    /// It did not answer in time.
    Silent,
}

impl StorageError {
    /// The word for `NotDurableReason`.
    pub fn as_str(self) -> &'static str {
        match self {
            StorageError::Absent => "no-storage",
            StorageError::Failed => "storage-failed",
            StorageError::Silent => "storage-silent",
        }
    }
}

impl From<idb::Error> for StorageError {
    fn from(_: idb::Error) -> Self {
        StorageError::Failed
    }
}

type Result<T> = std::result::Result<T, StorageError>;

#[wasm_bindgen]
extern "C" {
    // web-sys hides the options of a transaction behind an unstable flag, which users of this crate cannot be asked
    // to set.
    #[wasm_bindgen(extends = IdbDatabase)]
    type DatabaseWithOptions;
    #[wasm_bindgen(method, catch, js_name = transaction)]
    fn transaction_with_options(
        this: &DatabaseWithOptions,
        stores: &Array,
        mode: &str,
        options: &Object,
    ) -> std::result::Result<web_sys::IdbTransaction, JsValue>;
}

/// One owner's part of the open database, or what keeps it from being open. The parts of a page share its connection, so
/// that their transactions keep their order.
pub struct Store {
    owner: RefCell<Owner>,
    connection: Rc<Connection>,
}

/// The connection to the database that the parts share.
pub struct Connection {
    name: String,
    opening: RefCell<Latch<Result<()>>>,
    database: RefCell<Option<IdbDatabase>>,
    unreadable: Cell<u32>,
    closed: Cell<bool>,
}

impl Deref for Store {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Store {
    /// The store of an outbox; nothing is opened yet.
    pub fn new(name: &str) -> Rc<Self> {
        Rc::new(Store {
            owner: RefCell::default(),
            connection: Rc::new(Connection {
                name: ["resubmit:", name].concat(),
                opening: RefCell::new(Latch::new()),
                database: RefCell::new(None),
                unreadable: Cell::new(0),
                closed: Cell::new(false),
            }),
        })
    }

    /// Another owner's part.
    pub fn part(&self) -> Rc<Self> {
        Rc::new(Store {
            owner: RefCell::default(),
            connection: self.connection.clone(),
        })
    }

    /// Says whose part it is.
    pub fn belong_to(&self, owner: Owner) {
        self.owner.replace(owner);
    }

    /// How many rows were met that this build cannot read.
    pub fn unreadable(&self) -> u32 {
        self.unreadable.get()
    }

    /// Whether the database is open, once that is known.
    pub async fn opened(&self) -> Result<()> {
        let opening = self.opening.borrow().clone();
        opening.wait().await
    }

    /// Says that the opening took too long: whoever waits goes on without. A late success is still used by what comes
    /// after.
    pub fn give_up_opening(&self) {
        self.opening.borrow().set(Err(StorageError::Silent));
    }

    /// Opens the database. `owner`: who is to be current; the first to use it finds that done. Returns who is.
    pub async fn open(self: &Rc<Self>, owner: Option<Owner>) -> Option<Owner> {
        let opening = self.opening.borrow().clone();
        let mut opened = self.try_open().await;
        let mut current = None;
        if opened.is_ok() {
            match self.make_current(owner).await {
                Ok(owner) => current = owner,
                Err(error) => opened = Err(error),
            }
        }
        if !opening.set(opened) && opened.is_ok() {
            self.mark_open();
        }
        current
    }

    async fn make_current(&self, owner: Option<Owner>) -> Result<Option<Owner>> {
        let begin = |mode| {
            self.try_begin(&[META], mode, true)
                .ok_or(StorageError::Failed)
        };
        let stored = read_owner(&begin("readonly")?).await?;
        if owner.is_none() || owner == stored {
            return Ok(stored);
        }
        let transaction = begin("readwrite")?;
        write_owner(&transaction, &owner.clone().flatten())?;
        commit(transaction).await?;
        Ok(owner)
    }

    /// Who the current owner is; `None` if nobody ever said.
    pub async fn current_owner(self: &Rc<Self>) -> Result<Option<Owner>> {
        let transaction = self.begin(&[META], "readonly", false).await?;
        read_owner(&transaction).await
    }

    /// Says who the current owner is.
    pub async fn set_owner(self: &Rc<Self>, owner: &Owner) -> Result<()> {
        // Of everything, so that it is behind whatever was begun for another.
        let stores = [INTENTS, BODIES, GATES, META];
        let transaction = self.begin(&stores, "readwrite", true).await?;
        write_owner(&transaction, owner)?;
        commit(transaction).await
    }

    /// Deletes everything of this owner. Returns the rows of `followed` as they were.
    pub async fn clear(self: &Rc<Self>, followed: Vec<Key>) -> Result<Vec<Rc<Record>>> {
        let stores = [INTENTS, BODIES, GATES];
        let transaction = self.begin(&stores, "readwrite", true).await?;
        let intents = transaction.object_store(INTENTS)?;
        let bodies = transaction.object_store(BODIES)?;
        let mut rows = Vec::new();
        for key in followed {
            let row = intents.get(self.id(&key))?.await?;
            rows.extend(row.and_then(read));
        }
        let owner = self.owner();
        let end = || JsValue::from(Array::new());
        let all = || between(&Array::of1(&owner), &Array::of2(&owner, &end()));
        intents.delete(all()?)?;
        bodies.delete(all()?)?;
        transaction.object_store(GATES)?.delete(all()?)?;
        commit(transaction).await?;
        Ok(rows)
    }

    /// What failed before, or took too long, is open now.
    fn mark_open(&self) {
        let opened = Latch::new();
        opened.set(Ok(()));
        *self.opening.borrow_mut() = opened;
    }

    async fn try_open(self: &Rc<Self>) -> Result<()> {
        let factory = Factory::new().map_err(|_| StorageError::Absent)?;
        let mut request = factory
            .open(&self.name, Some(VERSION))
            .map_err(|_| StorageError::Absent)?;
        request.on_upgrade_needed(|event| {
            if let Ok(database) = event.database() {
                // A failure here aborts the upgrade, and with it the opening.
                let _ = create(&database);
            }
        });
        let mut database = request.await?;
        if self.closed.get() {
            database.close();
            return Err(StorageError::Absent);
        }
        let store = Rc::downgrade(&self.connection);
        // A newer page wants to upgrade, or the browser closed it: let go, and open again when it is needed.
        let let_go = move || {
            if let Some(store) = store.upgrade() {
                store.let_go();
            }
        };
        let closed = let_go.clone();
        database.on_version_change(move |_| let_go());
        database.on_close(move |_| closed());
        database.forget_callbacks();
        *self.database.borrow_mut() = Some(database.into());
        Ok(())
    }

    /// Closes the database.
    pub fn close(&self) {
        self.closed.set(true);
        self.let_go();
        self.opening.borrow().set(Err(StorageError::Absent));
    }

    /// Begins a transaction; a connection that was closed under the page is opened again, once.
    async fn begin(
        self: &Rc<Self>,
        stores: &[&str],
        mode: &str,
        strict: bool,
    ) -> Result<Transaction> {
        match self.opened().await {
            Err(StorageError::Silent) => return Err(StorageError::Silent),
            // It may be there again by now.
            Err(_) => {}
            Ok(()) => {
                if let Some(transaction) = self.try_begin(stores, mode, strict) {
                    return Ok(transaction);
                }
                self.let_go();
            }
        }
        if self.closed.get() {
            return Err(StorageError::Absent);
        }
        self.try_open().await?;
        self.mark_open();
        self.try_begin(stores, mode, strict)
            .ok_or(StorageError::Failed)
    }

    fn try_begin(&self, stores: &[&str], mode: &str, strict: bool) -> Option<Transaction> {
        let database = self.database.borrow().clone()?;
        let options = Object::new();
        let durability = if strict { "strict" } else { "relaxed" };
        set(&options, "durability", &durability.into());
        let stores: Array = stores.iter().map(|name| JsValue::from_str(name)).collect();
        let database: DatabaseWithOptions = database.unchecked_into();
        let transaction = database
            .transaction_with_options(&stores, mode, &options)
            .ok()?;
        Some(transaction.into())
    }

    /// Runs one transaction of the engine's. Returns what it came to, and the body of a row that was claimed. `held`:
    /// the body that the page holds for the intent made at that moment. `beside`: what stands around the row, as the
    /// page knows it; a claim and a retry read the gate, since only one page may take the probe.
    ///
    /// Nothing but IndexedDB is awaited between the first request and the commit.
    pub async fn transact(
        self: &Rc<Self>,
        op: &Op,
        held: Option<(Wall, Uint8Array)>,
        mut beside: Beside,
        env: &mut Env,
    ) -> Result<(Applied, Option<Uint8Array>)> {
        let transaction = self
            .begin(&[INTENTS, BODIES, GATES, META], "readwrite", op.is_strict())
            .await?;
        let intents = transaction.object_store(INTENTS)?;
        let bodies = transaction.object_store(BODIES)?;
        let gates = transaction.object_store(GATES)?;
        // On its way with the others. A page that has not heard of a change must not send what is another's by now.
        let owner = match op {
            Op::Store(_) | Op::Claim(_) => Some(asked_owner(&transaction)?),
            _ => None,
        };
        // A minted key cannot be known: that saves the first submit a read.
        let minted = matches!(op, Op::Store(record) if record.fingerprint.is_none());
        let row = if minted {
            None
        } else {
            self.read(&intents, op.key()).await?
        };
        let made = match (op, &row) {
            (Op::Store(record), _) => Some(record.created_at),
            (_, row) => row.as_ref().map(|row| row.created_at),
        };
        let mut body = held
            .filter(|(of, _)| Some(*of) == made)
            .map(|(_, body)| body);
        let mut spoilt = false;
        if let (Op::Claim(key), None, Some(row)) = (op, &body, &row) {
            let read = self.body(&bodies, key).await?;
            spoilt = u64::from(read.length()) != row.request.body_bytes;
            body = Some(read);
        }
        if let (Op::Claim(_) | Op::Retry { .. }, Some(row)) = (op, &row) {
            let stored = gates.get(JsValue::from_str(&row.origin))?.await?;
            beside.gate = stored.and_then(read_gate);
        }
        if let Some(owner) = owner {
            beside.owner = owner.await?.map(owner_of);
        }
        if let (true, Some(row)) = (op.reads_sign_in(), &row) {
            let stored = gates.get(sign_in(&row.owner, &row.origin))?.await?;
            beside.signed_out = stored.is_some();
        }
        let around = Around::of(op, row.as_deref());
        if let Some(lane) = &around.lane {
            beside.lane_end = lane_end(&intents, &around.owner, lane).await?;
        }
        if let Some(key) = &around.coalesce_key {
            beside.twins = twins(&intents, &around.owner, key, op.key()).await?;
        }
        let mut applied = if spoilt {
            Op::Spoil(op.key().clone()).run(row, beside, env)
        } else {
            op.run(row, beside, env)
        };
        write_gate(&gates, &applied)?;
        let owner = self.owner.borrow().clone().unwrap_or_default();
        for write in &applied.writes {
            self.write(&owner, &intents, &bodies, write, body.as_ref())
                .await?;
        }
        self.promote(&intents, &mut applied, env.wall).await?;
        commit(transaction).await?;
        Ok((applied, body))
    }

    /// The request futures of writes are not awaited: the commit stands for all of them.
    async fn write(
        &self,
        owner: &str,
        intents: &ObjectStore,
        bodies: &ObjectStore,
        write: &Write,
        body: Option<&Uint8Array>,
    ) -> Result<()> {
        let id = |key: &Key| JsValue::from(Array::of2(&owner.into(), &key.as_str().into()));
        match write {
            Write::Put(record) => {
                intents.put(&to_row(record), None)?;
            }
            Write::PutBody(key) => {
                if let Some(body) = body {
                    bodies.put(body, Some(&id(key)))?;
                }
            }
            Write::CopyBody(from, to) => {
                let body = self.body(bodies, from).await?;
                bodies.put(&body, Some(&id(to)))?;
            }
            Write::DropBody(key) => {
                bodies.delete(id(key))?;
            }
            Write::Delete(key) => {
                intents.delete(id(key))?;
            }
        }
        Ok(())
    }

    async fn read(&self, intents: &ObjectStore, key: &Key) -> Result<Option<Rc<Record>>> {
        match intents.get(self.id(key))?.await? {
            None => Ok(None),
            Some(row) => read(row).map(Some).ok_or(StorageError::Failed),
        }
    }

    async fn body(&self, bodies: &ObjectStore, key: &Key) -> Result<Uint8Array> {
        let body = bodies.get(self.id(key))?.await?;
        Ok(body.map_or_else(|| Uint8Array::new_with_length(0), JsCast::unchecked_into))
    }

    fn id(&self, key: &Key) -> JsValue {
        Array::of2(&self.owner(), &key.as_str().into()).into()
    }

    /// The owner, as part of a key of the database. (Nobody has no rows: what stands for them is never in one.)
    fn owner(&self) -> JsValue {
        match &*self.owner.borrow() {
            Some(owner) => JsValue::from_str(owner),
            None => JsValue::from(f64::NEG_INFINITY),
        }
    }

    /// What is due, and the two ends of what is not: a few requests for every line, whatever the number of waiting rows.
    pub async fn due(self: &Rc<Self>, now: Wall) -> Result<Due> {
        let stores = [INTENTS, GATES, META];
        let transaction = self.begin(&stores, "readonly", false).await?;
        let index = transaction.object_store(INTENTS)?.index(DUE)?;
        let closed = transaction.object_store(GATES)?.get_all(None, None)?;
        let current = asked_owner(&transaction)?;
        let owner = self.owner();
        // In an index, an array comes after everything else.
        let end = || JsValue::from(Array::new());
        let mut unreadable = 0;
        let closed = closed.await?;
        let mine = closed.iter().filter_map(|row| {
            let id: Array = get(row, "id").dyn_into().ok()?;
            (id.get(0) == owner).then(|| id.get(1).as_string())?
        });
        let mut due = Due {
            signed_out: mine.collect(),
            gates: closed.iter().cloned().filter_map(read_gate).collect(),
            owner: current.await?.map(owner_of),
            lines: Vec::new(),
        };
        let rest = between(&Array::of1(&owner), &Array::of2(&owner, &end()))?;
        let mut heads = index.get_all(Some(rest), Some(1))?.await?;
        while let Some(head) = heads.first() {
            let (origin, needs) = (get(head, "origin"), get(head, "needs"));
            let at = |moment: JsValue| Array::of4(&owner, &origin, &needs, &moment);
            let now = || JsValue::from(now as f64);
            let mut line = Line::default();
            let later = || between(&at(now()), &at(end()));
            let mut next = head.clone();
            // Most lines have nothing that is due: their head is the next, and two requests are saved.
            if get(head, "nextAttemptAt").as_f64() <= now().as_f64() {
                let mut limit = DUE_LIMIT;
                let mut passed_over = 0;
                // Rows that this build cannot read are passed over, however many there are.
                while line.due.is_empty() {
                    let range = between(&at(f64::NEG_INFINITY.into()), &at(now()))?;
                    let rows = index.get_all(Some(range), Some(limit))?.await?;
                    let count = rows.len();
                    line.due.extend(rows.into_iter().filter_map(read));
                    passed_over = count - line.due.len();
                    if count < limit as usize {
                        break;
                    }
                    limit = limit.saturating_mul(8);
                }
                unreadable += passed_over;
                let first = index.get_all(Some(later()?), Some(1))?.await?;
                next = first.into_iter().next().unwrap_or_default();
            }
            line.next = read(next.clone());
            if line.next.is_none() && next.is_object() {
                let more = index.get_all(Some(later()?), Some(DUE_LIMIT))?.await?;
                line.next = more.into_iter().find_map(read);
            }
            // Both on their way at once: a line costs a round trip less.
            let last = index
                .open_cursor(Some(later()?), Some(CursorDirection::Prev))?
                .into_future();
            let beyond = [needs.as_string().unwrap_or_default(), "\0".to_owned()].concat();
            let behind = Array::of3(&owner, &origin, &beyond.into());
            let rest = between(&behind, &Array::of2(&owner, &end()))?;
            let rest = index.get_all(Some(rest), Some(1))?.into_future();
            if let Some(cursor) = last.await? {
                line.last = read(cursor.value()?);
            }
            due.lines.push(line);
            heads = rest.await?;
        }
        self.unreadable
            .set(u32::try_from(unreadable).unwrap_or(u32::MAX));
        Ok(due)
    }

    /// Brings forward, in one transaction, up to [`PAGE`] waiting rows behind the index key `after`. Returns what
    /// changed, and where to go on.
    pub async fn bring_forward(
        self: &Rc<Self>,
        after: Option<JsValue>,
        env: &mut Env,
    ) -> Result<(Vec<(Op, Applied)>, Option<JsValue>)> {
        let stores = [INTENTS, GATES];
        let transaction = self.begin(&stores, "readwrite", false).await?;
        let intents = transaction.object_store(INTENTS)?;
        let gates = transaction.object_store(GATES)?;
        let closed = gates.get_all(None, None)?.await?;
        let mut closed: Vec<Gate> = closed.into_iter().filter_map(read_gate).collect();
        let owner = self.owner();
        let after = after.unwrap_or_else(|| Array::of1(&owner).into());
        let rest = between(&after, &Array::of2(&owner, &Array::new()))?;
        let rows = intents.index(DUE)?.get_all(Some(rest), Some(PAGE))?.await?;
        let full = rows.len() >= PAGE as usize;
        let last = rows.last().filter(|_| full).map(|row| {
            let part = |name| get(row, name);
            Array::of4(
                &owner,
                &part("origin"),
                &part("needs"),
                &part("nextAttemptAt"),
            )
            .into()
        });
        let mut changed = Vec::new();
        for record in rows.into_iter().filter_map(read) {
            let op = Op::BringForward(record.key.clone());
            let at = closed.iter().position(|gate| gate.id == record.origin);
            let beside = Beside {
                gate: at.map(|at| closed[at].clone()),
                ..Beside::default()
            };
            let applied = op.run(Some(record), beside, env);
            write_gate(&gates, &applied)?;
            if let (Some(at), Some(Some(gate))) = (at, &applied.gate) {
                closed[at] = gate.clone();
            }
            if let [Write::Put(record)] = applied.writes.as_slice() {
                intents.put(&to_row(record), None)?;
                changed.push((op, applied));
            }
        }
        commit(transaction).await?;
        Ok((changed, last))
    }

    /// The rows of the current owner, newest first, a page at a time. `before`: where the last page ended.
    pub async fn page(
        self: &Rc<Self>,
        before: Option<Wall>,
    ) -> Result<(Vec<Rc<Record>>, Option<Wall>)> {
        let transaction = self.begin(&[INTENTS], "readonly", false).await?;
        let index = transaction.object_store(INTENTS)?.index(LISTED)?;
        let owner = self.owner();
        let until = before.map_or(f64::INFINITY, |at| at as f64);
        let range = between(&Array::of1(&owner), &Array::of2(&owner, &until.into()))?;
        let mut records = Vec::new();
        let mut seen = 0;
        let mut last = None;
        let cursor = index
            .open_cursor(Some(range), Some(CursorDirection::Prev))?
            .await?;
        let Some(cursor) = cursor else {
            return Ok((records, None));
        };
        let mut cursor = cursor.into_managed();
        while let Some(row) = cursor.value()? {
            // A page ends between two moments, never within one: the next begins strictly before it.
            let created = get(&row, "createdAt").as_f64().map(|at| at as Wall);
            if seen >= PAGE && created != last {
                return Ok((records, last.map(|at| at.saturating_sub(1))));
            }
            seen += 1;
            last = created;
            records.extend(read(row));
            cursor.next(None).await?;
        }
        Ok((records, None))
    }

    /// One row.
    pub async fn get(self: &Rc<Self>, key: &Key) -> Result<Option<Rc<Record>>> {
        let transaction = self.begin(&[INTENTS], "readonly", false).await?;
        let intents = transaction.object_store(INTENTS)?;
        self.read(&intents, key).await
    }

    /// Forgets, in one transaction, up to [`PAGE`] rows that were kept for long enough, whosever they are. Returns what
    /// changed, and whether there is more.
    pub async fn forget_old(self: &Rc<Self>, env: &mut Env) -> Result<(Vec<(Op, Applied)>, bool)> {
        let stores = [INTENTS, BODIES];
        let transaction = self.begin(&stores, "readwrite", false).await?;
        let intents = transaction.object_store(INTENTS)?;
        let bodies = transaction.object_store(BODIES)?;
        let index = intents.index(FORGET)?;
        let until = KeyRange::upper_bound(&Array::of1(&(env.wall as f64).into()), None)?;
        let old = Some(Query::KeyRange(until));
        let mut rows = index.get_all(old, Some(PAGE))?.await?;
        let more = rows.len() >= PAGE as usize;
        // If a clock that was ahead wrote one, it is the furthest of all, or goes no later than a right one.
        let last = index.open_cursor(None, Some(CursorDirection::Prev))?;
        if let Some(cursor) = last.await? {
            let row = cursor.value()?;
            let later = get(&row, "forgetAt").as_f64() > Some(env.wall as f64);
            rows.extend(later.then_some(row));
        }
        let mut changed = Vec::new();
        // (What a newer build wrote is its affair.)
        for record in rows.into_iter().filter_map(read) {
            let (op, owner) = (Op::Expire(record.key.clone()), record.owner.clone());
            let mut applied = op.run(Some(record), Beside::default(), env);
            for write in &applied.writes {
                self.write(&owner, &intents, &bodies, write, None).await?;
            }
            self.promote(&intents, &mut applied, env.wall).await?;
            if !applied.writes.is_empty() {
                changed.push((op, applied));
            }
        }
        commit(transaction).await?;
        Ok((changed, more))
    }

    /// Gives the first of a lane that was vacated its deadline.
    async fn promote(&self, intents: &ObjectStore, applied: &mut Applied, now: Wall) -> Result<()> {
        if let Some(vacated) = &applied.vacated {
            let first = first_of(intents, vacated).await?;
            let promoted = first.and_then(|first| lane::promote(first, vacated, now));
            if let Some(promoted) = promoted {
                intents.put(&to_row(&promoted), None)?;
                applied.also.push(promoted);
            }
        }
        Ok(())
    }
}

/// Where the rows of a lane are in its index.
fn lane_of(owner: &str, lane: &str) -> Result<Query> {
    let (owner, lane) = (owner.into(), lane.into());
    between(
        &Array::of2(&owner, &lane),
        &Array::of3(&owner, &lane, &Array::new()),
    )
}

/// The place of the last in a lane, also if this build cannot read it; 0 if it is empty.
async fn lane_end(intents: &ObjectStore, owner: &str, lane: &str) -> Result<u64> {
    let last = intents
        .index(LANE)?
        .open_cursor(Some(lane_of(owner, lane)?), Some(CursorDirection::Prev))?
        .await?;
    let last = last.map(|cursor| cursor.value()).transpose()?;
    let place = last.and_then(|row| get(&row, "laneSeq").as_f64());
    Ok(place.unwrap_or(0.0) as u64)
}

/// The first in a lane. One that is damaged holds up nobody; one that a newer build wrote is that build's affair.
async fn first_of(intents: &ObjectStore, vacated: &Vacated) -> Result<Option<Rc<Record>>> {
    let rows = lane_of(&vacated.owner, &vacated.lane)?;
    let rows = intents.index(LANE)?.get_all(Some(rows), Some(DUE_LIMIT))?;
    for row in rows.await? {
        match Record::read(&Js(row)) {
            Ok(first) => return Ok(Some(Rc::new(first))),
            Err(Unreadable::Newer) => break,
            Err(Unreadable::Damaged(_)) => {}
        }
    }
    Ok(None)
}

/// The rows of a `coalesceKey`, but for that of `key`.
async fn twins(
    intents: &ObjectStore,
    owner: &str,
    coalesce_key: &str,
    key: &Key,
) -> Result<Vec<Rc<Record>>> {
    let only = Query::Key(Array::of2(&owner.into(), &coalesce_key.into()).into());
    let rows = intents.index(COALESCE)?.get_all(Some(only), None)?.await?;
    let twins = rows.into_iter().filter_map(read);
    Ok(twins.filter(|twin| twin.key != *key).collect())
}

impl Connection {
    fn let_go(&self) {
        if let Some(database) = self.database.borrow_mut().take() {
            database.close();
        }
    }
}

/// The range behind `lower` and up to `upper`.
fn between(lower: &JsValue, upper: &JsValue) -> Result<Query> {
    Ok(KeyRange::bound(lower, upper, Some(true), None)?.into())
}

/// Asks who the current owner is; [`owner_of`] reads the answer.
fn asked_owner(transaction: &Transaction) -> Result<<GetStoreRequest as IntoFuture>::IntoFuture> {
    let meta = transaction.object_store(META)?;
    Ok(meta.get(JsValue::from_str(OWNER))?.into_future())
}

/// Whatever is no string is nobody.
fn owner_of(record: JsValue) -> Owner {
    get(&record, OWNER).as_string()
}

async fn read_owner(transaction: &Transaction) -> Result<Option<Owner>> {
    Ok(asked_owner(transaction)?.await?.map(owner_of))
}

fn write_owner(transaction: &Transaction, owner: &Owner) -> Result<()> {
    let record = Object::new();
    set(&record, "id", &OWNER.into());
    let owner = owner.as_deref().map_or(JsValue::NULL, JsValue::from_str);
    set(&record, OWNER, &owner);
    transaction.object_store(META)?.put(&record, None)?;
    Ok(())
}

fn read_gate(row: JsValue) -> Option<Gate> {
    let row = Js(row);
    let mut fields = Fields::of(&row, "gate");
    let mut gate = Gate::default();
    gate.fields(&mut fields);
    fields.finish(gate).ok()
}

fn write_gate(gates: &ObjectStore, applied: &Applied) -> Result<()> {
    match (&applied.record, &applied.gate) {
        (_, Some(Some(gate))) => {
            gates.put(&write::<Js>(gate).0, None)?;
        }
        (Some(record), Some(None)) => {
            gates.delete(JsValue::from_str(&record.origin))?;
        }
        _ => {}
    }
    if let (Some(record), Some(closed)) = (&applied.record, applied.sign_in) {
        let id = sign_in(&record.owner, &record.origin);
        if closed {
            let row = Object::new();
            set(&row, "id", &id);
            gates.put(&row, None)?;
        } else {
            gates.delete(id)?;
        }
    }
    Ok(())
}

/// The id of the sign-in gate of an owner at an origin.
fn sign_in(owner: &str, origin: &str) -> JsValue {
    Array::of2(&owner.into(), &origin.into()).into()
}

/// The row, unless this build cannot read it.
fn read(row: JsValue) -> Option<Rc<Record>> {
    Record::read(&Js(row)).ok().map(Rc::new)
}

fn create(database: &Database) -> std::result::Result<(), idb::Error> {
    let store = |name: &str, key_path: Option<KeyPath>| {
        let mut params = ObjectStoreParams::new();
        params.key_path(key_path);
        database.create_object_store(name, params)
    };
    let intents = store(INTENTS, Some(KeyPath::new_array(["owner", "key"])))?;
    for (name, path) in INDEXES {
        let path = KeyPath::new_array(path.iter().copied());
        intents.create_index(name, path, Some(IndexParams::new()))?;
    }
    store(BODIES, None)?;
    store(GATES, Some(KeyPath::new_single("id")))?;
    let meta = store(META, Some(KeyPath::new_single("id")))?;
    // Tells this database from one that was deleted and made again under the same name.
    let birth = Object::new();
    set(&birth, "id", &"birth".into());
    let id = getrandom::u64().unwrap_or_default();
    set(&birth, "birthId", &((id >> 11) as f64).into());
    meta.put(&birth, None)?;
    Ok(())
}

async fn commit(transaction: Transaction) -> Result<()> {
    let result = transaction.commit()?.await?;
    if result.is_committed() {
        Ok(())
    } else {
        // An aborted transaction is no error of idb's.
        Err(StorageError::Failed)
    }
}

fn to_row(record: &Record) -> JsValue {
    debug_assert!(!record.state.is_settled() || record.next_attempt_at.is_none());
    write::<Js>(record).0
}
