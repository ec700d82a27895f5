//! The leases of one key. Twin: lua/leases/call.lua.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::controller::AdaptiveState;
use super::listed::HeldLease;
use super::sample::Sample;
use super::{BOUND_LOOKS, LeaseAnswer, LeaseOp, LeaseOutcome, LeaseRefusal, WorkOutcome};
use weir_core::strategy::{ConcurrencyRule, LimitSource, MAX_LEASES, Partition};
use weir_units::{LATEST, Micros};

/// A call about a lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseCall<'a> {
    /// The store's time.
    pub now: Micros,
    /// Id of the lease.
    pub id: &'a str,
    /// Operation.
    pub op: LeaseOp,
    /// The caller's partition, if the limit has any.
    pub partition: Option<Partition<'a>>,
    /// A number from a half to one that differs from release to release; only Vegas uses it.
    pub jitter: f64,
}

/// The leases of one key, and its controller's state.
#[derive(Debug, Clone, Default)]
pub struct LeaseSet {
    leases: HashMap<Arc<str>, Lease>,
    /// Ends and ids, the earliest first.
    ends: BTreeSet<(Micros, Arc<str>)>,
    in_flight: u64,
    /// Total length of all ids, in bytes.
    id_bytes: usize,
    /// Permits held by each partition; empty ones are left out.
    partitions: HashMap<Box<str>, u64>,
    adaptive: Option<AdaptiveState>,
    /// End of the last lease, if the key has none now.
    empty_since: Micros,
}

#[derive(Debug, Clone)]
struct Lease {
    weight: u64,
    /// Permits in flight when it was acquired, its own weight included.
    in_flight: u64,
    acquired: Micros,
    ends: Micros,
    partition: Option<Box<str>>,
}

impl LeaseSet {
    /// Answers one call. Leases that have ended are removed first, whatever is asked.
    pub fn call(&mut self, rule: &ConcurrencyRule, call: &LeaseCall<'_>) -> LeaseAnswer {
        self.expire(rule, call.now);
        let outcome = match call.op {
            LeaseOp::Acquire { weight, ttl } => self.acquire(rule, call, weight, ttl),
            LeaseOp::Renew { ttl } => self.renew(rule, call, ttl),
            LeaseOp::Release { outcome, rtt } => self.release(rule, call, outcome, rtt),
            LeaseOp::Sample { rtt, in_flight, dropped } => {
                self.sample(rule, call, rtt, in_flight, dropped);
                LeaseOutcome::Sampled
            }
        };
        self.answer(rule, call, outcome)
    }

    /// Returns the leases by end and id. Some may have ended.
    pub(super) fn by_end(&self, from: Bound<(Micros, Arc<str>)>) -> impl Iterator<Item = HeldLease> {
        self.ends.range((from, Bound::Unbounded)).filter_map(|(ends, id)| {
            let Lease { weight, acquired, partition, .. } = self.leases.get(id)?;
            let (id, partition) = ((**id).into(), partition.clone());
            Some(HeldLease { id, weight: *weight, acquired: *acquired, ends: *ends, partition })
        })
    }

    /// Returns how many leases end after `now`.
    pub(super) fn held_after(&self, now: Micros) -> u64 {
        self.ends.iter().rev().take_while(|(ends, _)| *ends > now).count() as u64
    }

    /// Number of leases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// True if there is no lease.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Total length of all ids, in bytes.
    #[must_use]
    pub fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// Removes expired leases, and the controller's state if it was idle for too long. Leases that would end later
    /// than the longest one may, because the clock was set back, are shortened.
    pub fn expire(&mut self, rule: &ConcurrencyRule, now: Micros) {
        while let Some((ends, id)) = self.ends.first().filter(|(ends, _)| *ends <= now) {
            let (ends, id) = (*ends, Arc::clone(id));
            self.remove(&id, ends);
        }
        let latest = after(now, rule.numbers().max_ttl);
        while let Some((_, id)) = self.ends.last().filter(|(ends, _)| *ends > latest) {
            let id = Arc::clone(id);
            self.end_at(&id, latest);
        }
        let idle_since = self.leases.is_empty().then_some(self.empty_since);
        let is_idle = |idle| idle_since.is_some_and(|since| now >= after(since, idle));
        self.adaptive = self.adaptive.take().filter(|state| {
            rule.adaptive().is_some_and(|adaptive| state.is_of(adaptive) && !is_idle(adaptive.idle))
        });
    }

    /// True if dropping it would lose nothing.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.leases.is_empty() && self.adaptive.is_none()
    }

    fn acquire(
        &mut self,
        rule: &ConcurrencyRule,
        call: &LeaseCall<'_>,
        weight: u64,
        ttl: Micros,
    ) -> LeaseOutcome {
        if let Some(lease) = self.leases.get(call.id) {
            if lease.weight != weight {
                return LeaseOutcome::OtherWeight(lease.weight);
            }
            return LeaseOutcome::Held { expires_after: until(lease.ends, call.now), is_new: false };
        }
        if weight > rule.most() {
            return LeaseOutcome::Refused { refusal: LeaseRefusal::Never, bound: None };
        }
        if weight > self.room(rule, call.partition) {
            let bound = self.bound(rule, call.now, weight);
            return LeaseOutcome::Refused { refusal: LeaseRefusal::Limited, bound };
        }
        if self.leases.len() >= MAX_LEASES {
            let bound = self.ends.first().map(|(ends, _)| until(*ends, call.now));
            return LeaseOutcome::Refused { refusal: LeaseRefusal::Full, bound };
        }
        let ends = after(call.now, ttl.min(rule.numbers().max_ttl));
        let id: Arc<str> = call.id.into();
        self.in_flight += weight;
        self.id_bytes += id.len();
        if let Some(partition) = call.partition {
            *self.partitions.entry(partition.name.into()).or_default() += weight;
        }
        let (in_flight, acquired) = (self.in_flight, call.now);
        let partition = call.partition.map(|partition| partition.name.into());
        self.leases.insert(Arc::clone(&id), Lease { weight, in_flight, acquired, ends, partition });
        self.ends.insert((ends, id));
        LeaseOutcome::Held { expires_after: until(ends, call.now), is_new: true }
    }

    fn renew(&mut self, rule: &ConcurrencyRule, call: &LeaseCall<'_>, ttl: Micros) -> LeaseOutcome {
        let ends = after(call.now, ttl.min(rule.numbers().max_ttl));
        if !self.end_at(call.id, ends) {
            return LeaseOutcome::NotHeld;
        }
        LeaseOutcome::Held { expires_after: until(ends, call.now), is_new: false }
    }

    fn release(
        &mut self,
        rule: &ConcurrencyRule,
        call: &LeaseCall<'_>,
        outcome: WorkOutcome,
        rtt: Option<Micros>,
    ) -> LeaseOutcome {
        let Some(lease) = self.remove(call.id, call.now) else { return LeaseOutcome::NotHeld };
        let rtt = rtt.unwrap_or_else(|| until(call.now, lease.acquired));
        if outcome != WorkOutcome::Ignored {
            self.sample(rule, call, rtt, lease.in_flight, outcome == WorkOutcome::Dropped);
        }
        LeaseOutcome::Released
    }

    fn sample(
        &mut self,
        rule: &ConcurrencyRule,
        call: &LeaseCall<'_>,
        rtt: Micros,
        in_flight: u64,
        dropped: bool,
    ) {
        let Some(adaptive) = rule.adaptive() else { return };
        let (rtt, in_flight) = (rtt.0.max(1) as f64, in_flight as f64);
        if self.leases.is_empty() {
            self.empty_since = call.now;
        }
        let sample = Sample { rtt, in_flight, dropped, jitter: call.jitter };
        AdaptiveState::sample(&mut self.adaptive, adaptive, call.now, sample);
    }

    fn answer(&self, rule: &ConcurrencyRule, call: &LeaseCall<'_>, outcome: LeaseOutcome) -> LeaseAnswer {
        LeaseAnswer {
            now: call.now,
            outcome,
            limit: self.limit(rule),
            in_flight: self.in_flight,
            remaining: self.room(rule, call.partition),
            estimate: self.estimate(rule),
        }
    }

    fn estimate(&self, rule: &ConcurrencyRule) -> f64 {
        match &rule.numbers().source {
            LimitSource::Fixed(limit) => *limit as f64,
            LimitSource::Adaptive(adaptive) => AdaptiveState::estimate(self.adaptive.as_ref(), adaptive),
        }
    }

    fn limit(&self, rule: &ConcurrencyRule) -> u64 {
        // It is not negative, and below 2^53.
        self.estimate(rule).floor() as u64
    }

    /// The largest weight that fits now.
    fn room(&self, rule: &ConcurrencyRule, partition: Option<Partition<'_>>) -> u64 {
        let limit = self.limit(rule);
        let shared = limit.saturating_sub(self.in_flight);
        let own = partition.map_or(0, |partition| {
            let held = self.partitions.get(partition.name).copied().unwrap_or_default();
            partition.guaranteed(limit).saturating_sub(held)
        });
        shared.max(own).min(rule.most())
    }

    /// Time until enough leases expire for `weight` to fit.
    fn bound(&self, rule: &ConcurrencyRule, now: Micros, weight: u64) -> Option<Micros> {
        let limit = self.limit(rule);
        if weight > limit {
            return None;
        }
        let mut in_flight = self.in_flight;
        for (ends, id) in self.ends.iter().take(BOUND_LOOKS) {
            in_flight = in_flight.saturating_sub(self.leases.get(id).map_or(0, |lease| lease.weight));
            if in_flight + weight <= limit {
                return Some(until(*ends, now));
            }
        }
        self.ends.last().map(|(ends, _)| until(*ends, now))
    }

    /// Moves the end of a lease. False if there is no such lease.
    fn end_at(&mut self, id: &str, ends: Micros) -> bool {
        let Some((id, lease)) = self.leases.get_key_value(id) else { return false };
        let id = Arc::clone(id);
        self.ends.remove(&(lease.ends, Arc::clone(&id)));
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.ends = ends;
        }
        self.ends.insert((ends, id));
        true
    }

    /// Removes a lease, which has ended `at` this time.
    fn remove(&mut self, id: &str, at: Micros) -> Option<Lease> {
        let (id, lease) = self.leases.remove_entry(id)?;
        self.id_bytes -= id.len();
        self.ends.remove(&(lease.ends, id));
        self.in_flight = self.in_flight.saturating_sub(lease.weight);
        if let Some(partition) = lease.partition.as_deref()
            && let Some(held) = self.partitions.get_mut(partition)
        {
            *held = held.saturating_sub(lease.weight);
            if *held == 0 {
                self.partitions.remove(partition);
            }
        }
        if self.leases.is_empty() {
            self.empty_since = at;
        }
        Some(lease)
    }
}

fn after(now: Micros, span: Micros) -> Micros {
    Micros(now.0.saturating_add(span.0)).min(LATEST)
}

fn until(end: Micros, now: Micros) -> Micros {
    Micros(end.0.saturating_sub(now.0))
}
