//! What was executed, and whether an answer has a place among it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::task::Id;
use weir::algorithm::{Cause, LimitVerdict, Op, Verdict};
use weir::key::write_tag;
use weir::store::Verdicts;
use weir::strategy::{Strategy, StrategyId};
use weir::units::Micros;

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

/// All counters, by who has some in common.
#[derive(Default)]
pub struct Truth {
    objects: HashMap<Vec<u8>, Object>,
    /// Those who ask for themselves only.
    callers: HashSet<Id>,
}

/// Counters that are decided in one order.
struct Object {
    /// Before the first change, and after each.
    states: Vec<Named>,
    changes: Vec<Change>,
    /// Questions that were given up: a change of theirs may be nobody's.
    given_up: Vec<Question>,
    told: Vec<Told>,
    /// The last place of an answer that somebody has heard.
    heard: usize,
}

/// What changed something, and whether somebody was told.
struct Change {
    question: Question,
    answer: Answer,
    /// The task that made it.
    by: Option<Id>,
    is_told: bool,
}

/// A denial that a worker received.
struct Told {
    strategy: StrategyId,
    cost: u64,
    sent: u64,
    /// How long before it was received it was decided.
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

    /// Whether one that was answered so has changed anything.
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
            told: Vec::new(),
            heard: 0,
        })
    }

    /// Its limits now, and what was answered last.
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
                object.changes.push(Change { question, answer, by, is_told: false });
                object.states.push(state);
            }
        }
        out
    }

    /// A worker hears of it.
    pub fn told(&mut self, asked: &Asked, answers: &Verdicts, sent: u64, now: Micros) {
        for (index, &cost) in asked.costs.iter().enumerate() {
            let (verdict, limits) = answers.get(index).unwrap();
            let reset = limits.iter().map(|one| one.reset_after.0).min().unwrap_or(0);
            let late = now.0 - verdict.now.0;
            let strategy = asked.strategy.id();
            self.object(asked).told.push(Told { strategy, cost, sent, late, received: now.0, reset });
        }
    }

    pub fn give_up(&mut self, asked: &Asked) {
        for &cost in &asked.costs {
            self.object(asked).given_up.push(asked.question(cost));
        }
    }

    /// Somebody asks.
    pub fn asks(&mut self, caller: Id) {
        self.callers.insert(caller);
    }

    pub fn heard(&mut self, asked: &Asked) -> usize {
        self.object(asked).heard
    }

    /// Somebody hears answers `now`, who has asked when `first` was the last place of what had been heard.
    pub fn hear(
        &mut self,
        asked: &Asked,
        answers: &Verdicts,
        first: usize,
        now: Micros,
    ) -> Result<(), String> {
        let place = self.place(asked, answers, first, now)?;
        let object = self.object(asked);
        object.heard = object.heard.max(place);
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

    /// Everybody has been told.
    pub fn end(&mut self) -> Result<(), String> {
        for object in self.objects.values_mut() {
            for change in object.changes.iter().filter(|change| !change.is_told) {
                let left = object.given_up.iter().position(|question| *question == change.question);
                let left = left
                    .ok_or_else(|| format!("nobody was told of {:?} {:?}", change.question, change.answer))?;
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

    /// Where `own` of the changes was answered so.
    fn change(
        &mut self,
        first: usize,
        question: Question,
        says: (&Verdict, &[LimitVerdict]),
        own: impl Fn(&Change) -> bool,
    ) -> Option<usize> {
        let is_it = |change: &Change| {
            let answer = (&change.answer.verdict, &change.answer.limits[..]);
            !change.is_told && own(change) && change.question == question && answer == says
        };
        let index = first + self.changes.get(first..)?.iter().position(is_it)?;
        self.changes[index].is_told = true;
        Some(index + 1)
    }

    /// Told later than it was decided by no more than it was on its way.
    fn look(
        &self,
        first: usize,
        asked: &Asked,
        cost: u64,
        (verdict, limits): (&Verdict, &[LimitVerdict]),
        now: Micros,
    ) -> Option<usize> {
        let age = now.0.checked_sub(verdict.now.0)?;
        let mut told =
            self.told.iter().filter(|told| (told.strategy, told.cost) == (asked.strategy.id(), cost));
        if !told.clone().any(|told| told.late == age) {
            return None;
        }
        let blurs = told.any(|told| {
            now.0 > told.received && now.0 - told.sent < BLUR.min(told.reset.div_ceil(16)) && told.late == age
        });
        let is_same = |state: &Named| {
            let truth = decide(&mut state.clone(), asked, cost, verdict.now);
            truth.verdict == *verdict
                && (is_told_alike(limits, &truth.limits) || blurs && is_blurred(limits, &truth.limits))
        };
        Some(first + self.states.get(first..)?.iter().position(is_same)?)
    }
}

/// Callers are not told the level that a decision found, and a denial that is known does not keep it up to date.
fn is_told_alike(own: &[LimitVerdict], truth: &[LimitVerdict]) -> bool {
    let told = |limits: &[LimitVerdict]| -> Vec<LimitVerdict> {
        limits.iter().map(|limit| LimitVerdict { level_before: 0, ..*limit }).collect()
    };
    told(own) == told(truth)
}

/// What remains may be told as it was, and that it lacks what no more is lacking but for a gap.
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
