//! Admitted calls, against the bound of each strategy.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::CheckedRun;
use crate::log::{CallOutcome, CounterName, WorldFault};
use crate::setup::{COUNTED, COUNTED_LIMIT, LOCAL, LOCAL_LIMIT, LOCAL_PART, LOCAL_WINDOW, counted_bound};

/// One call that was admitted.
#[derive(Debug, Clone, Copy)]
struct AdmittedCall {
    /// The true time of the decision.
    at: u64,
    /// The time of whoever decided.
    now: u64,
    cost: u64,
    /// The process that decided by itself.
    by: Option<(usize, usize)>,
}

/// The calls that were admitted, by their counters.
#[derive(Default)]
pub(super) struct AdmittedCalls {
    calls: BTreeMap<CounterName, Vec<AdmittedCall>>,
    /// Number of starts of each node.
    begun: HashMap<usize, usize>,
}

impl AdmittedCalls {
    pub(super) fn fault(&mut self, fault: &WorldFault) {
        if let WorldFault::NodeBegins(node) = fault {
            *self.begun.entry(*node).or_default() += 1;
        }
    }

    pub(super) fn add(
        &mut self,
        (node, at): (usize, u64),
        counter: &CounterName,
        cost: u64,
        (outcome, decided_at): (&CallOutcome, Option<u64>),
    ) {
        let call = match outcome {
            CallOutcome::Decided(decided) if decided.verdict.allowed => {
                AdmittedCall { at: decided_at.unwrap_or(at), now: decided.verdict.now.0, cost, by: None }
            }
            CallOutcome::Local { allowed: true } => {
                let process = (node, self.begun.get(&node).copied().unwrap_or(0));
                AdmittedCall { at, now: at, cost, by: Some(process) }
            }
            _ => return,
        };
        self.calls.entry(counter.clone()).or_default().push(call);
    }

    /// Returns the calls that were admitted above the bound.
    pub(super) fn excess(&self, run: &CheckedRun) -> Vec<String> {
        let of = |(counter, calls): (&CounterName, &Vec<AdmittedCall>)| {
            let (over, bound) = match counter.strategy.as_str() {
                "window" => (in_windows(calls, 2_000_000), 9 * (1 + run.exceptions)),
                "log" => (in_spans(calls, 2_000_000), 7 * (1 + run.exceptions)),
                "bucket" => (above_rate(calls, 4), 6 * (1 + run.exceptions)),
                LOCAL => return local_excess(counter, calls, run.exceptions),
                COUNTED => {
                    let bound = counted_bound();
                    let each = COUNTED_LIMIT + bound.max_over() + bound.share() * bound.nodes();
                    let most = COUNTED_LIMIT + bound.max_over() + run.exceptions * each;
                    (in_windows(calls, bound.window().0), most)
                }
                _ => return None,
            };
            (over > bound).then(|| format!("{counter:?}: {over} units were admitted, at most {bound} may be"))
        };
        self.calls.iter().filter_map(of).collect()
    }
}

/// The most units in an aligned window.
fn in_windows(calls: &[AdmittedCall], window: u64) -> u64 {
    let mut windows = HashMap::<u64, u64>::new();
    for call in calls {
        *windows.entry(call.now / window).or_default() += call.cost;
    }
    windows.into_values().max().unwrap_or(0)
}

/// The most units in any span of this length.
fn in_spans(calls: &[AdmittedCall], span: u64) -> u64 {
    let within = |from: u64| calls.iter().filter(move |call| (from..from + span).contains(&call.now));
    calls.iter().map(|from| within(from.now).map(|call| call.cost).sum()).max().unwrap_or(0)
}

/// The most units in any span that are more than what flows in it, at so many a second.
fn above_rate(calls: &[AdmittedCall], rate: u64) -> u64 {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.now);
    let mut most = 0;
    for first in 0..calls.len() {
        let mut sum = 0;
        for call in &calls[first..] {
            sum += call.cost;
            most = most.max(sum.saturating_sub((call.now - calls[first].now) * rate / 1_000_000));
        }
    }
    most
}

/// The bound of docs/configuration/approximate.md: the limit if Redis decided, a part for each process that did, and another one for
/// its clock, which differs from that of Redis.
fn local_excess(counter: &CounterName, calls: &[AdmittedCall], exceptions: u64) -> Option<String> {
    calls.iter().find_map(|first| {
        let span = first.at..first.at + LOCAL_WINDOW;
        let inside = || calls.iter().filter(|call| span.contains(&call.at));
        let processes: BTreeSet<_> = inside().filter_map(|call| call.by).collect();
        let by_redis = u64::from(inside().any(|call| call.by.is_none()));
        let bound = LOCAL_LIMIT * (by_redis + exceptions) + 2 * LOCAL_PART * processes.len() as u64;
        let units: u64 = inside().map(|call| call.cost).sum();
        (units > bound).then(|| format!("{counter:?}: {units} units in {span:?}, at most {bound} may be"))
    })
}
