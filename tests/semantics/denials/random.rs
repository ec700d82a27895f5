//! On random strategies and traces: what is answered without the store is what the store would have said.
//!
//! Limits of other scopes share counters, an override has other numbers for the same ones, a resource has a
//! routing group, and two workers of a node ask. Only the clock of both is the same, and goes forward.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_testing::DecideOne as _;
use weir_testing::rules::numbered_limits;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Cause, LimitVerdict, Op, VerdictSink as _};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field};
use weir_store::denials::{Denials, DenialsShared};
use weir_store::{Answers, Decision, Store, Verdicts};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::Micros;

use crate::properties::machine::{Named, START};
use crate::properties::random::{self, Step};

pub type Rules = Arc<weir_core::strategy::Strategy>;

pub const SUBJECTS: [Subject<'_>; 4] = [
    subject("plain", "bob", None),
    subject("plain", "eve", None),
    subject("grouped", "bob", Some("group")),
    subject("raised", "bob", None),
];

/// Under which an override decides.
pub const RAISED: usize = 3;

/// The largest age of a cached `remaining`, in microseconds, if it may grow before the cost is admitted.
pub const BLUR: u64 = 10_000;

const fn subject(
    resource: &'static str,
    consumer: &'static str,
    group: Option<&'static str>,
) -> Subject<'static> {
    Subject { resource, consumer, group, attributes: weir_core::strategy::Attributes::NONE }
}

/// A limit, what an override has instead, and which fields it counts by.
pub type Scoped = (Algorithm, Algorithm, usize);

/// One question: the step, the subject, the worker, and the costs after the first, as differences from it.
pub type Asked = (Step, usize, usize, Vec<Cost>);

#[derive(Debug, Clone, Copy)]
pub enum Cost {
    Same,
    OneMore,
    One,
    Nothing,
}

/// To which worker, about which fields, under the override or not, and the cost.
type Question = (usize, Vec<&'static str>, bool, u64);

const SCOPES: [&[Field]; 3] = [&[Field::Resource, Field::Consumer], &[Field::Consumer], &[Field::Resource]];

/// Of a name that was not there before.
pub fn rules(limits: &[Scoped]) -> [Rules; 2] {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("random-{}", NAMES.fetch_add(1, SeqCst));
    let scoped = |(algorithm, _, scope): &Scoped| (SCOPES[*scope], *algorithm);
    let own = |single_slot| {
        let limits = numbered_limits(limits.iter().map(scoped));
        weir_core::strategy::Strategy::new(&name, limits, single_slot, FailurePolicy::Error)
    };
    let own = own(false).or_else(|_| own(true)).unwrap();
    let mut raised = own.clone();
    for (index, (_, other, _)) in limits.iter().enumerate() {
        // Only what counts by consumer can be overridden.
        let _ = raised.override_limit(&format!("limit-{index}"), *other);
    }
    [Arc::new(own), Arc::new(raised)]
}

pub fn scoped() -> impl Strategy<Value = Scoped> {
    let pair = prop_oneof![
        (random::bucket(), random::bucket()),
        (random::window(), random::window()),
        (random::interval(), random::interval()),
        (random::log(), random::log()),
        (random::sliding(), random::sliding()),
        (random::slots(), random::slots()),
    ];
    (pair.boxed(), prop_oneof![3 => Just(0_usize), 2 => Just(1), 1 => Just(2)])
        .prop_map(|((own, other), scope)| (own, other, scope))
}

pub fn asked() -> impl Strategy<Value = Asked> {
    let op = prop_oneof![2 => Just(Op::Charge), 1 => random::op()];
    let whose = prop_oneof![3 => Just(0_usize), 1 => 1..SUBJECTS.len()];
    let cost = prop_oneof![2 => Just(Cost::Same), 1 => Just(Cost::OneMore), 2 => Just(Cost::One), 1 => Just(Cost::Nothing)];
    let more = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(cost, 1..4)];
    (random::step(op.boxed()), whose, prop::bool::weighted(0.2).prop_map(usize::from), more)
}

/// The pure driver as a store: it forgets nothing, also where an override and its strategy would forget one
/// another's states at different times.
#[derive(Clone)]
struct Pure {
    named: Arc<Mutex<Named>>,
    calls: Arc<AtomicUsize>,
}

impl Store for Pure {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            self.calls.fetch_add(1, SeqCst);
            for &cost in decision.costs {
                let mut named = self.named.lock();
                let answer = named.decide(decision.strategy, &decision.subject, decision.op, cost);
                answers.all(answer.verdict);
                answers.limits.extend(answer.limits);
            }
        }
    }
}

/// Two workers in front of one store. The pure driver gets the same questions.
struct Both {
    clock: ManualClock,
    store: Pure,
    workers: [Denials<Pure>; 2],
    /// The time at which a worker last asked the store each question, and the shortest `reset_after` of the answer.
    last_answers: HashMap<Question, (u64, u64)>,
}

impl Both {
    fn new() -> Self {
        let clock = ManualClock::at(Micros(START));
        let gate = Algorithm::uniform(Micros(1)).unwrap();
        let named = Arc::new(Mutex::new(Named::new(&rules(&[(gate, gate, 0)])[0])));
        let store = Pure { named, calls: Arc::default() };
        let denials =
            DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&Clock::Manual(clock.clone())));
        let workers = [denials.before(store.clone()), denials.before(store.clone())];
        Self { clock, store, workers, last_answers: HashMap::new() }
    }

    fn tell(&mut self, limits: &[Scoped], steps: &[Asked]) -> Result<usize, TestCaseError> {
        let rules = rules(limits);
        let mut pure = Named::new(&rules[0]);
        let mut known = 0;
        self.last_answers.clear();
        for (step, whose, worker, more) in steps {
            let strategy = &rules[usize::from(*whose == RAISED)];
            pure.machine.limits = strategy.algorithms().to_vec();
            let (op, first) = pure.machine.advance(step);
            let costs = costs(op, first, more);
            let now = pure.machine.now;
            self.clock.set(now);
            self.store.named.lock().machine.now = now;
            let subject = SUBJECTS[*whose];
            let truth = costs.iter().map(|&cost| pure.decide(strategy, &subject, op, cost));
            let truth: Vec<_> = truth.collect();
            let decision = Decision::new(strategy, subject, Op::Peek, &[]);
            let mut out = Verdicts::default();
            let before = self.store.calls.load(SeqCst);
            let asked = self.workers[*worker].decide_one(&decision, op, &costs, &mut out).now_or_never();
            asked.unwrap().unwrap();
            let is_known = self.store.calls.load(SeqCst) == before;
            known += usize::from(is_known);
            for (index, (&cost, truth)) in costs.iter().zip(&truth).enumerate() {
                let (verdict, limits) = out.get(index).unwrap();
                let mut limits = limits.to_vec();
                let fields = strategy.fields().fields().iter().map(|field| subject.field(field));
                let question = (*worker, fields.collect::<Vec<_>>(), *whose == RAISED, cost);
                if is_known {
                    found_before(&mut limits, &truth.limits)?;
                    let (at, reset) = self.last_answers[&question];
                    if now.0 - at < BLUR.min(reset.div_ceil(16)) {
                        blur(&mut limits, &truth.limits)?;
                    }
                } else {
                    let reset = limits.iter().map(|one| one.reset_after.0).min().unwrap_or(0);
                    self.last_answers.insert(question, (now.0, reset));
                }
                prop_assert_eq!(
                    (verdict, &limits[..]),
                    (&truth.verdict, &truth.limits[..]),
                    "denials are left"
                );
            }
        }
        Ok(known)
    }
}

/// Several costs are only ever charged, or looked at.
pub fn costs(op: Op, first: u64, more: &[Cost]) -> Vec<u64> {
    let cost = |cost: &Cost| match cost {
        Cost::Same => first,
        Cost::OneMore => first.saturating_add(1),
        Cost::One => 1,
        Cost::Nothing => 0,
    };
    let more = if matches!(op, Op::Charge | Op::Peek) { more } else { &[] };
    std::iter::once(first).chain(more.iter().map(cost)).collect()
}

/// A cached denial tells the level that the store found when it was asked, which only falls.
fn found_before(own: &mut [LimitVerdict], truth: &[LimitVerdict]) -> Result<(), TestCaseError> {
    for (own, truth) in own.iter_mut().zip(truth) {
        prop_assert!(own.level_before >= truth.level_before);
        own.level_before = truth.level_before;
    }
    Ok(())
}

/// Replaces what a cached answer may say late by the true values.
fn blur(own: &mut [LimitVerdict], truth: &[LimitVerdict]) -> Result<(), TestCaseError> {
    for (own, truth) in own.iter_mut().zip(truth) {
        prop_assert!(own.remaining <= truth.remaining);
        own.remaining = truth.remaining;
        // A gap denies longer than what then no longer lacks.
        if truth.cause == Some(Cause::MinGap) && own.cause == Some(Cause::Count) {
            own.cause = truth.cause;
        }
    }
    Ok(())
}

#[test]
fn what_is_known_is_what_the_store_says() {
    let mut both = Both::new();
    let story = (prop::collection::vec(scoped(), 1..=3), prop::collection::vec(asked(), 1..60));
    random::tell(file!(), 1, &story, |(limits, steps)| both.tell(&limits, &steps));
}
