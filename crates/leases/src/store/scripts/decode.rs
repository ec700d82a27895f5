//! Decodes replies of `lua/leases/call.lua`.

use weir_store::StoreError;
use weir_store::scripts::{LaneReplies, LinkReply, doubles_of as doubles, garbled, whole};
use weir_units::Micros;

use super::codes::lease_status as status;
use crate::model::{LeaseAnswer, LeaseOutcome, LeaseRefusal};

/// Bytes of one answer.
const ANSWER: usize = 56;

/// One answer, undecoded.
struct LeaseReply {
    now: f64,
    status: f64,
    limit: f64,
    in_flight: f64,
    remaining: f64,
    /// Depends on the status: the remaining time of a lease, the bound of a refusal or -1, or a weight.
    extra: f64,
    estimate: f64,
}

/// Decodes the reply to `calls` requests.
pub(super) fn decode(calls: usize, reply: &LinkReply) -> Result<LaneReplies<LeaseAnswer>, StoreError> {
    let (packed, reasons) = packed(reply)?;
    if packed.len() != calls * ANSWER {
        return Err(garbled());
    }
    let mut reasons = reasons.iter();
    let answer = |packed: &[u8]| {
        let reply = LeaseReply::read(packed).ok_or_else(garbled)?;
        if reply.status == status::FAILED as f64 {
            return key_error(reasons.next().ok_or_else(garbled)?).map(Err);
        }
        reply.answer().map(Ok)
    };
    packed.chunks_exact(ANSWER).map(answer).collect()
}

/// Splits a reply into its packed doubles and the texts that follow.
pub(super) fn packed(reply: &LinkReply) -> Result<(&[u8], &[LinkReply]), StoreError> {
    match reply {
        LinkReply::Bytes(packed) => Ok((packed, &[])),
        LinkReply::List(parts) => match parts.split_first() {
            Some((LinkReply::Bytes(packed), texts)) => Ok((packed, texts)),
            _ => Err(garbled()),
        },
        _ => Err(garbled()),
    }
}

/// Maps the reason of a failed operation: an error of its key.
fn key_error(reason: &LinkReply) -> Result<StoreError, StoreError> {
    let reason = reason.text()?;
    let is_unreadable = reason.starts_with("WRONGTYPE");
    Ok(if is_unreadable { StoreError::Unreadable } else { StoreError::Refused }(reason.into()))
}

impl LeaseReply {
    fn read(packed: &[u8]) -> Option<Self> {
        let mut numbers = doubles(packed);
        let mut next = || numbers.next();
        let (now, status, limit, in_flight) = (next()?, next()?, next()?, next()?);
        let (remaining, extra, estimate) = (next()?, next()?, next()?);
        Some(Self { now, status, limit, in_flight, remaining, extra, estimate })
    }

    fn answer(&self) -> Result<LeaseAnswer, StoreError> {
        let span = |number: f64| whole(number).map(Micros);
        Ok(LeaseAnswer {
            now: span(self.now)?,
            outcome: self.outcome()?,
            limit: whole(self.limit)?,
            in_flight: whole(self.in_flight)?,
            remaining: whole(self.remaining)?,
            estimate: self.estimate,
        })
    }

    fn outcome(&self) -> Result<LeaseOutcome, StoreError> {
        let span = || whole(self.extra).map(Micros);
        let held = |is_new| Ok(LeaseOutcome::Held { expires_after: span()?, is_new });
        let refused = |refusal| {
            let bound = if self.extra < 0.0 { None } else { Some(span()?) };
            Ok(LeaseOutcome::Refused { refusal, bound })
        };
        match whole(self.status)? {
            status::HELD => held(true),
            status::KNOWN => held(false),
            status::RELEASED => Ok(LeaseOutcome::Released),
            status::NOT_HELD => Ok(LeaseOutcome::NotHeld),
            status::OTHER_WEIGHT => Ok(LeaseOutcome::OtherWeight(whole(self.extra)?)),
            status::LIMITED => refused(LeaseRefusal::Limited),
            status::NEVER => refused(LeaseRefusal::Never),
            status::FULL => refused(LeaseRefusal::Full),
            status::SAMPLED => Ok(LeaseOutcome::Sampled),
            _ => Err(garbled()),
        }
    }
}
