//! Decodes replies of `lua/lease.lua`.

use redis::Value;
use weir_core::lease::{LeaseAnswer, LeaseOutcome, LeaseRefusal};
use weir_units::Micros;

use crate::StoreError;
use crate::redis::callers::Replies;
use crate::redis::codes::lease_status as status;
use crate::redis::reply::{doubles, garbled, next_key_error, packed, whole};

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
pub(super) fn decode(calls: usize, reply: &Value) -> Result<Replies<LeaseAnswer>, StoreError> {
    let (packed, reasons) = packed(reply)?;
    if packed.len() != calls * ANSWER {
        return Err(garbled());
    }
    let mut reasons = reasons.iter();
    let answer = |packed: &[u8]| {
        let reply = LeaseReply::read(packed).ok_or_else(garbled)?;
        if reply.status == status::FAILED as f64 {
            return next_key_error(&mut reasons).map(Err);
        }
        reply.answer().map(Ok)
    };
    packed.chunks_exact(ANSWER).map(answer).collect()
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
