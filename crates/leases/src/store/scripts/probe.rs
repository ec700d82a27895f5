//! The probe of leases: it acquires and releases one through the real script.

use std::sync::{Arc, LazyLock};

use weir_core::key::Namespace;
use weir_core::strategy::{
    AdaptiveRule, AimdRule, ConcurrencyNumbers, ConcurrencyRule, ControllerRule, LimitSource,
};
use weir_store::scripts::{AnyLaneRequest, LaneProbe};
use weir_units::Micros;

use super::LeaseRequest;
use crate::model::{LeaseOp, WorkOutcome};

/// The probe of leases, for their record.
pub(super) static PROBE: LaneProbe =
    LaneProbe(|namespace, tag| CALLS.as_ref().map_or_else(Vec::new, |calls| calls.requests(namespace, tag)));

/// A limit of one permit, and the probe's calls on it.
#[derive(Debug)]
struct LeaseCalls {
    /// Two rules; leases of the second last half as long.
    rules: [ConcurrencyRule; 2],
    /// Calls of the probe: index of the rule, partition, id, operation.
    calls: [(usize, &'static str, &'static str, LeaseOp); 4],
}

/// Duration of a lease whose probe is lost before the release.
const TTL: Micros = Micros::from_secs(10);

static CALLS: LazyLock<Option<LeaseCalls>> = LazyLock::new(|| LeaseCalls::new(TTL));

impl LeaseCalls {
    fn new(ttl: Micros) -> Option<Self> {
        let controller = ControllerRule::Aimd(AimdRule { backoff: 0.9, timeout: ttl });
        // An adaptive limit needs every right that a fixed one needs.
        let one = AdaptiveRule { initial: 1, min: 1, max: 1, controller, sampling: None, idle: ttl };
        let source = LimitSource::Adaptive(one);
        let rule = |max_ttl| {
            let source = source.clone();
            let numbers =
                ConcurrencyNumbers { source, ttl: max_ttl, max_ttl, max_weight: None, partitions: None };
            ConcurrencyRule::new(numbers).ok()
        };
        let acquire = LeaseOp::Acquire { weight: 1, ttl };
        let release = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
        // Together they use every right of leases: the second call finds its lease, whose maximum TTL is shorter now,
        // the third is refused, and the last one changes the count of another partition.
        let calls = [
            (0, "one", "first", acquire),
            (1, "one", "first", acquire),
            (0, "one", "second", acquire),
            (0, "other", "first", release),
        ];
        // The numbers are valid; the test below checks it.
        let rules = [rule(ttl)?, rule(Micros(ttl.0 / 2))?];
        Some(Self { rules, calls })
    }

    /// The calls under a tag.
    fn requests(&self, namespace: &Namespace, tag: u128) -> Vec<Arc<dyn AnyLaneRequest>> {
        let request = |&(rule, partition, id, op): &(usize, &str, &str, LeaseOp)| {
            let rule: &ConcurrencyRule = &self.rules[rule];
            Arc::new(LeaseRequest::probe(rule, namespace, tag, (partition, id, op)))
                as Arc<dyn AnyLaneRequest>
        };
        self.calls.iter().map(request).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_numbers_are_valid() {
        assert!(CALLS.is_some());
    }
}
