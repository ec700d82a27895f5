//! Holds while clocks step and failovers lose writes: what is held is what the records have open. More is held only after a step back,
//! and less never.

use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetVerdict, CostedLimits, HoldBounds, LimitCost, SettledCosts, ask,
    reset, settle,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_units::{Micros, Retry};

use super::super::rows::world::World;
use super::faulty::{Fault, FaultyCells};

const SECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600 * SECOND;
const BASE: u64 = 1_704_067_200 * SECOND;
const TRACES: u64 = 10_000;

/// The situations that the traces met.
#[derive(Debug, Default)]
struct Met {
    holds: u64,
    back: u64,
    failovers: u64,
    /// Steps after which more was held than the records have open.
    more: u64,
    /// Waits while the parts had seen a later time than the clock's.
    waits_behind: u64,
}

#[test]
fn no_step_of_a_clock_and_no_failover_holds_less_than_the_records() {
    let mut met = Met::default();
    for seed in 0..TRACES {
        trace(seed, Fault::None, &mut met).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    println!("{met:?}");
    assert!(met.holds > TRACES && met.back > TRACES / 2 && met.failovers > TRACES / 2);
    assert!(met.waits_behind > 0);
}

#[test]
fn planted_faults_of_clocks_are_found() {
    for fault in Fault::OF_STEPS {
        let wrong = |seed| trace(seed, fault, &mut Met::default()).err();
        let found = (0..TRACES).find_map(|seed| Some((seed, wrong(seed)?)));
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} is not found");
    }
}

fn budget() -> CostedLimits {
    let window = Algorithm::fixed_window(100, Micros(60 * SECOND), false, false).unwrap();
    let bucket = Algorithm::bucket(100, Rate { count: 1, period: Micros(SECOND) }).unwrap();
    let limit =
        |algorithm| BudgetLimit { algorithm, cost: LimitCost::Named(0), at_once: false, near_percent: None };
    let hold = Some(HoldBounds { max: Micros(160 * SECOND), known_for: Micros(200 * SECOND) });
    CostedLimits { limits: vec![limit(window), limit(bucket)], names: vec!["n".into()], hold }
}

/// The wait of a denial, if all that denies is held: the engines' own waits are theirs to prove.
fn wait_of_holds(verdict: &BudgetVerdict) -> Option<u64> {
    let Retry::After(wait) = verdict.retry else { return None };
    let mut denying = verdict.limits.iter().filter(|limit| limit.cause.is_some());
    denying.all(|limit| limit.level_before == 0).then_some(wait.0)
}

/// The next numbers of a seed.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut number = seed;
    move |bound| {
        number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = number;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// True if the costs would fit at that time, if nothing else happens.
fn would_fit(world: &World, (budget, keys): (&CostedLimits, &[String]), asked: &Ask, at: u64) -> bool {
    let peek = Ask { peek: true, has_id: false, hold_for: None, ..asked.clone() };
    let mut then = world.clone();
    let cells = then.cells_of(keys.to_vec(), String::new());
    ask(budget, cells, &peek, Micros(at)).unwrap().allowed
}

/// Counts the waits of an answer from the latest time that the parts have seen.
fn count_from_seen(verdict: &mut BudgetVerdict, ahead: u64) {
    let less = |span: Micros| Micros(span.0.saturating_sub(ahead));
    verdict.held_for = verdict.held_for.map(less);
    if let Retry::After(wait) = verdict.retry {
        verdict.retry = Retry::After(less(wait));
    }
}

fn trace(seed: u64, fault: Fault, met: &mut Met) -> Result<(), String> {
    let mut below = numbers(seed);
    let (budget, keys) = (budget(), ["window", "bucket"].map(str::to_owned).to_vec());
    let (mut world, mut now, mut went_back) = (World::default(), BASE, false);
    let mut replica = world.clone();
    for step in 0..40 {
        let longest = [1, SECOND, 10 * SECOND, 70 * SECOND][below(4) as usize];
        now += below(longest + 1);
        match below(24) {
            0 => now += [SECOND, HOUR, 3 * HOUR][below(3) as usize],
            1 => {
                now -= [SECOND, 30 * SECOND, HOUR, 3 * HOUR][below(4) as usize];
                (went_back, met.back) = (true, met.back + 1);
            }
            2 => {
                world = replica.clone();
                met.failovers += 1;
            }
            3..6 => replica = world.clone(),
            _ => {}
        }
        let id = below(6).to_string();
        let ahead = world.ahead(&keys, now);
        let kind = below(8);
        let cells = world.cells_of(keys.clone(), id.clone());
        let cells = FaultyCells::new(cells, (fault, (4..7).contains(&kind)), keys.len(), now);
        match kind {
            0..4 => {
                let costs = [AskedCost { cost: 1 + below(30), at_least: None }].into_iter().collect();
                let hold_for = Some(Micros(1 + below(160 * SECOND)));
                let asked = Ask { costs, cost: 1, peek: false, has_id: true, hold_for };
                let Ok(mut verdict) = ask(&budget, cells, &asked, Micros(now)) else { continue };
                if fault == Fault::WaitsFromSeen {
                    count_from_seen(&mut verdict, ahead.unwrap_or(0));
                }
                if verdict.applied {
                    met.holds += 1;
                    let left = world.end_of(&id).map(|end| end.saturating_sub(now));
                    if verdict.held_for.map(|span| span.0) != left {
                        return Err(format!("step {step}: held for {:?}, not {left:?}", verdict.held_for));
                    }
                }
                if let Some(wait) = wait_of_holds(&verdict).filter(|_| ahead.is_some()) {
                    met.waits_behind += u64::from(ahead > Some(0));
                    let fits = |after: u64| would_fit(&world, (&budget, &keys), &asked, now + after);
                    if !fits(wait) || wait > 0 && fits(wait - 1) {
                        return Err(format!("step {step}: {wait} is not the shortest wait"));
                    }
                }
            }
            4..7 => {
                let used = SettledCosts { costs: [Some(below(40))].into_iter().collect(), cost: None };
                _ = settle(&budget, budget.hold.unwrap(), cells, &used, Micros(now));
            }
            _ => _ = reset(&budget, cells, |index| index == 0, Micros(now)),
        }
        for (held, open) in world.held_and_open(&keys, now) {
            met.more += u64::from(held > open);
            if held < open || held > open && !went_back {
                return Err(format!("step {step}: {held} units are held, and the records have {open} open"));
            }
        }
    }
    Ok(())
}
