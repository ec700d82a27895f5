//! The pure driver with its states in a vector, the thing that the properties are about; or in a map by
//! name, for comparing it with a store.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use weir_core::algorithm::{
    Algorithm, Cells, Kept, LimitVerdict, NotOnce, OnceRecord, Op, RecordCells, State, Summary, Verdict,
    decide, decide_once,
};
use weir_core::key::{Subject, phase, write_name};
use weir_core::strategy::{Limit, Strategy};
use weir_store::Verdicts;
use weir_units::{Micros, Retry};

use super::random::{Cost, Pause, Step, supported};

/// 2024-01-01T00:00:00Z, and a little, so that no grid starts here.
pub const START: u64 = 1_704_067_200_000_123;

/// Limits, their states, and a clock.
#[derive(Debug, Clone)]
pub struct Machine {
    pub limits: Vec<Algorithm>,
    pub states: Vec<Option<State>>,
    pub now: Micros,
    /// The place of each limit's key in a spread window.
    pub phases: Vec<u64>,
    /// The records of decisions under ids.
    pub records: HashMap<String, OnceRecord>,
    last: Option<Answer>,
}

/// Everything that one decision says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub verdict: Verdict,
    pub limits: Vec<LimitVerdict>,
    pub all: Summary,
}

impl Machine {
    pub fn new(limits: Vec<Algorithm>) -> Self {
        let states = vec![None; limits.len()];
        let phases = (0..limits.len() as u64).map(|index| index * 7_000_003).collect();
        Self { limits, states, now: Micros(START), phases, records: HashMap::new(), last: None }
    }

    /// The same limits at the same time, never used.
    pub fn fresh(&self) -> Self {
        Self { states: vec![None; self.limits.len()], records: HashMap::new(), ..self.clone() }
    }

    /// Limit `index` alone, with its state.
    pub fn alone(&self, index: usize) -> Self {
        let (limits, states) = (vec![self.limits[index]], vec![self.states[index].clone()]);
        let (phases, records) = (vec![self.phases[index]], HashMap::new());
        Self { limits, states, now: self.now, phases, records, last: None }
    }

    pub fn decide(&mut self, op: Op, cost: u64) -> Answer {
        let (mut out, cells) = (Verdicts::default(), VecCells(&mut self.states, &self.phases));
        let Ok(()) = decide(&self.limits, cells, op, cost, self.now, &mut out);
        let (verdict, limits) = (out.decisions[0], out.limits.into_vec());
        let answer = Answer { verdict, all: Summary::new(&self.limits, &limits), limits };
        self.last = Some(answer.clone());
        answer
    }

    /// Decides under an id; `Err` is the cost that it is known with.
    pub fn decide_once(&mut self, op: Op, cost: u64, id: &str) -> Result<Answer, u64> {
        let (mut out, states) = (Verdicts::default(), VecCells(&mut self.states, &self.phases));
        let cells = OnceCells { states, records: &mut self.records, id };
        decide_once(&self.limits, cells, op, cost, self.now, &mut out).map_err(|why| match why {
            NotOnce::OtherCost(known) => known,
        })?;
        let (verdict, limits) = (out.decisions[0], out.limits.into_vec());
        let answer = Answer { verdict, all: Summary::new(&self.limits, &limits), limits };
        self.last = Some(answer.clone());
        Ok(answer)
    }

    /// Returns the answer to `op` after this many microseconds more; nothing changes.
    pub fn would(&self, op: Op, cost: u64, after: u64) -> Answer {
        let mut other = self.clone();
        other.now.0 += after;
        other.decide(op, cost)
    }

    pub fn would_pass(&self, cost: u64, after: u64) -> bool {
        self.would(Op::Peek, cost, after).verdict.allowed
    }

    /// Lets the step's pause go by, and returns what the step then asks.
    pub fn advance(&mut self, step: &Step) -> (Op, u64) {
        let asked = (supported(step.op, &self.limits), self.cost(step.cost));
        self.now.0 += self.pause(step.pause);
        asked
    }

    /// [`Machine::advance`] and [`Machine::decide`].
    pub fn step(&mut self, step: &Step) -> Answer {
        let (op, cost) = self.advance(step);
        self.decide(op, cost)
    }

    /// The last answer's `reset_after`.
    pub fn last_reset(&self) -> u64 {
        self.last.as_ref().map_or(0, |answer| answer.all.reset_after.0)
    }

    fn pause(&self, pause: Pause) -> u64 {
        let of_last = |read: fn(&Answer) -> u64| self.last.as_ref().map_or(0, read);
        let reset = |answer: &Answer| answer.all.reset_after.0;
        match pause {
            Pause::Exactly(pause) => pause,
            Pause::Retry(off) => of_last(|answer| micros(answer.all.retry)).saturating_add_signed(off.into()),
            Pause::Reset(off) => of_last(reset).saturating_add_signed(off.into()),
            Pause::Share(share) => of_last(reset) / 65_536 * u64::from(share),
        }
        .min(EON)
    }

    /// Returns the present value of `cost`.
    pub fn cost(&self, cost: Cost) -> u64 {
        let limit = self.limits.iter().map(Algorithm::limit).min().unwrap_or(0);
        let remaining = self.last.as_ref().map_or(limit, |answer| answer.all.remaining);
        match cost {
            Cost::Exactly(cost) => cost,
            Cost::Remaining(off) => remaining.saturating_add_signed(off.into()),
            Cost::Limit(off) => limit.saturating_add_signed(off.into()),
        }
    }
}

/// A machine for many subjects and changing limits: each state is kept under its limit's name.
#[derive(Debug, Clone)]
pub struct Named {
    pub machine: Machine,
    states: HashMap<Vec<u8>, State>,
}

impl Named {
    pub fn new(rules: &Strategy) -> Self {
        Self { machine: Machine::new(rules.algorithms().to_vec()), states: HashMap::new() }
    }

    /// One that knows its limits from the first decision on.
    pub fn empty() -> Self {
        Self { machine: Machine::new(Vec::new()), states: HashMap::new() }
    }

    pub fn decide(&mut self, rules: &Arc<Strategy>, subject: &Subject<'_>, op: Op, cost: u64) -> Answer {
        self.decide_with(rules, subject, |machine| machine.decide(op, cost))
    }

    /// Lets the machine decide for this subject.
    pub fn decide_with<A>(
        &mut self,
        rules: &Arc<Strategy>,
        subject: &Subject<'_>,
        decide: impl FnOnce(&mut Machine) -> A,
    ) -> A {
        let name = |limit: &Limit| {
            let mut name = Vec::new();
            write_name(&mut name, rules, limit, subject);
            name
        };
        let names: Vec<_> = rules.limits().iter().map(name).collect();
        self.machine.limits = rules.algorithms().to_vec();
        self.machine.phases = names.iter().map(|name| phase(name)).collect();
        self.machine.states = names.iter().map(|name| self.states.remove(name)).collect();
        let answer = decide(&mut self.machine);
        let kept = names.into_iter().zip(&self.machine.states);
        self.states.extend(kept.filter_map(|(name, state)| Some((name, state.clone()?))));
        answer
    }
}

/// The longest pause, a year and a half: fifty of them end before 2^52.
const EON: u64 = 50_000_000_000_000;

/// A wait that helps, or none.
pub fn micros(retry: Retry) -> u64 {
    match retry {
        Retry::After(wait) => wait.0,
        Retry::Now | Retry::Unknown | Retry::Never => 0,
    }
}

struct VecCells<'a>(&'a mut Vec<Option<State>>, &'a [u64]);

impl Cells for VecCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.0[index].as_ref()
    }

    fn phase(&self, index: usize) -> u64 {
        self.1[index]
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        change(&mut self.0[index]);
    }
}

/// States, and the record of an id.
struct OnceCells<'a> {
    states: VecCells<'a>,
    records: &'a mut HashMap<String, OnceRecord>,
    id: &'a str,
}

impl Cells for OnceCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.states.get(index)
    }

    fn phase(&self, index: usize) -> u64 {
        self.states.phase(index)
    }

    fn reserve(&mut self, count: usize) -> Result<(), Infallible> {
        self.states.reserve(count)
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        self.states.put(index, change);
    }
}

impl RecordCells for OnceCells<'_> {
    fn record(&self) -> Option<OnceRecord> {
        self.records.get(self.id).copied()
    }

    fn put_record(&mut self, record: OnceRecord) -> Result<(), Infallible> {
        self.records.insert(self.id.to_owned(), record);
        Ok(())
    }

    fn clear_record(&mut self) {
        self.records.remove(self.id);
    }
}
