//! Operations and properties of a limit.

use super::{Algorithm, Bucket, Engine, WarmUp};
use weir_units::Micros;

impl Engine {
    /// True if its limits are judged by their level alone.
    pub(super) const fn is_plain(&self) -> bool {
        match self {
            Self::Bucket(bucket) => bucket.undelayed.is_none(),
            Self::Log(log) => log.min_gap == 0 && !log.holds(),
            Self::WarmUp(_) => false,
            Self::Window(_) | Self::Interval(_) | Self::Sliding(_) | Self::Slots(_) => true,
        }
    }
}

impl Algorithm {
    /// True if it never denies, and is charged only where it would admit.
    #[inline]
    pub const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// True if a call waits only for the use of earlier calls, and the next one pays for it.
    pub const fn charges_after(&self) -> bool {
        self.upfront == 0
    }

    pub(super) const fn warms_up(&self) -> Option<&WarmUp> {
        match &self.engine {
            Engine::WarmUp(warm_up) if !self.is_plain => Some(warm_up),
            _ => None,
        }
    }

    /// True if [`Op::Refund`](super::Op::Refund) and [`Op::Force`](super::Op::Force) are defined for it.
    pub const fn is_adjustable(&self) -> bool {
        self.warms_up().is_none()
    }

    /// The backlog that is not paced, in ticks, of a bucket that makes its callers wait.
    pub const fn undelayed(&self) -> Option<u64> {
        match self.engine {
            Engine::Bucket(Bucket { undelayed, .. }) => undelayed,
            _ => None,
        }
    }

    /// True if [`Op::Reserve`](super::Op::Reserve) is defined for a strategy of this limit alone.
    pub const fn reserves(&self) -> bool {
        match self.engine {
            Engine::Bucket(bucket) => bucket.undelayed.is_none(),
            Engine::Interval(interval) => interval.refill <= self.limit,
            Engine::Log(log) => log.holds(),
            Engine::WarmUp(_) => true,
            _ => false,
        }
    }

    /// True if [`Op::Cancel`](super::Op::Cancel) is defined for its reservations.
    pub const fn cancels(&self) -> bool {
        self.reserves() && !self.charges_after()
    }

    /// The longest wait that a reservation may have, where the algorithm itself bounds it.
    pub const fn longest_wait(&self) -> Option<Micros> {
        match self.holds() {
            Some(log) => Some(Micros(log.span)),
            None => None,
        }
    }

    /// True if it accepts reservations, which are held beside it under a key of their own.
    pub const fn is_held(&self) -> bool {
        self.holds().is_some()
    }

    /// The units that a forced debit of `cost` charges to this limit, which was at `level_before`.
    pub const fn debited(&self, level_before: u64, cost: u64) -> u64 {
        let most = if self.debt_level < self.ceiling { self.debt_level } else { self.ceiling };
        let units = most.saturating_sub(level_before) / self.weight;
        // A log that counts denied attempts would drop more again.
        let drops = self.count_denied && matches!(self.engine, Engine::Log(_));
        let cost = if drops && cost > self.limit { self.limit + 1 } else { cost };
        if cost < units { cost } else { units }
    }
}
