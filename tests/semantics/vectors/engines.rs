//! The engines that the tables are run on.

use std::sync::{Arc, Mutex};
use weir_testing::DecideOne as _;

use futures_util::future::join_all;
use weir_core::algorithm::{LimitVerdict, Op, Verdict, VerdictSink as _};
use weir_core::key::Subject;
use weir_core::strategy::{Field, Limit, Strategy};
use weir_store::coalesce::Coalesce;
use weir_store::denials::Denials;
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisStore;
use weir_store::{Answers, Decision, Part, Store, StoreError, Verdicts};
use weir_time::clock::ManualClock;
use weir_units::{LONGEST_SPAN, Micros};

use super::table::Row;
use crate::own_store::store::RedbStore;
use crate::properties::machine::Named;

/// The pure driver over a map of states.
pub struct Pure {
    named: Mutex<Named>,
    clock: ManualClock,
}

impl Pure {
    pub fn new(clock: ManualClock) -> Self {
        Self { named: Mutex::new(Named::empty()), clock }
    }
}

/// A store that may be tried without being changed.
pub trait Fork: Store {
    /// The same states on a clock of their own, if they can be had.
    fn fork(&self) -> Option<Pure> {
        None
    }
}

impl Fork for MemoryStore {}
impl Fork for RedbStore {}
impl Fork for RedisStore {}
impl Fork for Coalesce<Denials<RedisStore>> {}

impl Fork for Pure {
    fn fork(&self) -> Option<Pure> {
        let named = Mutex::new(self.named.lock().unwrap().clone());
        Some(Self { named, clock: ManualClock::at(self.clock.now()) })
    }
}

impl Store for Pure {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let mut named = self.named.lock().unwrap();
        named.machine.now = self.clock.now();
        for Decision { strategy, subject, op, costs, part, .. } in decisions {
            let id = part.map_or("", |part| part.id);
            for &cost in *costs {
                let decided = named.decide_with(strategy, subject, |machine| match id {
                    "" => Ok(machine.decide(*op, cost)),
                    id => machine.decide_once(*op, cost, &format!("{id} of {} {subject:?}", strategy.name())),
                });
                match decided {
                    Ok(answer) => {
                        answers.all(answer.verdict);
                        answers.limits.extend(answer.limits);
                    }
                    Err(known) => answers.fail(1, &StoreError::OtherCost(known)),
                }
            }
        }
    }
}

/// A store on a clock that the rows move.
pub struct Stored<S> {
    store: Arc<S>,
    clock: ManualClock,
    /// Number of callers with different names that make each step at once. All must get the same answer.
    callers: usize,
}

impl<S: Store> Stored<S> {
    pub fn new(store: S, clock: ManualClock) -> Self {
        Self { store: Arc::new(store), clock, callers: 1 }
    }

    pub fn with_callers(self, callers: usize) -> Self {
        Self { callers, ..self }
    }

    /// The store, at a time.
    pub fn at(&self, now: Micros) -> Shared<S> {
        self.clock.set(now);
        Shared(Arc::clone(&self.store))
    }

    /// Decides a row.
    pub async fn step(
        &self,
        strategy: &Arc<Strategy>,
        row: &Row,
        now: Micros,
    ) -> (Verdict, Vec<LimitVerdict>) {
        // Other names get other answers if windows are spread by key, or if a limit counts all callers together.
        let is_named = |limit: &Limit| limit.scope.has(Field::Resource) || limit.scope.has(Field::Consumer);
        let is_alone = |limit: &Limit| is_named(limit) && !limit.algorithm.is_spread();
        let others = if strategy.limits().iter().all(is_alone) { self.callers - 1 } else { 0 };
        let rows = (1..=others).map(|caller| Row {
            resource: format!("{} of {caller}", row.resource),
            consumer: format!("{} of {caller}", row.consumer),
            ..row.clone()
        });
        let rows: Vec<Row> = std::iter::once(row.clone()).chain(rows).collect();
        let answers = join_all(rows.iter().map(|row| self.decide(strategy, row, now))).await;
        assert!(answers.iter().all(|one| *one == answers[0]), "{}: {answers:?}", strategy.name());
        answers.into_iter().next().expect("one at least")
    }

    async fn decide(&self, strategy: &Arc<Strategy>, row: &Row, now: Micros) -> (Verdict, Vec<LimitVerdict>) {
        let part = Part { id: &row.id, ..Part::ALL };
        let part = (!row.id.is_empty()).then_some(&part);
        let decision = Decision { part, ..Decision::new(strategy, subject(row), Op::Peek, &[]) };
        let mut out = Verdicts::default();
        let decided = self.at(now).decide_one(&decision, row.op, &[row.cost], &mut out).await;
        decided.unwrap_or_else(|e| panic!("{}: {e}", strategy.name()));
        let (verdict, limits) = out.get(0).expect("one verdict for one cost");
        assert_eq!(verdict.now, now, "the store decided at another time");
        (*verdict, limits.to_vec())
    }
}

impl<S: Fork> Stored<S> {
    /// Finds the time after the row's attempt at which the next one would pass, a cost of 1 without other traffic: by
    /// search. It is no part of a verdict, so only an engine that can be tried without being changed tells it. A
    /// peek's own attempt is made first: it asks what would happen if it were one.
    pub async fn next_allowed_after(&self, strategy: &Arc<Strategy>, row: &Row, now: Micros) -> Option<u64> {
        let attempt = Row { op: Op::Charge, cost: 1, ..row.clone() };
        let fork = |pure: &Pure| {
            pure.fork().map(|pure| {
                let clock = pure.clock.clone();
                Stored::new(pure, clock)
            })
        };
        let after = self.store.fork().as_ref().and_then(fork)?;
        if row.op == Op::Peek {
            after.step(strategy, &attempt, now).await;
        }
        let (mut low, mut high) = (0, LONGEST_SPAN.0);
        while low < high {
            let middle = low.midpoint(high);
            let then = fork(&after.store)?;
            let (verdict, _) = then.step(strategy, &attempt, Micros(now.0 + middle)).await;
            if verdict.allowed { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

/// A store that others have too.
pub struct Shared<S>(Arc<S>);

impl<S: Store> Store for Shared<S> {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        self.0.decide(decisions, answers);
    }
}

fn subject(row: &Row) -> Subject<'_> {
    Subject { resource: &row.resource, consumer: &row.consumer, ..Subject::default() }
}
