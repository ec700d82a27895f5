//! Decisions of Redis against the pure model.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use weir_core::algorithm::{Cells, Kept, State, decide};
use weir_store::Verdicts;
use weir_units::Micros;

use super::CheckedRun;
use super::scripts::decisions_of;
use crate::log::{CallOutcome, CounterName, DecidedCost, ScriptEvent, StoreQuestion, WorldFault};
use crate::setup::{COUNTED, strategy};

/// The states of a server, as the model has them.
type ModelStates = HashMap<Vec<u8>, KeptState>;

#[derive(Debug, Clone)]
struct KeptState {
    state: State,
    expires: Micros,
}

/// States that have expired by the model. Redis may keep a key a little longer, which makes no difference unless the clock
/// goes back.
type LapsedStates = HashMap<Vec<u8>, Micros>;

/// A question: the counter, the operation and the costs.
type AskedName = (CounterName, bool, Vec<u64>);

/// A decision that a script made.
struct ExecutedDecision {
    at: u64,
    decided: Vec<DecidedCost>,
    is_told: bool,
}

/// A verdict that a node was told, and that admits a caller.
struct GivenVerdict {
    at: u64,
    cost: u64,
    decided: DecidedCost,
}

/// The model, and what was done with its verdicts.
pub(super) struct ExactModel {
    servers: Vec<ModelStates>,
    replicas: Vec<ModelStates>,
    asked: HashMap<AskedName, usize>,
    executed: HashMap<AskedName, Vec<ExecutedDecision>>,
    given: HashMap<CounterName, Vec<GivenVerdict>>,
    lapsed: LapsedStates,
    /// Counters whose state nobody can tell: the clock went back to where one had expired or not.
    unsure: HashSet<CounterName>,
}

impl ExactModel {
    pub(super) fn new(servers: usize) -> Self {
        let empty = || vec![ModelStates::new(); servers];
        Self {
            servers: empty(),
            replicas: empty(),
            asked: HashMap::new(),
            executed: HashMap::new(),
            given: HashMap::new(),
            lapsed: HashMap::new(),
            unsure: HashSet::new(),
        }
    }

    pub(super) fn fault(&mut self, fault: &WorldFault) {
        match fault {
            &WorldFault::Replicated(server) => self.replicas[server] = self.servers[server].clone(),
            &WorldFault::ServerFailsOver(server) => self.servers[server] = self.replicas[server].clone(),
            WorldFault::KeysDropped { server, keys } => {
                keys.iter().for_each(|key| drop(self.servers[*server].remove(key)));
            }
            WorldFault::KeysMove { from, to, keys } => {
                for key in keys {
                    if let Some(state) = self.servers[*from].remove(key) {
                        self.servers[*to].insert(key.clone(), state);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn ask(&mut self, question: &StoreQuestion) {
        *self.asked.entry(name_of(question)).or_default() += 1;
    }

    /// A script has run: the model decides the same.
    pub(super) fn run_script(
        &mut self,
        run: &CheckedRun,
        script: &ScriptEvent,
        at: u64,
    ) -> Result<(), String> {
        let decisions = decisions_of(script).ok_or("what a script was asked cannot be read")?;
        // A call over several slots whose slots are not all there has changed nothing for some of them.
        if script.reply.first() == Some(&b'-') {
            return Ok(());
        }
        for decision in decisions {
            let strategy = strategy(&run.rules, &decision.counter.strategy).ok_or("a strategy is unknown")?;
            let (states, lapsed) = (&mut self.servers[script.server], &mut self.lapsed);
            let mut cells = ModelCells { states, lapsed, keys: &decision.keys, now: script.now };
            if cells.expire() {
                self.unsure.insert(decision.counter.clone());
            }
            let mut verdicts = Verdicts::default();
            for &cost in &decision.costs {
                let Ok(()) =
                    decide(strategy.algorithms(), &mut cells, decision.op, cost, script.now, &mut verdicts);
            }
            let each = (0..verdicts.decisions.len()).filter_map(|index| verdicts.get(index));
            let each =
                each.map(|(verdict, limits)| DecidedCost { verdict: *verdict, limits: limits.to_vec() });
            let name = (decision.counter, decision.op == weir_core::algorithm::Op::Charge, decision.costs);
            let executed = self.executed.entry(name.clone()).or_default();
            executed.push(ExecutedDecision { at, decided: each.collect(), is_told: false });
            let (ran, asked) = (executed.len(), self.asked.get(&name).copied().unwrap_or(0));
            if ran > asked {
                return Err(format!("{name:?} ran {ran} times, and was asked {asked} times"));
            }
        }
        Ok(())
    }

    /// A node was told what its question was decided: a script must have decided so.
    pub(super) fn answer(&mut self, question: &StoreQuestion, decided: &[DecidedCost]) -> Result<(), String> {
        let executed = self.executed.entry(name_of(question)).or_default();
        let is_it = |one: &&mut ExecutedDecision| !one.is_told && one.decided == decided;
        let Some(found) = executed.iter_mut().find(is_it) else {
            let last: Vec<_> = executed.iter().rev().take(3).map(|one| &one.decided).collect();
            if self.unsure.contains(&question.counter) {
                return Ok(());
            }
            return Err(format!(
                "{question:?} was answered with {decided:?}; the model decided, from the last one on: {last:?}"
            ));
        };
        found.is_told = true;
        let at = found.at;
        let admits = question.costs.iter().zip(decided).filter(|(_, decided)| decided.verdict.allowed);
        let given = admits.map(|(cost, decided)| GivenVerdict { at, cost: *cost, decided: decided.clone() });
        self.given.entry(question.counter.clone()).or_default().extend(given);
        Ok(())
    }

    /// A caller was answered. If Redis has admitted it, returns when: a node was told so, for this caller alone.
    pub(super) fn end(
        &mut self,
        counter: &CounterName,
        cost: u64,
        outcome: &CallOutcome,
    ) -> Result<Option<u64>, String> {
        let CallOutcome::Decided(decided) = outcome else { return Ok(None) };
        if !decided.verdict.allowed || counter.strategy == COUNTED {
            return Ok(None);
        }
        let given = self.given.entry(counter.clone()).or_default();
        let place = given.iter().position(|one| one.cost == cost && one.decided == *decided);
        match place {
            Some(place) => Ok(Some(given.swap_remove(place).at)),
            None if self.unsure.contains(counter) => Ok(None),
            None => {
                Err(format!("{counter:?} was admitted at cost {cost} by {decided:?}, which no node was told"))
            }
        }
    }
}

fn name_of(question: &StoreQuestion) -> AskedName {
    let is_charge = question.op == weir_core::algorithm::Op::Charge;
    (question.counter.clone(), is_charge, question.costs.clone())
}

/// The states of one decision.
struct ModelCells<'m> {
    states: &'m mut ModelStates,
    lapsed: &'m mut LapsedStates,
    keys: &'m [Vec<u8>],
    now: Micros,
}

impl ModelCells<'_> {
    /// Drops what has expired. True if the clock went back to before something had.
    fn expire(&mut self) -> bool {
        for key in self.keys {
            if let Some(kept) = self.states.get(key).filter(|kept| kept.expires <= self.now) {
                self.lapsed.insert(key.clone(), kept.expires);
                self.states.remove(key);
            }
        }
        self.keys.iter().any(|key| self.lapsed.get(key).is_some_and(|expires| self.now < *expires))
    }
}

impl Cells for ModelCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.states.get(&self.keys[index]).map(|kept| &kept.state)
    }

    fn phase(&self, _: usize) -> u64 {
        0
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        let key = &self.keys[index];
        let mut state = self.states.remove(key).map(|kept| kept.state);
        let kept = change(&mut state);
        self.lapsed.remove(key);
        if let Some(state) = state {
            let expires = Micros((self.now.0 + kept.lasts.0).div_ceil(1_000) * 1_000);
            self.states.insert(key.clone(), KeptState { state, expires });
        }
    }
}
