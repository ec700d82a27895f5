//! The parameters of queue operations, which `lua/queues/` reads.

use std::io::Write;

use crate::model::{
    FullQueue, ItemId, NewItem, OutcomeSearch, PayloadRule, QueueNumbers, QueueOp, QueueOrder, QueuePart,
};
use smallvec::SmallVec;
use weir_store::doubles;
use weir_store::scripts::put_double as put;
use weir_units::Micros;

use super::codes::{fate_code, payload, settle_op};
use super::texts::QueueScript;

doubles! {
    /// The parameters of a queue, sent after the time.
    QueueRuleNumbers {
        capacity,
        max_bytes,
        visibility,
        /// 0 without a dead-letter queue.
        max_deliveries,
        /// Items per period; 0 without a rate.
        count,
        period,
        outcomes_for,
        /// 0 without one.
        max_age,
        /// 1 if a full queue drops its oldest items.
        drops,
        /// 1 if a list hands out its newest items first.
        lifo,
        outcomes_max,
        /// Part of payloads that the archive keeps.
        payload,
    }
}

doubles! {
    /// The parameters of an Ack or a Nack.
    SettleNumbers {
        op,
        delay,
        n,
        /// 1 if tokens follow, two numbers for each item.
        checked,
    }
}

/// The parameters of one operation.
pub(super) enum QueueCallNumbers {
    /// The digest of the payload for each item, if it has an id.
    Enqueue(SmallVec<[Option<u128>; 4]>),
    /// Maximum number of items, and the token of their delivery.
    Take(usize, u64),
    /// The parameters of an Ack, a Nack or an Extend, and the tokens.
    Settle(SettleNumbers, SmallVec<[u64; 4]>),
    /// Maximum number of outcomes to return.
    Stats(usize),
    /// Maximum number of items to look at, and after which.
    Page(usize, ItemId),
    /// A search for outcomes: the maximum number, and the filters.
    Outcomes([f64; 7]),
    /// A Purge has no arguments.
    Purge,
}

impl QueueRuleNumbers {
    /// Returns those of one part of a queue. Dead letters have no rate, and are not dead-lettered again.
    pub(super) fn new(rule: &QueueNumbers, part: QueuePart) -> Self {
        let is_main = part == QueuePart::Main;
        let pace = rule.pace.filter(|_| is_main);
        let (count, period) = pace.map_or((0, 0), |pace| (pace.count, pace.period.0));
        Self {
            capacity: rule.capacity as f64,
            max_bytes: rule.max_bytes as f64,
            visibility: rule.visibility.0 as f64,
            max_deliveries: rule.max_deliveries.filter(|_| is_main).unwrap_or(0) as f64,
            count: count as f64,
            period: period as f64,
            outcomes_for: rule.outcomes.keep.0 as f64,
            max_age: rule.max_age.filter(|_| is_main).map_or(0, |age| age.0) as f64,
            drops: flag(is_main && rule.when_full == FullQueue::DropOldest),
            lifo: flag(is_main && rule.order == QueueOrder::Lifo),
            outcomes_max: rule.outcomes.max as f64,
            payload: match rule.outcomes.payload {
                PayloadRule::None => payload::NONE,
                PayloadRule::Digest => payload::DIGEST,
                PayloadRule::Head => payload::HEAD,
            } as f64,
        }
    }

    /// True if this operation may remove items that no worker has. It does not share a script call.
    pub(super) fn makes_room(&self, call: QueueScript) -> bool {
        match call {
            QueueScript::Enqueue => self.max_age > 0.0 || self.drops > 0.0,
            QueueScript::Take => self.max_age > 0.0,
            _ => false,
        }
    }
}

impl QueueCallNumbers {
    pub(super) fn new(op: &QueueOp<'_>) -> Self {
        match *op {
            QueueOp::Enqueue { items } => {
                let digest = |item: &NewItem<'_>| (!item.id.is_empty()).then_some(item.digest);
                Self::Enqueue(items.iter().map(digest).collect())
            }
            QueueOp::Take { max_items, token, .. } => Self::Take(max_items, token),
            QueueOp::Ack { ids, tokens, .. } => Self::settle(settle_op::ACK, Micros::ZERO, (ids, tokens)),
            QueueOp::Nack { ids, tokens, delay } => Self::settle(settle_op::NACK, delay, (ids, tokens)),
            QueueOp::Extend { ids, tokens, visibility } => {
                Self::settle(settle_op::EXTEND, visibility, (ids, tokens))
            }
            QueueOp::Stats { outcomes } => Self::Stats(outcomes),
            QueueOp::Browse { after, max_items } | QueueOp::Redrive { after, max_items } => {
                Self::Page(max_items, after)
            }
            QueueOp::Purge => Self::Purge,
            QueueOp::Outcomes(search) => Self::Outcomes(filters(&search)),
        }
    }

    fn settle(op: u64, delay: Micros, (ids, tokens): (&[ItemId], &[u64])) -> Self {
        let (op, delay, n) = (op as f64, delay.0 as f64, ids.len() as f64);
        let tokens: SmallVec<[u64; 4]> = match tokens {
            [] => SmallVec::new(),
            _ => tokens.iter().copied().chain(std::iter::repeat(0)).take(ids.len()).collect(),
        };
        Self::Settle(SettleNumbers { op, delay, n, checked: f64::from(u8::from(!tokens.is_empty())) }, tokens)
    }

    /// Returns the maximum number of items that the call enqueues, takes or settles.
    pub(super) fn items(&self) -> usize {
        match self {
            Self::Enqueue(digests) => digests.len(),
            Self::Take(most, _) => *most,
            Self::Settle(numbers, _) => numbers.n as usize,
            Self::Stats(_) | Self::Page(..) | Self::Outcomes(_) | Self::Purge => 0,
        }
    }

    pub(super) fn put(&self, out: &mut impl Write) {
        match self {
            Self::Enqueue(digests) => {
                put(out, digests.len() as f64);
                digests.iter().for_each(|digest| put_digest(out, *digest));
            }
            Self::Take(number, token) => {
                put(out, *number as f64);
                put_token(out, *token);
            }
            Self::Stats(number) => put(out, *number as f64),
            Self::Page(number, after) => {
                [*number as u64, after.ms, after.seq].iter().for_each(|number| put(out, *number as f64));
            }
            Self::Outcomes(filters) => filters.iter().for_each(|number| put(out, *number)),
            Self::Purge => {}
            Self::Settle(numbers, tokens) => {
                numbers.put(out);
                tokens.iter().for_each(|token| put_token(out, *token));
            }
        }
    }
}

/// The filters of a search, but for the text.
fn filters(search: &OutcomeSearch<'_>) -> [f64; 7] {
    let OutcomeSearch { item, fate, from_ms, before, max_items, .. } = search;
    let (item_ms, item_seq) = item.map_or((-1.0, -1.0), |id| (id.ms as f64, id.seq as f64));
    let fate = fate.map_or(0, fate_code);
    let (before_ms, before_seq) = (before.ms as f64, before.seq as f64);
    [*max_items as f64, item_ms, item_seq, *from_ms as f64, before_ms, before_seq, fate as f64]
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}

/// 0 without an id, 1 with one, and 2 before a digest in four parts.
fn put_digest(out: &mut impl Write, digest: Option<u128>) {
    match digest {
        None => put(out, 0.0),
        Some(0) => put(out, 1.0),
        Some(digest) => {
            put(out, 2.0);
            put_token(out, (digest >> 64) as u64);
            put_token(out, digest as u64);
        }
    }
}

/// Writes the upper and the lower half: a double is exact only up to 2^53.
fn put_token(out: &mut impl Write, token: u64) {
    put(out, (token >> 32) as f64);
    put(out, f64::from(token as u32));
}

/// The field names in the order they are sent. A test compares them with the scripts.
#[cfg(test)]
pub(super) const DOUBLES: &[&[&str]] = &[QueueRuleNumbers::NAMES, SettleNumbers::NAMES];
