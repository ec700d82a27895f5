//! Judges a cost against one limit before anything is written, and computes the rest. Twins: the functions of the
//! same names in `lua/judge.lua`, `lua/limit.lua` and `lua/decide.lua`.

use super::{Algorithm, Bucket, Cause, Engine, Log, Op, Reading, State, WarmUp, log};
use weir_units::{Micros, Retry};

/// Judgement of one limit, before anything is written.
#[derive(Clone, Copy)]
pub(super) struct Judgement {
    pub(super) cause: Option<Cause>,
    pub(super) retry: Retry,
}

impl Judgement {
    pub(super) const FITS: Self = Self { cause: None, retry: Retry::Now };

    /// Fits after `wait`, or now.
    pub(super) const fn after(wait: u64) -> Self {
        if wait == 0 {
            return Self::FITS;
        }
        Self { cause: Some(Cause::Count), retry: Retry::After(Micros(wait)) }
    }
}

impl Algorithm {
    /// Judges if `cost` fits on top of the level, and how long until it does.
    #[inline(always)] // nearly every decision is about a plain limit where it fits
    pub(super) fn judge(&self, state: Option<&State>, reading: &Reading, cost: u64) -> Judgement {
        let fits = cost <= self.limit && reading.level + cost * self.weight <= self.capacity;
        if self.is_plain && fits { Judgement::FITS } else { self.judge_further(state, reading, cost) }
    }

    fn judge_further(&self, state: Option<&State>, reading: &Reading, cost: u64) -> Judgement {
        if cost > self.limit {
            return Judgement { cause: Some(Cause::Never), retry: Retry::Never };
        }
        if self.warms_up().is_some() {
            return Judgement::after(reading.origin);
        }
        if let Some(log) = self.holds() {
            return Judgement::after(log.start_of(self.limit, log_of(state), reading, cost) - reading.at);
        }
        let wanted = reading.level + cost * self.upfront;
        let gap = if cost > 0 { self.gap(reading) } else { 0 };
        let cause = match (wanted > self.capacity, gap > 0) {
            (true, _) => Cause::Count,
            (false, true) => Cause::MinGap,
            (false, false) => return Judgement::FITS,
        };
        let recorded = self.attempt(cost);
        let excess = (wanted + recorded).saturating_sub(self.capacity);
        let count = if excess > 0 { self.wait(state, reading, excess) } else { 0 };
        let retry = Retry::After(Micros(count.max(if recorded > 0 { self.min_gap() } else { gap })));
        Judgement { cause: Some(cause), retry }
    }

    /// Judges how much of `cost` can be granted; if nothing, the denial.
    pub(super) fn judge_at_most(
        &self,
        state: Option<&State>,
        reading: &Reading,
        cost: u64,
    ) -> (Judgement, u64) {
        // A limit with charge-after grants all or nothing.
        let least = if self.charges_after() { cost } else { cost.min(1) };
        let judgement = self.judge(state, reading, least);
        let grantable = if self.charges_after() { cost } else { cost.min(self.remaining(reading)) };
        (judgement, if judgement.cause.is_none() { grantable } else { 0 })
    }

    /// Judges a place in the queue: fits if its wait is within `max_wait`.
    pub(super) fn judge_reserve(
        &self,
        state: Option<&State>,
        reading: &Reading,
        judged: Judgement,
        cost: u64,
        max_wait: u64,
    ) -> (Judgement, u64) {
        let Retry::After(Micros(wait)) = judged.retry else { return (judged, 0) };
        if cost > 0
            && let Some(full) = self.holds().and_then(|log| log.full_for(log_of(state), reading))
        {
            return (Judgement { cause: Some(Cause::Count), retry: Retry::After(Micros(full)) }, 0);
        }
        let max_wait = self.longest_wait().map_or(max_wait, |longest| max_wait.min(longest.0));
        let after = match self.warms_up() {
            Some(warm_up) => reading.origin + warm_up.time_of(reading, cost),
            None => reading.level + cost * self.weight,
        };
        let beyond = after.saturating_sub(self.ceiling);
        let beyond = if beyond > 0 { self.wait(state, reading, beyond) } else { 0 };
        let excess = beyond.max(wait.saturating_sub(max_wait));
        if excess == 0 {
            return (Judgement::FITS, wait);
        }
        (Judgement { retry: Retry::After(Micros(excess)), ..judged }, 0)
    }

    /// Returns the time for which an admitted call waits for its turn, if the limit paces its calls.
    #[inline]
    pub(super) const fn pace(&self, reading: &Reading) -> u64 {
        match self.engine {
            _ if self.is_plain => 0,
            Engine::Bucket(Bucket { undelayed: Some(undelayed), drain, .. }) => {
                reading.level.saturating_sub(undelayed).div_ceil(drain)
            }
            _ => 0,
        }
    }

    #[inline]
    pub(super) fn remaining(&self, reading: &Reading) -> u64 {
        if self.warms_up().is_some() {
            return WarmUp::remaining(reading);
        }
        self.capacity().saturating_sub(reading.level) / self.weight
    }

    /// The rest after the operation. For a log that counts denied attempts, a peek's own attempt is deducted.
    #[inline]
    pub(super) fn remaining_after(&self, reading: &Reading, op: Op, cost: u64) -> u64 {
        let peeked = if op == Op::Peek { self.attempt(cost) } else { 0 };
        self.remaining(reading).saturating_sub(peeked)
    }

    /// Units that a log that counts denied attempts records of one, admitted or not; 0 for any other limit.
    pub(super) fn attempt(&self, cost: u64) -> u64 {
        match self.engine {
            _ if self.is_plain => 0,
            Engine::Log(_) if self.count_denied => cost.min(self.limit + 1),
            _ => 0,
        }
    }

    /// The shortest time between two charges.
    const fn min_gap(&self) -> u64 {
        match self.engine {
            _ if self.is_plain => 0,
            Engine::Log(log) => log.min_gap,
            _ => 0,
        }
    }

    /// Rest of the shortest gap since the newest charge.
    fn gap(&self, reading: &Reading) -> u64 {
        if self.is_plain || reading.level == 0 {
            return 0;
        }
        self.min_gap().saturating_sub(reading.at - reading.origin)
    }

    /// Nothing remains while a reserved start lies ahead, whatever the log has.
    #[inline]
    pub(super) fn cover(&self, state: Option<&State>, reading: &mut Reading) {
        if self.is_held() && Log::is_held(log_of(state), reading) {
            reading.level = reading.level.max(self.capacity);
        }
    }

    #[inline]
    pub(super) fn reset_after(&self, state: Option<&State>, reading: &Reading) -> Micros {
        if let Some(log) = self.holds() {
            return Micros(log.held_reset(log_of(state), reading));
        }
        if reading.level == 0 {
            return Micros::ZERO;
        }
        Micros(self.wait(state, reading, reading.level))
    }
}

pub(super) fn log_of(state: Option<&State>) -> Option<&log::State> {
    match state {
        Some(State::Log(log)) => Some(log),
        _ => None,
    }
}
