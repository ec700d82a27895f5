//! Decodes replies of the decision script. `lua/README.md` is the contract.

use std::sync::Arc;

use redis::Value;

use super::DecisionRequest;
use super::reason::read_reason;
use super::replay::replay;
use crate::redis::callers::Replies;
use crate::redis::codes::cause;
use crate::redis::reply::{doubles, garbled, next_whole, packed, whole};
use crate::{StoreError, Verdicts};
use weir_core::algorithm::{Cause, LimitVerdict, Verdict};
use weir_units::{Micros, Retry};

pub(super) struct Tail {
    pub(super) now: Micros,
    pub(super) short: usize,
    pub(super) admitted: u64,
}

/// The `allowed` code of a recorded answer: the same id was allowed before.
const AS_BEFORE: f64 = 2.0;

/// Decodes the answers to `requests`. An error means that the whole reply is unusable.
pub(super) fn decode(
    requests: &[Arc<DecisionRequest>],
    reply: &Value,
) -> Result<Replies<Verdicts>, StoreError> {
    let (packed, reasons) = packed(reply)?;
    let Tail { now, short, admitted } = Tail::read(packed)?;
    let (mut numbers, mut reasons) = (doubles(packed), reasons.iter());
    let (first, others) = requests.split_at_checked(short).ok_or_else(garbled)?;
    let mut replies = replay(first, now, admitted, &mut numbers, &mut reasons)?;
    replies.reserve(others.len());
    for request in others {
        let mut verdicts = Verdicts::default();
        let mut failed = None;
        for _ in &request.costs {
            if let Some(why) = read_decision(request, now, &mut numbers, &mut reasons, &mut verdicts)? {
                failed.get_or_insert(why);
            }
        }
        replies.push(failed.map_or(Ok(verdicts), Err));
    }
    Ok(replies)
}

impl Tail {
    const BYTES: usize = 24;

    pub(super) fn read(packed: &[u8]) -> Result<Self, StoreError> {
        let body = packed.len().checked_sub(Self::BYTES).ok_or_else(garbled)?;
        let mut tail = doubles(packed.get(body..).unwrap_or_default());
        let now = Micros(next_whole(&mut tail)?);
        let short = usize::try_from(next_whole(&mut tail)?).map_err(|_| garbled())?;
        Ok(Self { now, short, admitted: next_whole(&mut tail)? })
    }
}

/// Decodes one decision into `out`, or returns its own error as `Some`.
fn read_decision<'a>(
    request: &DecisionRequest,
    now: Micros,
    numbers: &mut impl Iterator<Item = f64>,
    reasons: &mut impl Iterator<Item = &'a Value>,
    out: &mut Verdicts,
) -> Result<Option<StoreError>, StoreError> {
    let allowed = numbers.next().ok_or_else(garbled)?;
    if allowed < 0.0 {
        return read_reason(reasons.next().ok_or_else(garbled)?).map(Some);
    }
    let fitted = next_whole(numbers)? != 0;
    let granted = next_whole(numbers)?;
    let wait = Micros(next_whole(numbers)?);
    let applied = allowed > 0.0 && allowed != AS_BEFORE;
    out.decisions.push(Verdict { now, allowed: allowed > 0.0, fitted, granted, wait, applied });
    for _ in request.algorithms() {
        out.limits.push(read_limit(numbers)?);
    }
    Ok(None)
}

fn read_limit(numbers: &mut impl Iterator<Item = f64>) -> Result<LimitVerdict, StoreError> {
    let cause = read_cause(numbers)?;
    let remaining = next_whole(numbers)?;
    let retry = read_retry(numbers)?;
    let reset_after = Micros(next_whole(numbers)?);
    let level_before = next_whole(numbers)?;
    Ok(LimitVerdict { cause, remaining, retry, reset_after, level_before })
}

/// Reads why a limit denies.
pub(super) fn read_cause(numbers: &mut impl Iterator<Item = f64>) -> Result<Option<Cause>, StoreError> {
    match next_whole(numbers)? {
        cause::FITS => Ok(None),
        cause::COUNT => Ok(Some(Cause::Count)),
        cause::MIN_GAP => Ok(Some(Cause::MinGap)),
        cause::ABOVE => Ok(Some(Cause::Never)),
        _ => Err(garbled()),
    }
}

pub(super) fn read_retry(numbers: &mut impl Iterator<Item = f64>) -> Result<Retry, StoreError> {
    match numbers.next().ok_or_else(garbled)? {
        never if never < 0.0 => Ok(Retry::Never),
        0.0 => Ok(Retry::Now),
        wait => Ok(Retry::After(Micros(whole(wait)?))),
    }
}
