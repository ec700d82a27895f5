//! The probe of leases: it takes and returns one through the real script.

use std::sync::Arc;

use weir_core::lease::{
    AdaptiveRule, AimdRule, ConcurrencyNumbers, ConcurrencyRule, ControllerRule, LeaseOp, LimitSource,
    WorkOutcome,
};
use weir_units::Micros;

use super::probed::{Probed, probe};
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::leases::LeaseRequest;

/// How the reason begins when leases are refused.
pub(super) const FOR_LEASES: &str = "for leases: ";

/// A limit of one permit, and the calls that are made of it.
#[derive(Debug)]
pub(super) struct LeaseProbe {
    /// The second one has leases that last half as long.
    rules: [ConcurrencyRule; 2],
    /// Under which rule, by whom, that is, partition and id, and what.
    calls: [(usize, &'static str, &'static str, LeaseOp); 4],
}

impl LeaseProbe {
    /// Leases that last for `ttl`, if a probe is lost before it returns its own.
    pub(super) fn new(ttl: Micros) -> Option<Self> {
        let controller = ControllerRule::Aimd(AimdRule { backoff: 0.9, timeout: ttl });
        // A limit that adapts needs every right that a fixed one needs.
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
        // Together they use every right of leases: the second call finds its lease, which may not last as long any more,
        // the third is refused, and the last one changes the count of a partition that is not its own.
        let calls = [
            (0, "one", "first", acquire),
            (1, "one", "first", acquire),
            (0, "one", "second", acquire),
            (0, "other", "first", release),
        ];
        // The numbers are valid, which the test below holds.
        let rules = [rule(ttl)?, rule(Micros(ttl.0 / 2))?];
        Some(Self { rules, calls })
    }

    /// Makes the calls under each of `tags`, until one is refused.
    pub(super) async fn run(
        &self,
        connection: &mut Connection,
        context: &LinkContext,
        tags: &[u128],
    ) -> Probed {
        for &tag in tags {
            for &(rule, partition, id, op) in &self.calls {
                let (namespace, call) = (&context.config.namespace, (partition, id, op));
                let request = LeaseRequest::probe(&self.rules[rule], namespace, tag, call);
                match probe(connection, context, &[Arc::new(request)]).await {
                    Probed::Decides => {}
                    Probed::Refuses(reason) => return Probed::Refuses(format!("{FOR_LEASES}{reason}")),
                    other => return other,
                }
            }
        }
        Probed::Decides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_numbers_are_valid() {
        assert!(LeaseProbe::new(Micros::from_secs(10)).is_some());
    }
}
