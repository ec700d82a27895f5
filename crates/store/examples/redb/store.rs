//! A store of one's own: the states of limits in a file, on the embedded database redb. It shows how little a store of Rust
//! is: names of keys, the pure driver over loaded states, and states as numbers. docs/stores.md goes through it.
//!
//! ```text
//!   decide ── one transaction ─┬─ load     names of keys → states
//!                              ├─ decide   the driver of weir-core, which all engines share
//!                              └─ save     states that changed, with their expiry
//! ```
//!
//! A round is one transaction, so all its charges are made or none. It is durable with the next sweep, at most a second
//! later: a crash loses charges of the last second and never damages the file. The file holds at most `MAX_KEYS` keys.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use redb::{Database, Durability, ReadableTable, ReadableTableMetadata, Table, TableDefinition};
use weir_core::algorithm::{
    Algorithm, Cells, Kept, NotOnce, OnceRecord, RecordCells, State, decide, decide_once,
};
use weir_core::key;
use weir_store::{
    Answers, BudgetDecision, Decision, Once, REFUND_ID_LASTS, Store, StoreAnswer, StoreError, Verdicts,
    check_supported,
};
use weir_time::clock::Clock;
use weir_units::Micros;

/// By the name of a key: when the state expires, and the state as numbers.
const STATES: TableDefinition<&[u8], (u64, Vec<u64>)> = TableDefinition::new("states");

type States<'t> = Table<'t, &'static [u8], (u64, Vec<u64>)>;

/// The most keys of a file.
const MAX_KEYS: u64 = 1_000_000;

/// Keys that a sweep looks at.
const SWEPT_AT_ONCE: usize = 10_000;

/// States in a file. Clones share it.
#[derive(Clone)]
pub(crate) struct RedbStore(Arc<OpenFile>);

struct OpenFile {
    database: Database,
    clock: Clock,
    /// Begin of the next sweep.
    sweep_from: Mutex<Vec<u8>>,
}

impl RedbStore {
    /// Opens the file, or creates it.
    pub(crate) fn open(file: &Path, clock: Clock) -> Result<Self, redb::Error> {
        let (database, sweep_from) = (Database::create(file)?, Mutex::default());
        let store = Self(Arc::new(OpenFile { database, clock, sweep_from }));
        store.in_transaction(Durability::Immediate, |_| Ok(()))?;
        Ok(store)
    }

    /// Drops expired keys, and makes all charges so far durable.
    pub(crate) fn sweep(&self) -> Result<(), redb::Error> {
        let now = self.0.clock.now();
        let mut from = self.0.sweep_from.lock().unwrap_or_else(PoisonError::into_inner);
        self.in_transaction(Durability::Immediate, |states| {
            let (mut expired, mut last) = (Vec::new(), None);
            for entry in states.range(&from[..]..)?.take(SWEPT_AT_ONCE) {
                let (name, state) = entry?;
                if state.value().0 <= now.0 {
                    expired.push(name.value().to_vec());
                }
                last = Some(name.value().to_vec());
            }
            for name in expired {
                states.remove(&name[..])?;
            }
            // From the first key again once the last was looked at.
            *from = last.unwrap_or_default();
            Ok(())
        })
    }

    fn in_transaction(
        &self,
        durability: Durability,
        work: impl FnOnce(&mut States<'_>) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let mut transaction = self.0.database.begin_write()?;
        transaction.set_durability(durability)?;
        work(&mut transaction.open_table(STATES)?)?;
        Ok(transaction.commit()?)
    }
}

impl Store for RedbStore {
    // It answers in `decide`. A store that waits for another machine answers with a future instead.
    const AT_ONCE: bool = true;

    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let now = self.0.clock.now();
        let mut decided = Answers::default();
        let work = |states: &mut States<'_>| {
            decisions.iter().try_for_each(|decision| decide_in_turn(decision, states, now, &mut decided))
        };
        match self.in_transaction(Durability::None, work) {
            Ok(()) => {
                answers.each.extend(decided.each);
                answers.limits.extend(decided.limits);
            }
            // Nothing is charged: the transaction was not committed.
            Err(error) => {
                let error = StoreError::Unavailable(error.to_string().into());
                decisions.iter().for_each(|decision| answers.fail(decision.costs.len(), &error));
            }
        }
    }

    fn decide_costs(&self, _: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        let why = "the store on redb has no costs by limit and no holds; the memory store and Redis have";
        StoreAnswer::Ready(Err(StoreError::Unsupported(why)))
    }
}

/// Decides all costs of one decision; an error is of the file, and ends the round.
fn decide_in_turn(
    decision: &Decision<'_>,
    states: &mut States<'_>,
    now: Micros,
    answers: &mut Answers,
) -> Result<(), redb::Error> {
    let supported = match decision.strategy.approximate() {
        Some(_) => Err(StoreError::Unsupported(
            "the store on redb has no counting on the node, which `approximate` is; Redis has",
        )),
        None => check_supported(decision),
    };
    let loaded = match supported {
        Ok(()) => LoadedCells::load(decision, states, now)?,
        Err(error) => Err(error),
    };
    let mut cells = match loaded {
        Ok(cells) => cells,
        Err(error) => {
            answers.fail(decision.costs.len(), &error);
            return Ok(());
        }
    };
    let limits: Vec<Algorithm> = decision.limits().map(|limit| limit.algorithm).collect();
    for &cost in decision.costs {
        let (op, cells) = (decision.op, &mut cells);
        let decided = match decision.once() {
            Some(Once::Record(..)) => decide_once(&limits, cells, op, cost, now, answers),
            // A repeated refund gives nothing back.
            Some(Once::Marker(_)) if cells.is_marked() => {
                decide(&limits, cells, op, 0, now, answers).map_err(NotOnce::Full)
            }
            Some(Once::Marker(_)) => {
                let marked = cells.mark();
                marked.and_then(|()| decide(&limits, cells, op, cost, now, answers)).map_err(NotOnce::Full)
            }
            None => decide(&limits, cells, op, cost, now, answers).map_err(NotOnce::Full),
        };
        match decided {
            Ok(()) => {}
            Err(NotOnce::OtherCost(known)) => answers.fail(1, &StoreError::OtherCost(known)),
            Err(NotOnce::Full(FileIsFull)) => {
                let why = format!("the file has {MAX_KEYS} keys, and no room for another one");
                answers.fail(1, &StoreError::Refused(why.into()));
            }
        }
    }
    cells.save(states)
}

/// The file has as many keys as it may have.
#[derive(Debug, Clone, Copy)]
struct FileIsFull;

/// The states of a decision, and beside them the record or the marker of its id.
struct LoadedCells {
    limits: Vec<LoadedCell>,
    beside: LoadedCell,
    room: u64,
    now: Micros,
}

#[derive(Default)]
struct LoadedCell {
    name: Vec<u8>,
    state: Option<State>,
    /// New expiry, if it changed.
    changed: Option<u64>,
}

impl LoadedCells {
    fn load(
        decision: &Decision<'_>,
        states: &States<'_>,
        now: Micros,
    ) -> Result<Result<Self, StoreError>, redb::Error> {
        let (strategy, subject) = (&**decision.strategy, &decision.subject);
        let names = decision.limits().map(|limit| {
            let mut name = Vec::new();
            key::write_name(&mut name, strategy, limit, subject);
            name
        });
        let mut beside = Vec::new();
        match decision.once() {
            Some(Once::Record(operation, id)) => {
                key::write_record_name(&mut beside, operation, strategy, subject, id);
            }
            Some(Once::Marker(id)) => key::write_refund_name(&mut beside, strategy, subject, id),
            None => {}
        }
        let mut cells = Vec::new();
        for name in names.chain([beside]) {
            let numbers = if name.is_empty() { None } else { states.get(&name[..])? };
            let state = numbers.map(|found| State::from_numbers(&found.value().1));
            if state == Some(None) {
                return Ok(Err(StoreError::Unreadable(String::from_utf8_lossy(&name).into())));
            }
            cells.push(LoadedCell { name, state: state.flatten(), changed: None });
        }
        let beside = cells.pop().unwrap_or_default();
        Ok(Ok(Self { limits: cells, beside, room: MAX_KEYS.saturating_sub(states.len()?), now }))
    }

    fn save(self, states: &mut States<'_>) -> Result<(), redb::Error> {
        for LoadedCell { name, state, changed } in self.limits.into_iter().chain([self.beside]) {
            let Some(expires) = changed else { continue };
            match state.and_then(|state| state.to_numbers()) {
                Some(numbers) => drop(states.insert(&name[..], (expires, numbers))?),
                None => drop(states.remove(&name[..])?),
            }
        }
        Ok(())
    }

    fn is_marked(&self) -> bool {
        matches!(self.beside.state, Some(State::Marker { until }) if until > self.now)
    }

    fn mark(&mut self) -> Result<(), FileIsFull> {
        self.reserve(1)?;
        let until = Micros(self.now.0 + REFUND_ID_LASTS.0);
        (self.beside.state, self.beside.changed) = (Some(State::Marker { until }), Some(until.0));
        Ok(())
    }
}

impl Cells for LoadedCells {
    type Full = FileIsFull;

    fn get(&self, index: usize) -> Option<&State> {
        self.limits.get(index)?.state.as_ref()
    }

    fn phase(&self, index: usize) -> u64 {
        self.limits.get(index).map_or(0, |cell| key::phase(&cell.name))
    }

    fn reserve(&mut self, count: usize) -> Result<(), FileIsFull> {
        if count as u64 > self.room { Err(FileIsFull) } else { Ok(()) }
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        let Some(cell) = self.limits.get_mut(index) else { return };
        let kept = change(&mut cell.state);
        cell.changed = Some(self.now.0.saturating_add(kept.lasts.0));
    }
}

impl RecordCells for LoadedCells {
    fn record(&self) -> Option<OnceRecord> {
        match &self.beside.state {
            Some(State::Record(record)) => Some(**record),
            _ => None,
        }
    }

    fn put_record(&mut self, record: OnceRecord) -> Result<(), FileIsFull> {
        self.reserve(usize::from(self.beside.state.is_none()))?;
        self.beside.changed = Some(record.until);
        self.beside.state = Some(State::Record(Box::new(record)));
        Ok(())
    }

    fn clear_record(&mut self) {
        (self.beside.state, self.beside.changed) = (None, Some(0));
    }
}
