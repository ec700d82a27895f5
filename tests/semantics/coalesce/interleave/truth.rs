//! The executed calls, and the search for the place of an answer among them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::task::Id;
use weir_core::algorithm::{Cause, LimitVerdict, Op, Verdict};
use weir_core::key::write_tag;
use weir_core::strategy::{Strategy, StrategyId};
use weir_store::Verdicts;
use weir_units::Micros;

use crate::denials::random::{BLUR, SUBJECTS};
use crate::properties::machine::{Answer, Machine, Named};

/// Some questions about the same keys.
#[derive(Debug, Clone)]
pub struct Asked {
    pub strategy: Arc<Strategy>,
    pub whose: usize,
    pub op: Op,
    pub costs: Vec<u64>,
    /// The task that asks: a caller's own, or one for several of them.
    pub by: Option<Id>,
}

/// One of them, as far as it is another one.
type Question = (StrategyId, Op, u64);

/// All counters, by the keys that share them.
#[derive(Default)]
pub struct Truth {
    objects: HashMap<Vec<u8>, Object>,
    /// The tasks of callers that ask for themselves only.
    callers: HashSet<Id>,
}

/// Counters that are decided in one order.
struct Object {
    /// Before the first change, and after each.
    states: Vec<Named>,
    changes: Vec<Change>,
    /// Questions whose callers gave up: no caller receives the answer of such a change.
    given_up: Vec<Question>,
    denials: Vec<ReceivedDenial>,
    /// The highest place among the states of an answer that a caller has received.
    last_seen: usize,
}

/// A decision that changed the state, and whether a caller received its answer.
struct Change {
    question: Question,
    answer: Answer,
    /// The task that made it.
    by: Option<Id>,
    is_reported: bool,
}

/// A denial that a worker received.
struct ReceivedDenial {
    strategy: StrategyId,
    cost: u64,
    sent: u64,
    /// The time between the decision and its receipt.
    late: u64,
    received: u64,
    reset: u64,
}

impl Asked {
    fn object(&self) -> Vec<u8> {
        let (mut name, subject) = (Vec::new(), &SUBJECTS[self.whose]);
        if self.strategy.shares_counters() {
            write_tag(&mut name, &self.strategy, subject);
        } else {
            for field in self.strategy.fields().fields() {
                name.extend_from_slice(subject.field(field).as_bytes());
                name.push(0);
            }
        }
        name
    }

    fn question(&self, cost: u64) -> Question {
        (self.strategy.id(), self.op, cost)
    }

    /// Returns true if a decision with this answer changed the state.
    fn changes(&self, cost: u64, verdict: &Verdict) -> bool {
        let counts_denied = || self.strategy.algorithms().iter().any(|limit| limit.counts_denied());
        let does = verdict.allowed || counts_denied();
        self.op == Op::Reset || self.op != Op::Peek && cost > 0 && does
    }
}

impl Truth {
    fn object(&mut self, asked: &Asked) -> &mut Object {
        self.objects.entry(asked.object()).or_insert_with(|| Object {
            states: vec![Named::new(&asked.strategy)],
            changes: Vec::new(),
            given_up: Vec::new(),
            denials: Vec::new(),
            last_seen: 0,
        })
    }

    /// The state of its counters under its limits of now.
    pub fn machine(&mut self, asked: &Asked, now: Micros) -> Machine {
        let mut machine = self.object(asked).newest().machine.clone();
        machine.limits = asked.strategy.algorithms().to_vec();
        machine.now = now;
        machine
    }

    pub fn execute(&mut self, asked: &Asked, now: Micros) -> Verdicts {
        let (object, mut out) = (self.object(asked), Verdicts::default());
        for &cost in &asked.costs {
            let mut state = object.newest().clone();
            let answer = decide(&mut state, asked, cost, now);
            out.decisions.push(answer.verdict);
            out.limits.extend(answer.limits.iter().copied());
            if asked.changes(cost, &answer.verdict) {
                let (question, by) = (asked.question(cost), asked.by);
                object.changes.push(Change { question, answer, by, is_reported: false });
                object.states.push(state);
            }
        }
        out
    }

    /// A worker receives the answers.
    pub fn receive(&mut self, asked: &Asked, answers: &Verdicts, sent: u64, now: Micros) {
        for (index, &cost) in asked.costs.iter().enumerate() {
            let (verdict, limits) = answers.get(index).unwrap();
            let reset = limits.iter().map(|one| one.reset_after.0).min().unwrap_or(0);
            let late = now.0 - verdict.now.0;
            let strategy = asked.strategy.id();
            self.object(asked).denials.push(ReceivedDenial {
                strategy,
                cost,
                sent,
                late,
                received: now.0,
                reset,
            });
        }
    }

    pub fn give_up(&mut self, asked: &Asked) {
        for &cost in &asked.costs {
            self.object(asked).given_up.push(asked.question(cost));
        }
    }

    /// A caller asks.
    pub fn asks(&mut self, caller: Id) {
        self.callers.insert(caller);
    }

    pub fn last_seen(&mut self, asked: &Asked) -> usize {
        self.object(asked).last_seen
    }

    /// A caller receives answers `now`. When it asked, `first` was the highest place that any caller had seen.
    pub fn observe(
        &mut self,
        asked: &Asked,
        answers: &Verdicts,
        first: usize,
        now: Micros,
    ) -> Result<(), String> {
        let place = self.place(asked, answers, first, now)?;
        let object = self.object(asked);
        object.last_seen = object.last_seen.max(place);
        Ok(())
    }

    /// The first place, from `first` on, that these answers of `now` have among the changes.
    fn place(
        &mut self,
        asked: &Asked,
        answers: &Verdicts,
        first: usize,
        now: Micros,
    ) -> Result<usize, String> {
        let callers = std::mem::take(&mut self.callers);
        let by_caller = |change: &Change| change.by.is_some_and(|by| callers.contains(&by));
        let object = self.object(asked);
        let has_own = object.changes.iter().any(|change| change.by == asked.by);
        let mut place = first;
        for (index, &cost) in asked.costs.iter().enumerate() {
            let (verdict, limits) = answers.get(index).ok_or("it has no verdict")?;
            let found = if asked.changes(cost, verdict) {
                object.change(place, asked.question(cost), (verdict, limits), |change| {
                    if has_own { change.by == asked.by } else { !by_caller(change) }
                })
            } else {
                object.look(place, asked, cost, (verdict, limits), now)
            };
            let said = || {
                let then: Vec<_> = object.states[first..]
                    .iter()
                    .map(|state| decide(&mut state.clone(), asked, cost, verdict.now))
                    .collect();
                format!(
                    "{asked:?}: no place from {place} on for {verdict:?} {limits:?} at {now:?}, but {then:#?}"
                )
            };
            place = found.ok_or_else(said)?;
        }
        self.callers = callers;
        Ok(place)
    }

    /// All callers have their answers. Every change must have reached its caller, if the caller did not give up.
    pub fn end(&mut self) -> Result<(), String> {
        for object in self.objects.values_mut() {
            for change in object.changes.iter().filter(|change| !change.is_reported) {
                let left = object.given_up.iter().position(|question| *question == change.question);
                let left = left
                    .ok_or_else(|| format!("no caller received {:?} {:?}", change.question, change.answer))?;
                object.given_up.swap_remove(left);
            }
        }
        Ok(())
    }
}

impl Object {
    fn newest(&self) -> &Named {
        self.states.last().unwrap()
    }

    /// The place after the first change from `first` on that satisfies `own` and has this question and answer.
    fn change(
        &mut self,
        first: usize,
        question: Question,
        says: (&Verdict, &[LimitVerdict]),
        own: impl Fn(&Change) -> bool,
    ) -> Option<usize> {
        let is_it = |change: &Change| {
            let answer = (&change.answer.verdict, &change.answer.limits[..]);
            !change.is_reported && own(change) && change.question == question && answer == says
        };
        let index = first + self.changes.get(first..)?.iter().position(is_it)?;
        self.changes[index].is_reported = true;
        Some(index + 1)
    }

    /// The first state that explains an answer which changed nothing. The answer is as old as its way from the store took.
    fn look(
        &self,
        first: usize,
        asked: &Asked,
        cost: u64,
        (verdict, limits): (&Verdict, &[LimitVerdict]),
        now: Micros,
    ) -> Option<usize> {
        let age = now.0.checked_sub(verdict.now.0)?;
        let mut denials = self
            .denials
            .iter()
            .filter(|denial| (denial.strategy, denial.cost) == (asked.strategy.id(), cost));
        if !denials.clone().any(|denial| denial.late == age) {
            return None;
        }
        let blurs = denials.any(|denial| {
            now.0 > denial.received
                && now.0 - denial.sent < BLUR.min(denial.reset.div_ceil(16))
                && denial.late == age
        });
        let is_same = |state: &Named| {
            let truth = decide(&mut state.clone(), asked, cost, verdict.now);
            truth.verdict == *verdict
                && (answers_alike(limits, &truth.limits) || blurs && is_blurred(limits, &truth.limits))
        };
        Some(first + self.states.get(first..)?.iter().position(is_same)?)
    }
}

/// Returns true if both answers are the same for a caller. `level_before` is not in an answer, and a cached denial
/// does not keep it up to date.
fn answers_alike(own: &[LimitVerdict], truth: &[LimitVerdict]) -> bool {
    let answered = |limits: &[LimitVerdict]| -> Vec<LimitVerdict> {
        limits.iter().map(|limit| LimitVerdict { level_before: 0, ..*limit }).collect()
    };
    answered(own) == answered(truth)
}

/// A cached denial may show an older `remaining`. It may also name the count as its cause, when only the gap is left.
fn is_blurred(own: &[LimitVerdict], truth: &[LimitVerdict]) -> bool {
    own.iter().zip(truth).all(|(own, truth)| {
        let lacks = (truth.cause, own.cause) == (Some(Cause::MinGap), Some(Cause::Count));
        let cause = if lacks { truth.cause } else { own.cause };
        own.remaining <= truth.remaining
            && LimitVerdict { remaining: truth.remaining, level_before: truth.level_before, cause, ..*own }
                == *truth
    })
}

fn decide(state: &mut Named, asked: &Asked, cost: u64, now: Micros) -> Answer {
    state.machine.now = now;
    state.decide(&asked.strategy, &SUBJECTS[asked.whose], asked.op, cost)
}
