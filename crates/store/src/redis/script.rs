//! What the script is sent, and what it replies. `lua/README.md` is the contract.

use std::collections::HashSet;
use std::sync::Arc;

use redis::Value;

use super::replay::replay;
use super::request::{NodeReply, OnceKey, Request};
use crate::{StoreError, Verdicts};
use weir_core::algorithm::{Algorithm, Cause, Engine, Grid, LimitVerdict, Op, Verdict};
use weir_units::{CEILING, LATEST, Micros, Retry};

/// What the reason begins with where an id is known with another cost; the cost follows.
const OTHER_COST: &str = "other cost: ";

/// The request string for `requests`, of which neighbours with the same limits share them.
pub(super) fn encode(requests: &[Arc<Request>], now: Option<Micros>) -> Vec<u8> {
    let groups = || requests.chunk_by(|a, b| a.is_like(b));
    let mut out = Doubles(Vec::with_capacity(256));
    out.put(now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
    out.put(groups().count() as f64);
    out.put(f64::from(u8::from(repeats(requests))));
    for group in groups() {
        let Some(first) = group.first() else { continue };
        out.put(first.algorithms().count() as f64);
        out.put(group.len() as f64);
        out.put(first.costs.len() as f64);
        let costs = || group.iter().flat_map(|request| &request.costs).copied();
        // Where all are the same, one stands for all.
        let sent = if costs().is_sorted_by(|a, b| a == b) { 1 } else { costs().count() };
        out.put(sent as f64);
        out.put_op(first);
        for limit in first.algorithms() {
            out.put_limit(limit);
        }
        if first.op == Op::Force {
            for limit in first.algorithms() {
                out.put(limit.debt_level().map_or(-1.0, |level| level as f64));
            }
        }
        for cost in costs().take(sent) {
            out.put(cost.min(CEILING) as f64);
        }
        for &phase in group.iter().flat_map(|request| &request.phases) {
            out.put(phase as f64);
        }
    }
    out.0
}

/// Whether two of the requests have a key in common.
fn repeats(requests: &[Arc<Request>]) -> bool {
    // Keys that are the same are in the same slot, which is known without a look at them.
    let mut slots = [0_u64; 256];
    let met = |request: &Arc<Request>| {
        let bits = &mut slots[usize::from(request.slot >> 6) % 256];
        let bit = 1 << (request.slot & 63);
        let met = *bits & bit != 0;
        *bits |= bit;
        met
    };
    requests.len() > 1 && requests.iter().any(met) && {
        let mut keys = HashSet::with_hasher(foldhash::fast::RandomState::default());
        !requests.iter().flat_map(|request| request.keys()).all(|key| keys.insert(key))
    }
}

/// The answers to `requests`, or why nothing of the reply can be used.
pub(super) fn decode(requests: &[Arc<Request>], reply: &Value) -> Result<Vec<NodeReply>, StoreError> {
    let (packed, reasons) = match reply {
        Value::BulkString(packed) => (packed, &[][..]),
        Value::Array(parts) => match parts.split_first() {
            Some((Value::BulkString(packed), reasons)) => (packed, reasons),
            _ => return Err(garbled()),
        },
        _ => return Err(garbled()),
    };
    let body = packed.len().checked_sub(24).ok_or_else(garbled)?;
    let mut numbers = packed.chunks_exact(8).map(number);
    let mut last = numbers.clone().skip(body / 8);
    let now = Micros(whole(last.next())?);
    let short = usize::try_from(whole(last.next())?).map_err(|_| garbled())?;
    let admitted = whole(last.next())?;
    let mut reasons = reasons.iter();
    let (first, others) = requests.split_at_checked(short).ok_or_else(garbled)?;
    let mut answers = replay(first, now, admitted, &mut numbers, &mut reasons)?;
    answers.reserve(others.len());
    for request in others {
        let mut verdicts = Verdicts::default();
        let mut failed = None;
        for _ in &request.costs {
            if let Some(why) = decode_decision(request, now, &mut numbers, &mut reasons, &mut verdicts)? {
                failed.get_or_insert(why);
            }
        }
        answers.push(failed.map_or(Ok(verdicts), Err));
    }
    Ok(answers)
}

/// Appends one decision, or why it alone failed.
fn decode_decision<'a>(
    request: &Request,
    now: Micros,
    numbers: &mut impl Iterator<Item = f64>,
    reasons: &mut impl Iterator<Item = &'a Value>,
    out: &mut Verdicts,
) -> Result<Option<StoreError>, StoreError> {
    let allowed = numbers.next().ok_or_else(garbled)?;
    if allowed < 0.0 {
        let Some(Value::BulkString(reason)) = reasons.next() else { return Err(garbled()) };
        return Ok(Some(reason_of(&String::from_utf8_lossy(reason))));
    }
    let fitted = whole(numbers.next())? != 0;
    let granted = whole(numbers.next())?;
    let wait = Micros(whole(numbers.next())?);
    // 2: as it was decided before.
    let applied = allowed == 1.0;
    out.decisions.push(Verdict { now, allowed: allowed > 0.0, fitted, granted, wait, applied });
    for _ in request.algorithms() {
        let cause = match whole(numbers.next())? {
            0 => None,
            1 => Some(Cause::Count),
            2 => Some(Cause::MinGap),
            3 => Some(Cause::Never),
            _ => return Err(garbled()),
        };
        let remaining = whole(numbers.next())?;
        let retry = match numbers.next() {
            Some(never) if never < 0.0 => Retry::Never,
            Some(0.0) => Retry::Now,
            wait => Retry::After(Micros(whole(wait)?)),
        };
        let reset_after = Micros(whole(numbers.next())?);
        let level_before = whole(numbers.next())?;
        out.limits.push(LimitVerdict { cause, remaining, retry, reset_after, level_before });
    }
    Ok(None)
}

/// An error of one key within the script: the key's own fault, or the server's.
pub(super) fn reason_of(reason: &str) -> StoreError {
    if let Some(known) = reason.strip_prefix(OTHER_COST).and_then(|cost| cost.parse().ok()) {
        return StoreError::OtherCost(known);
    }
    // Redis 6.2 and 7.0 say in these words that a right is missing.
    if reason.contains("The user executing the script") {
        return StoreError::Refused(reason.into());
    }
    let code = reason.split(' ').next().unwrap_or_default();
    match code {
        "OOM" | "READONLY" | "MISCONF" | "NOREPLICAS" | "NOPERM" | "MASTERDOWN" => {
            StoreError::Refused(reason.into())
        }
        _ => StoreError::Unreadable(reason.into()),
    }
}

pub(super) fn garbled() -> StoreError {
    StoreError::Refused("the script's reply is not one that this version understands".into())
}

pub(super) fn number(bytes: &[u8]) -> f64 {
    bytes.try_into().map_or(f64::NAN, f64::from_le_bytes)
}

/// A whole number that a decision may hold; anything else is a reply of something else.
pub(super) fn whole(number: Option<f64>) -> Result<u64, StoreError> {
    const LIMIT: f64 = (1_u64 << 53) as f64;
    match number {
        Some(number) if (0.0..LIMIT).contains(&number) && number.fract() == 0.0 => Ok(number as u64),
        _ => Err(garbled()),
    }
}

struct Doubles(Vec<u8>);

impl Doubles {
    fn put(&mut self, number: f64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn put_limit(&mut self, limit: &Algorithm) {
        let flag = u64::from;
        let engine = limit.engine().kind().number() as u64;
        let (p1, p2, p3) = match *limit.engine() {
            Engine::Bucket(bucket) => match bucket.undelayed {
                Some(undelayed) => (bucket.drain, 1, undelayed),
                None if limit.charges_after() => (bucket.drain, 2, limit.capacity()),
                None => (bucket.drain, 0, 0),
            },
            Engine::Window(window) => match window.grid {
                Grid::Aligned { ahead } => (window.span, 0, ahead),
                Grid::Anchored => (window.span, 1, 0),
                Grid::Spread => (window.span, 3, 0),
                Grid::Month { ahead } => (window.span, 2, ahead),
            },
            Engine::Interval(interval) => (interval.refill, interval.period, flag(interval.aligned)),
            Engine::Log(log) => (log.span, log.min_gap, flag(log.hold)),
            Engine::Sliding(sliding) => (sliding.span, 0, 0),
            Engine::Slots(slots) => (slots.width, slots.count, 0),
            // The first is no whole number.
            Engine::WarmUp(warm_up) => (0, warm_up.warm_up, warm_up.cold_factor),
        };
        // One number has both flags.
        let count_denied = flag(limit.counts_denied()) + 2 * flag(limit.is_shadow());
        for number in [engine, limit.limit(), limit.weight(), limit.ceiling(), count_denied] {
            self.put(number as f64);
        }
        if let Engine::WarmUp(warm_up) = limit.engine() {
            self.put(warm_up.fresh());
        } else {
            self.put(p1 as f64);
        }
        self.put(p2 as f64);
        self.put(p3 as f64);
    }

    fn put_op(&mut self, request: &Request) {
        let is_once = |once| request.once == once;
        let (op, max_wait) = match request.op {
            Op::Charge if is_once(OnceKey::Record) => (9, 0),
            Op::Force if is_once(OnceKey::Record) => (10, 0),
            Op::AtMost if is_once(OnceKey::Record) => (11, 0),
            Op::Reserve { max_wait } if is_once(OnceKey::Record) => (12, max_wait.0.min(CEILING)),
            Op::Cancel => (13, 0),
            Op::Charge => (1, 0),
            Op::Peek => (2, 0),
            Op::Refund if is_once(OnceKey::Marker) => (8, 0),
            Op::Refund => (3, 0),
            Op::Reset => (4, 0),
            Op::Force => (5, 0),
            Op::AtMost => (6, 0),
            Op::Reserve { max_wait } => (7, max_wait.0.min(CEILING)),
            Op::Count { parts } => (14, parts.min(CEILING)),
        };
        for number in [op, max_wait] {
            self.put(number as f64);
        }
    }
}
