//! The parameters of a lease operation, which `lua/leases/start.lua` reads after the time.

use weir_core::strategy::{AdaptiveRule, ConcurrencyRule, ControllerRule, LimitSource, ProbeRule};
use weir_store::doubles;
use weir_units::{CEILING, Micros};

use super::codes::{lease_op, lease_outcome};
use crate::model::{LeaseOp, WorkOutcome};

doubles! {
    /// The parameters of a lease operation: the operation, the limit and its controller. 0 is "not present".
    LeaseNumbers {
        op,
        initial,
        least,
        most,
        max_ttl,
        idle,
        /// The share of its partition; -1 without a partition.
        share,
        weight,
        ttl,
        outcome,
        /// Duration of the work; -1 stands for the time since the lease was acquired.
        rtt,
        shown_in_flight,
        jitter,
        window_span,
        window_samples,
        p1,
        p2,
        p3,
        p4,
    }
}

impl LeaseNumbers {
    /// Encoded size of the numbers.
    pub(super) const BYTES: usize = size_of::<Self>();

    pub(super) fn new(rule: &ConcurrencyRule, op: &LeaseOp, jitter: f64, share: Option<u64>) -> Self {
        let max_ttl = rule.numbers().max_ttl.0 as f64;
        let share = share.map_or(-1.0, |share| share as f64);
        let numbers = Self { max_ttl, share, jitter, rtt: -1.0, ..Self::default() };
        numbers.with_limit(&rule.numbers().source).with_op(op)
    }

    fn with_op(self, op: &LeaseOp) -> Self {
        let time = |rtt: Micros| rtt.0.min(CEILING) as f64;
        match *op {
            LeaseOp::Acquire { weight, ttl } => {
                let weight = weight.min(CEILING) as f64;
                Self { op: lease_op::ACQUIRE as f64, weight, ttl: ttl.0 as f64, ..self }
            }
            LeaseOp::Renew { ttl } => Self { op: lease_op::RENEW as f64, ttl: ttl.0 as f64, ..self },
            LeaseOp::Release { outcome, rtt } => {
                let outcome = match outcome {
                    WorkOutcome::Success => lease_outcome::SUCCESS,
                    WorkOutcome::Ignored => lease_outcome::IGNORED,
                    WorkOutcome::Dropped => lease_outcome::DROPPED,
                };
                let (op, rtt) = (lease_op::RELEASE as f64, rtt.map_or(-1.0, time));
                Self { op, outcome: outcome as f64, rtt, ..self }
            }
            LeaseOp::Sample { rtt, in_flight, dropped } => {
                let outcome = if dropped { lease_outcome::DROPPED } else { lease_outcome::SUCCESS };
                let (op, shown_in_flight) = (lease_op::SAMPLE as f64, in_flight as f64);
                Self { op, outcome: outcome as f64, rtt: time(rtt), shown_in_flight, ..self }
            }
        }
    }

    fn with_limit(self, source: &LimitSource) -> Self {
        match source {
            LimitSource::Fixed(limit) => {
                let limit = *limit as f64;
                Self { initial: limit, least: limit, most: limit, ..self }
            }
            LimitSource::Adaptive(AdaptiveRule { initial, min, max, controller, sampling, idle }) => {
                let window = sampling.map(|rule| (rule.window.0 as f64, rule.samples as f64));
                let (window_span, window_samples) = window.unwrap_or_default();
                let (initial, least, most) = (*initial as f64, *min as f64, *max as f64);
                let idle = idle.0 as f64;
                Self { initial, least, most, idle, window_span, window_samples, ..self }
                    .with_controller(controller)
            }
        }
    }

    /// Adds the controller's parameters. The header of each controller's file in `lua/leases/` explains them.
    fn with_controller(self, controller: &ControllerRule) -> Self {
        match controller {
            ControllerRule::Aimd(rule) => Self { p1: rule.backoff, p2: rule.timeout.0 as f64, ..self },
            ControllerRule::Vegas(rule) => {
                let p4 = match rule.probe {
                    ProbeRule::Never => 0.0,
                    ProbeRule::Every(samples) => -samples,
                    ProbeRule::PerPermit(samples) => samples,
                };
                let (p2, p3) = (rule.alpha.unwrap_or(-1.0), rule.beta.unwrap_or(-1.0));
                Self { p1: rule.smoothing, p2, p3, p4, ..self }
            }
            ControllerRule::Gradient2(rule) => {
                let (p3, p4) = (rule.long_window, rule.tolerance);
                Self { p1: rule.smoothing, p2: rule.queue, p3, p4, ..self }
            }
        }
    }
}
