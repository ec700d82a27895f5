//! A random trace, on the driver and by the definition.

use std::collections::BTreeMap;

use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetVerdict, CostedLimits, HoldBounds, LimitCost, NotDecided,
    SettleOutcome, SettledCosts, ask, debit, refund, reset, settle,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_units::{Micros, Retry};

use super::super::rows::world::World;
use super::definition::{Change, Defined, Definition, KNOWN_FOR, Key, Known, LIMITS, OpenPart, SECOND};
use super::faulty::{Fault, FaultyCells};

const BASE: u64 = 1_704_067_200 * SECOND;

/// The answer of one step: per limit granted, charged, remaining and held, beside the rest as a text.
type Said = (String, Vec<(Option<u64>, Option<u64>, u64, u64)>);

struct Trace {
    numbers: u64,
    budget: CostedLimits,
    world: World,
    definition: Definition,
    now: u64,
    holds: u64,
    fault: Fault,
}

/// Runs a trace; the number of its holds, or the first difference.
pub fn trace(seed: u64, fault: Fault) -> Result<u64, String> {
    let (world, definition) = (World::default(), Definition::default());
    let budget = budget(Change::None);
    let mut trace = Trace { numbers: seed, budget, world, definition, now: BASE, holds: 0, fault };
    for number in 0..20 + trace.below(30) {
        let longest = [1, SECOND, 10 * SECOND, 70 * SECOND][trace.below(4) as usize];
        trace.now += trace.below(longest + 1);
        let (got, want) = trace.step();
        if got != want {
            return Err(format!("step {number}: {got:?}, not {want:?}"));
        }
    }
    Ok(trace.holds)
}

fn budget(change: Change) -> CostedLimits {
    let algorithm = |one: &Defined| {
        let second = Rate { count: 1, period: Micros(SECOND) };
        let algorithm = match one.window {
            0 => Algorithm::bucket(change.apply(one.limit), second),
            window => Algorithm::fixed_window(change.apply(one.limit), Micros(window), false, false),
        };
        let algorithm = algorithm.unwrap().with_max_debt(Some(change.apply(one.limit)));
        if one.shadow { algorithm.in_shadow() } else { algorithm }
    };
    let limits = LIMITS.iter().map(|one| BudgetLimit {
        algorithm: algorithm(one),
        cost: one.cost.map_or(LimitCost::Fixed(1), LimitCost::Named),
        at_once: one.at_once,
        near_percent: None,
    });
    let max = Micros(16 * change.grain());
    let hold = Some(HoldBounds { max, known_for: Micros(KNOWN_FOR) });
    CostedLimits { limits: limits.collect(), names: vec!["n".into(), "m".into()], hold }
}

/// The limits, where those whose cost is 0 take a fixed cost of 0, which is judged.
fn judging_zero(mut budget: CostedLimits, asked: &Ask) -> CostedLimits {
    for limit in &mut budget.limits {
        if asked.of(limit.cost).cost == 0 {
            limit.cost = LimitCost::Fixed(0);
        }
    }
    budget
}

impl Trace {
    /// SplitMix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.numbers = self.numbers.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.numbers;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn step(&mut self) -> (Said, Said) {
        self.change_limits();
        let (consumer, team, id) = (self.below(2), self.below(2), self.below(5));
        let keys: Vec<Key> = LIMITS
            .iter()
            .enumerate()
            .map(|(index, one)| (index, if one.per_team { team } else { consumer }))
            .collect();
        let id = 10 * consumer + id;
        match self.below(20) {
            0..9 => self.ask(&keys, id),
            9..16 => self.settle(&keys, id),
            16..18 => self.debit(&keys, id),
            18 => self.reset(&keys, id),
            _ => self.refund(&keys, id),
        }
    }

    /// Changes all limits and `hold.max`, now and then.
    fn change_limits(&mut self) {
        if self.below(12) == 0 {
            self.definition.change = [Change::None, Change::Half, Change::Double][self.below(3) as usize];
            self.budget = budget(self.definition.change);
        }
    }

    fn cells(&mut self, keys: &[Key], id: u64, settles: bool) -> FaultyCells<'_> {
        let names = keys.iter().map(|(index, subject)| format!("{index}:{subject}")).collect();
        let cells = self.world.cells_of(names, id.to_string());
        FaultyCells::new(cells, (self.fault, settles), LIMITS.len(), self.now)
    }

    fn costs(&mut self) -> [(u64, Option<u64>); 2] {
        [60, 40].map(|most| {
            let cost = self.below(most + 1) * u64::from(self.below(6) > 0);
            (cost, (cost > 0 && self.below(3) == 0).then(|| 1 + self.below(cost)))
        })
    }

    fn ask(&mut self, keys: &[Key], id: u64) -> (Said, Said) {
        let repeats = self
            .definition
            .ids
            .get(&id)
            .and_then(|known| known.asked)
            .filter(|_| self.numbers.is_multiple_of(4));
        let costs = self.costs();
        let costs = repeats.unwrap_or(costs);
        let kind = if repeats.is_some() { 0 } else { self.below(4) };
        let grain = self.definition.change.grain();
        let hold_for = (kind < 2).then(|| 1 + self.below(16 * grain));
        let asked = Ask {
            costs: costs
                .iter()
                .map(|(cost, at_least)| AskedCost { cost: *cost, at_least: *at_least })
                .collect(),
            cost: 1,
            peek: kind == 2,
            has_id: hold_for.is_some(),
            hold_for: hold_for.map(Micros),
        };
        let (budget, now) = (self.budget.clone(), Micros(self.now));
        let budget = if self.fault == Fault::ZeroIsJudged { judging_zero(budget, &asked) } else { budget };
        let got = said(ask(&budget, self.cells(keys, id, false), &asked, now));
        (got, self.defined_ask(keys, id, &costs, (kind == 2, hold_for)))
    }

    fn defined_ask(
        &mut self,
        keys: &[Key],
        id: u64,
        costs: &[(u64, Option<u64>); 2],
        (peek, hold_for): (bool, Option<u64>),
    ) -> Said {
        let now = self.now;
        if hold_for.is_some()
            && let Some(known) = self.definition.ids.get(&id).filter(|known| now < known.until).cloned()
        {
            if known.settled.is_some() || now >= known.end || known.asked != Some(*costs) {
                return ("other contents".to_owned(), vec![]);
            }
            let granted = |key: &Key| match LIMITS[key.0].cost {
                None => Some(1),
                Some(_) => known.entries.get(key).and_then(|entry| entry.0),
            };
            let limits = keys.iter().map(|key| (granted(key), None)).collect();
            return self.state(keys, limits, format!("true false {} None", known.end - now), 0);
        }
        let (granted, denied) = self.definition.judge(keys, costs, now);
        if !denied.is_empty() {
            let (wait, never) = self.wait(keys, costs, &denied);
            let wait = if never { u64::MAX } else { wait };
            return self.state(keys, vec![(None, None); keys.len()], "false false 0 None".to_owned(), wait);
        }
        let units = |key: &Key| LIMITS[key.0].cost.map_or(1, |name| granted[name]);
        let admits = |key: &Key| {
            !LIMITS[key.0].shadow || units(key) == 0 || self.definition.fits(*key, units(key), now)
        };
        let granted: Vec<Option<u64>> = keys.iter().map(|key| admits(key).then(|| units(key))).collect();
        let limits = granted.iter().map(|granted| (*granted, None)).collect();
        let mut held_for = 0;
        if let Some(hold_for) = hold_for {
            self.holds += 1;
            let grain = self.definition.change.grain();
            let end = (now + hold_for).div_ceil(grain) * grain;
            held_for = end - now;
            let mut entries = BTreeMap::new();
            for (key, granted) in keys.iter().zip(&granted) {
                let (one, units) = (&LIMITS[key.0], granted.unwrap_or(0));
                if one.cost.is_none() || one.at_once {
                    self.definition.charge(*key, units, now);
                }
                if one.cost.is_some() {
                    let stop = if one.window == 0 { end } else { now - now % one.window + one.window };
                    let part = OpenPart { units, end: end.min(stop), is_there: true };
                    let part = (!one.at_once && granted.is_some()).then_some(part);
                    entries.insert(*key, (*granted, if one.at_once { units } else { 0 }, part));
                }
            }
            let until = end + KNOWN_FOR;
            let (asked, charged) = (Some(*costs), BTreeMap::new());
            self.definition.ids.insert(id, Known { end, until, asked, settled: None, entries, charged });
        } else if !peek {
            for (key, granted) in keys.iter().zip(&granted) {
                self.definition.charge(*key, granted.unwrap_or(0), now);
            }
        }
        self.state(keys, limits, format!("true {} {held_for} None", !peek), 0)
    }

    /// The shortest wait, by trying each time at which something ends or has drained.
    fn wait(&self, keys: &[Key], costs: &[(u64, Option<u64>); 2], denied: &[usize]) -> (u64, bool) {
        let mut longest = 0;
        for index in denied {
            let key = keys[*index];
            let units = LIMITS[*index].cost.map_or(1, |name| costs[name].1.unwrap_or(costs[name].0));
            if units > self.definition.limit(*index) {
                return (0, true);
            }
            let fits = |after: &u64| self.definition.fits(key, units, self.now + after);
            let parts = self.definition.ids.values().filter_map(|known| known.entries.get(&key)?.2);
            let mut times: Vec<u64> = parts.map(|part| part.end.saturating_sub(self.now)).collect();
            let window = LIMITS[*index].window;
            times.push(if window == 0 { 1 << 40 } else { window - self.now % window });
            times.sort_unstable();
            // Between two ends only draining frees something, so bisection finds the first time.
            let mut low = 0;
            for end in times {
                if fits(&end) || fits(&end.saturating_sub(1)) {
                    let mut high = end;
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if fits(&middle) { high = middle } else { low = middle + 1 }
                    }
                    break;
                }
                low = end;
            }
            longest = longest.max(low);
        }
        (longest, false)
    }

    fn settle(&mut self, keys: &[Key], id: u64) -> (Said, Said) {
        let again = self.definition.ids.get(&id).and_then(|known| known.settled).map(|(used, _)| used);
        let mut used = [70, 50].map(|most| (self.below(5) > 0).then(|| self.below(most)));
        if let Some(again) = again.filter(|_| self.below(2) == 0) {
            used = again;
        }
        let costs = SettledCosts { costs: used.into_iter().collect(), cost: None };
        let (budget, now) = (self.budget.clone(), Micros(self.now));
        let bounds = budget.hold.unwrap();
        let got = settle(&budget, bounds, self.cells(keys, id, true), &costs, now);
        let (uncharged, got) = (uncharged(&got), said(got));
        let before = self.definition.uncharged;
        let known = self.definition.ids.get(&id).filter(|known| self.now < known.until).cloned();
        let (known, applied) = match known {
            Some(known) if known.settled.is_some_and(|(before, _)| before != used) => {
                return (got, ("other contents".to_owned(), vec![]));
            }
            Some(known) if known.settled.is_some() => (known, false),
            _ => (self.definition.settle(id, keys, used, self.now), true),
        };
        assert_eq!(uncharged, self.definition.uncharged - before);
        let outcome = known.settled.unwrap().1;
        let limits = keys.iter().map(|key| (None, known.charged.get(key).copied().flatten())).collect();
        (got, self.state(keys, limits, format!("true {applied} 0 {outcome}"), 0))
    }

    fn debit(&mut self, keys: &[Key], id: u64) -> (Said, Said) {
        let used = [Some(self.below(40)), None];
        let costs = SettledCosts { costs: used.into_iter().collect(), cost: None };
        let (budget, now) = (self.budget.clone(), Micros(self.now));
        let got = debit(&budget, self.cells(keys, id, false), &costs, now);
        let (uncharged, got) = (uncharged(&got), said(got));
        let before = self.definition.uncharged;
        let mut limits = Vec::new();
        for key in keys {
            let units = LIMITS[key.0].cost.and_then(|name| used[name]);
            limits.push((None, units.map(|units| self.definition.force(*key, units, self.now))));
        }
        assert_eq!(uncharged, self.definition.uncharged - before);
        (got, self.state(keys, limits, "true true 0 None".to_owned(), 0))
    }

    fn refund(&mut self, keys: &[Key], id: u64) -> (Said, Said) {
        let (which, units) = (self.below(keys.len() as u64) as usize, 1 + self.below(40));
        let (budget, now) = (self.budget.clone(), Micros(self.now));
        let has = |index| index == which;
        let got = said(refund(&budget, self.cells(keys, id, false), (units, has), now));
        self.definition.refund(keys[which], units, self.now);
        (got, self.state(keys, vec![(None, None); keys.len()], "true true 0 None".to_owned(), 0))
    }

    fn reset(&mut self, keys: &[Key], id: u64) -> (Said, Said) {
        let which = self.below(keys.len() as u64) as usize;
        let (budget, now) = (self.budget.clone(), Micros(self.now));
        let got = said(reset(&budget, self.cells(keys, id, false), |index| index == which, now));
        self.definition.reset(keys[which]);
        (got, self.state(keys, vec![(None, None); keys.len()], "true true 0 None".to_owned(), 0))
    }

    /// The answer, with each limit as it stands now.
    fn state(&self, keys: &[Key], limits: Vec<(Option<u64>, Option<u64>)>, text: String, wait: u64) -> Said {
        let enforced = keys.iter().filter(|key| !LIMITS[key.0].shadow);
        let reset = enforced.map(|key| self.definition.reset_after(*key, self.now)).max().unwrap();
        let limit = |(key, (granted, charged)): (&Key, (Option<u64>, Option<u64>))| {
            let (remaining, held) =
                (self.definition.remaining(*key, self.now), self.definition.held(*key, self.now));
            (granted, charged, remaining, held)
        };
        (format!("{text} wait {wait} reset {reset}"), keys.iter().zip(limits).map(limit).collect())
    }
}

/// The units above `max_debt`.
fn uncharged(verdict: &Result<BudgetVerdict, NotDecided<std::convert::Infallible>>) -> u64 {
    verdict.as_ref().map_or(0, |verdict| verdict.limits.iter().map(|limit| limit.uncharged).sum())
}

fn said(verdict: Result<BudgetVerdict, NotDecided<std::convert::Infallible>>) -> Said {
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(NotDecided::OtherContents) => return ("other contents".to_owned(), vec![]),
        Err(NotDecided::TooManyEnds) => return ("too many ends".to_owned(), vec![]),
        Err(NotDecided::Full(never)) => match never {},
    };
    let outcome = match verdict.outcome {
        None => "None",
        Some(SettleOutcome::Settled) => "settled",
        Some(SettleOutcome::Late) => "late",
        Some(SettleOutcome::Unknown) => "unknown",
    };
    let wait = match verdict.retry {
        Retry::After(wait) => wait.0,
        Retry::Never => u64::MAX,
        Retry::Now | Retry::Unknown => 0,
    };
    let held_for = verdict.held_for.map_or(0, |held| held.0);
    let (allowed, applied, reset) = (verdict.allowed, verdict.applied, verdict.reset_after.0);
    let granted = |granted: Option<u64>| granted.filter(|_| verdict.outcome.is_none());
    let limits =
        verdict.limits.iter().map(|one| (granted(one.granted), one.charged, one.remaining, one.held));
    (format!("{allowed} {applied} {held_for} {outcome} wait {wait} reset {reset}"), limits.collect())
}
