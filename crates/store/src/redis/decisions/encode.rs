//! Encodes requests for the decision script. `lua/README.md` is the contract.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use super::{DecisionRequest, OnceKey};
use crate::redis::codes::{bucket, op, window};
use crate::scripts::{doubles, put_double as put};
use weir_core::algorithm::{Algorithm, Engine, Grid, Op};
use weir_units::{CEILING, LATEST, Micros};

doubles! {
    RequestHead {
        /// The time, or -1 to use the server's clock.
        now,
        groups,
        /// 1 if two decisions have a key in common.
        repeats,
    }
}

doubles! {
    /// The header of a group of decisions, before their limits.
    GroupHead {
        /// Number of limits of each decision.
        count,
        decisions,
        /// Number of costs of each decision.
        each,
        /// Number of listed costs: 1 if all are equal.
        costs,
        op,
        max_wait,
    }
}

doubles! {
    /// The parameters of a limit. The header of each engine's file in `lua/` explains the last three.
    LimitNumbers {
        engine,
        limit,
        weight,
        ceiling,
        /// Flags: 1 if it counts denied attempts, plus 2 if it is in shadow mode.
        count_denied,
        p1,
        p2,
        p3,
    }
}

/// Encodes `requests`. Adjacent ones with the same limits form a group, which lists its limits once.
pub(super) fn encode(requests: &[Arc<DecisionRequest>], now: Option<Micros>, out: &mut impl Write) {
    let groups = || requests.chunk_by(|a, b| a.shares_limits(b));
    put_head(now, groups().count(), repeats(requests), out);
    for group in groups() {
        let Some(first) = group.first() else { continue };
        let costs = || group.iter().flat_map(|request| &request.costs).copied();
        // If all are equal, one stands for all.
        let listed = if costs().is_sorted_by(|a, b| a == b) { 1 } else { costs().count() };
        let (op, max_wait) = op_numbers(first);
        let head = GroupHead {
            count: first.algorithms().count() as f64,
            decisions: group.len() as f64,
            each: first.costs.len() as f64,
            costs: listed as f64,
            op: op as f64,
            max_wait: max_wait as f64,
        };
        head.put(out);
        first.algorithms().for_each(|limit| put_limit(limit, out));
        if first.op == Op::Force {
            for limit in first.algorithms() {
                put(out, limit.debt_level().map_or(-1.0, |level| level as f64));
            }
        }
        for cost in costs().take(listed) {
            put(out, cost.min(CEILING) as f64);
        }
        for &phase in group.iter().flat_map(|request| &request.phases) {
            put(out, phase as f64);
        }
    }
}

/// Writes the header of a request. Without a time the server's clock is used.
pub(super) fn put_head(now: Option<Micros>, groups: usize, repeats: bool, out: &mut impl Write) {
    let head = RequestHead {
        now: now.map_or(-1.0, |now| now.min(LATEST).0 as f64),
        groups: groups as f64,
        repeats: f64::from(u8::from(repeats)),
    };
    head.put(out);
}

pub(super) fn put_limit(limit: &Algorithm, out: &mut impl Write) {
    LimitNumbers::new(limit).put(out);
}

/// Estimates the encoded size, so that the command's buffer rarely grows.
pub(super) fn capacity(requests: &[Arc<DecisionRequest>]) -> usize {
    let limits = requests.first().map_or(0, |first| first.strategy.limits().len());
    // Usually there is one group. The number of keys, as text, takes some bytes too.
    8 * (9 + 8 * limits + requests.len()) + 8
}

/// True if two of the requests share a key.
pub(super) fn repeats(requests: &[Arc<DecisionRequest>]) -> bool {
    if requests.len() < 2 {
        return false;
    }
    // Equal keys are in the same slot, so a bitmap of slots rules out most cases without comparing keys.
    let mut slots = [0_u64; 256];
    let met = |request: &Arc<DecisionRequest>| {
        let bits = &mut slots[usize::from(request.target.slot >> 6) % 256];
        let bit = 1 << (request.target.slot & 63);
        let met = *bits & bit != 0;
        *bits |= bit;
        met
    };
    requests.iter().any(met) && {
        let mut keys = HashSet::with_hasher(foldhash::fast::RandomState::default());
        !requests.iter().flat_map(|request| request.keys()).all(|key| keys.insert(key))
    }
}

/// Returns the operation code, and its argument: the maximum wait, or the number of parts.
fn op_numbers(request: &DecisionRequest) -> (u64, u64) {
    let is_once = |once| request.once == once;
    match request.op {
        Op::Charge if is_once(OnceKey::Record) => (op::CHARGE_ONCE, 0),
        Op::Force if is_once(OnceKey::Record) => (op::FORCE_ONCE, 0),
        Op::AtMost if is_once(OnceKey::Record) => (op::AT_MOST_ONCE, 0),
        Op::Reserve { max_wait } if is_once(OnceKey::Record) => (op::RESERVE_ONCE, max_wait.0.min(CEILING)),
        Op::Refund if is_once(OnceKey::Marker) => (op::REFUND_ONCE, 0),
        Op::Cancel => (op::CANCEL, 0),
        Op::Charge => (op::CHARGE, 0),
        Op::Peek => (op::PEEK, 0),
        Op::Refund => (op::REFUND, 0),
        Op::Reset => (op::RESET, 0),
        Op::Force => (op::FORCE, 0),
        Op::AtMost => (op::AT_MOST, 0),
        Op::Reserve { max_wait } => (op::RESERVE, max_wait.0.min(CEILING)),
        Op::Count { parts } => (op::COUNT_PARTS, parts.min(CEILING)),
    }
}

impl LimitNumbers {
    fn new(limit: &Algorithm) -> Self {
        let flag = u64::from;
        let (p1, p2, p3) = match *limit.engine() {
            Engine::Bucket(own) => match own.undelayed {
                Some(undelayed) => (own.drain, bucket::QUEUE, undelayed),
                None if limit.charges_after() => (own.drain, bucket::CHARGE_AFTER, limit.capacity()),
                None => (own.drain, 0, 0),
            },
            Engine::Window(own) => match own.grid {
                Grid::Aligned { ahead } => (own.span, window::ALIGNED, ahead),
                Grid::Anchored => (own.span, window::ANCHORED, 0),
                Grid::Spread => (own.span, window::SPREAD, 0),
                Grid::Month { ahead } => (own.span, window::MONTH, ahead),
            },
            Engine::Interval(own) => (own.refill, own.period, flag(own.aligned)),
            Engine::Log(own) if own.holds() => (own.span, own.max_held, flag(true)),
            Engine::Log(own) => (own.span, own.min_gap, 0),
            Engine::Sliding(own) => (own.span, 0, 0),
            Engine::Slots(own) => (own.width(), own.frame(), own.stays()),
            // The first number of this engine is not whole; it is set below.
            Engine::WarmUp(own) => (0, own.warm_up, own.cold_factor),
        };
        let p1 = if let Engine::WarmUp(own) = limit.engine() { own.fresh() } else { p1 as f64 };
        Self {
            engine: limit.engine().kind().number() as f64,
            limit: limit.limit() as f64,
            weight: limit.weight() as f64,
            ceiling: limit.ceiling() as f64,
            count_denied: (flag(limit.counts_denied()) + 2 * flag(limit.is_shadow())) as f64,
            p1,
            p2: p2 as f64,
            p3: p3 as f64,
        }
    }
}

/// The field names in the order they are sent. A test compares them with the scripts.
#[cfg(test)]
pub(in crate::redis) const DOUBLES: &[&[&str]] = &[RequestHead::NAMES, GroupHead::NAMES, LimitNumbers::NAMES];
