//! The parameters of queue operations, which `lua/queue/` reads.

use std::io::Write;

use smallvec::SmallVec;
use weir_core::queue::{QueueNumbers, QueueOp, QueuePart};

use crate::redis::codes::settle_op;
use crate::redis::doubles::{doubles, put};

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
    }
}

doubles! {
    /// The parameters of an Ack or a Nack.
    SettleNumbers {
        op,
        delay,
        n,
    }
}

/// The parameters of one operation.
pub(super) enum QueueCallNumbers {
    /// For each item, true if it has an id.
    Enqueue(SmallVec<[bool; 8]>),
    /// Maximum number of items.
    Take(usize),
    /// The parameters of an Ack or a Nack.
    Settle(SettleNumbers),
    /// Maximum number of outcomes to return.
    Stats(usize),
}

impl QueueRuleNumbers {
    /// Returns those of one part of a queue. Dead letters have no rate, and are not dead-lettered again.
    pub(super) fn of(rule: &QueueNumbers, part: QueuePart) -> Self {
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
            outcomes_for: rule.outcomes.0 as f64,
        }
    }
}

impl QueueCallNumbers {
    pub(super) fn of(op: &QueueOp<'_>) -> Self {
        match *op {
            QueueOp::Enqueue { items } => {
                Self::Enqueue(items.iter().map(|item| !item.id.is_empty()).collect())
            }
            QueueOp::Take { max_items, .. } => Self::Take(max_items),
            QueueOp::Ack { ids, .. } => Self::settle(settle_op::ACK, 0, ids.len()),
            QueueOp::Nack { ids, delay } => Self::settle(settle_op::NACK, delay.0, ids.len()),
            QueueOp::Stats { outcomes } => Self::Stats(outcomes),
        }
    }

    fn settle(op: u64, delay: u64, items: usize) -> Self {
        Self::Settle(SettleNumbers { op: op as f64, delay: delay as f64, n: items as f64 })
    }

    /// Returns the maximum number of items that the call enqueues, takes or settles.
    pub(super) fn items(&self) -> usize {
        match self {
            Self::Enqueue(has_id) => has_id.len(),
            Self::Take(most) => *most,
            Self::Settle(numbers) => numbers.n as usize,
            Self::Stats(_) => 0,
        }
    }

    pub(super) fn put(&self, out: &mut impl Write) {
        match self {
            Self::Enqueue(has_id) => {
                put(out, has_id.len() as f64);
                for &has_id in has_id {
                    put(out, f64::from(u8::from(has_id)));
                }
            }
            Self::Take(number) | Self::Stats(number) => put(out, *number as f64),
            Self::Settle(numbers) => numbers.put(out),
        }
    }
}

/// The field names in the order they are sent. A test compares them with the scripts.
#[cfg(test)]
pub(in crate::redis) const DOUBLES: &[&[&str]] = &[QueueRuleNumbers::NAMES, SettleNumbers::NAMES];
