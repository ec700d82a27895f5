//! Results of a run, and their JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::cpu::{Usage, Usages};
use super::plan::{Pace, Plan, PlanEnd, Spread};
use super::tally::{Counts, Tally};

/// Results of a run.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// The plan that was run.
    pub plan: Plan,
    /// Duration of the counted part.
    pub elapsed: Duration,
    /// Outcomes of its calls.
    pub counts: Counts,
    /// Failed requests by error: their number, and the message of the first.
    pub errors: BTreeMap<String, (u64, String)>,
    /// Latency of answered calls, measured from their scheduled time.
    pub latency: Latency,
    /// Open loop only: how well the schedule was kept.
    pub open_loop: Option<OpenLoop>,
    /// CPU time, if this system reports it.
    pub cpu: Cpu,
    /// Calls during the warm-up.
    pub warm_up_calls: u64,
    /// Reason why the run ended early.
    pub ended_early: Option<String>,
}

/// Percentiles in microseconds; all 0 if nothing was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)] // they are what they are called
pub struct Latency {
    pub min_us: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub p99_99_us: f64,
    pub max_us: f64,
}

/// Adherence to the schedule of an open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenLoop {
    /// Scheduled calls per second.
    pub rate: f64,
    /// Scheduled calls that were never made, because there was no room before the end.
    pub missed: u64,
    /// Delay between the scheduled time and the call. Part of the latency.
    pub late: Latency,
}

/// CPU time of the counted part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cpu {
    /// CPU time of the generator, in microseconds per call.
    pub generator_us_per_call: Option<f64>,
    /// CPU time of the processes in [`Plan::pids`], in that order.
    pub servers: Vec<ServerCpu>,
}

/// CPU time of one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerCpu {
    /// The process.
    pub pid: u32,
    /// Microseconds per decision.
    pub us_per_decision: f64,
    /// Busy cores on average.
    pub cores: f64,
    /// Resident memory at the end.
    pub rss_bytes: u64,
    /// Growth of the resident memory since the beginning.
    pub rss_growth_bytes: i64,
}

/// Use by processes before and after, and the time of the second reading.
pub(super) struct Measured {
    pub(super) until: Duration,
    pub(super) before: Usages,
    pub(super) after: Usages,
}

impl LoadReport {
    pub(super) fn new(plan: &Plan, tally: Tally, measured: Measured) -> Self {
        let ended = Duration::from_nanos(tally.last_ns).saturating_sub(plan.warm_up);
        let elapsed = match plan.end {
            // Calls are counted by their scheduled time, so later answers belong to the counted part.
            PlanEnd::After(duration) => duration.min(measured.until.saturating_sub(plan.warm_up)),
            PlanEnd::Calls(_) => ended,
        };
        let sampled = measured.until.saturating_sub(plan.warm_up);
        let open_loop = match plan.pace {
            Pace::Closed => None,
            Pace::Open(rate) => {
                Some(OpenLoop { rate, missed: tally.missed, late: Latency::from_histogram(&tally.lateness) })
            }
        };
        Self {
            elapsed,
            cpu: Cpu::new(plan, &tally.counts, sampled, &measured),
            latency: Latency::from_histogram(&tally.latency),
            counts: tally.counts,
            errors: tally
                .errors
                .into_iter()
                .map(|(name, errors)| (name, (errors.count, errors.example)))
                .collect(),
            open_loop,
            warm_up_calls: tally.warm_up_calls,
            ended_early: tally.gave_up,
            plan: plan.clone(),
        }
    }

    /// Calls per second.
    #[must_use]
    pub fn calls_per_second(&self) -> f64 {
        per_second(self.counts.calls, self.elapsed)
    }

    /// Decisions per second.
    #[must_use]
    pub fn decisions_per_second(&self) -> f64 {
        per_second(self.counts.decisions(), self.elapsed)
    }

    /// The report as JSON. Names are stable while `schema` is 1; further ones may be added.
    #[must_use]
    pub fn json(&self) -> Value {
        let (plan, ask, counts) = (&self.plan, &self.plan.ask, &self.counts);
        let errors: BTreeMap<_, _> = self
            .errors
            .iter()
            .map(|(name, (count, example))| (name, json!({ "count": count, "example": example })))
            .collect();
        json!({
            "schema": 1,
            "server": plan.authority,
            "mode": plan.mode.name(),
            "protocol": plan.protocol.name(),
            "batch": plan.mode.decisions(),
            "pace": match plan.pace { Pace::Closed => "closed", Pace::Open(_) => "open" },
            "connections": plan.connections,
            "in_flight": plan.in_flight,
            "threads": plan.threads,
            "keys": ask.keys,
            "spread": match ask.spread { Spread::Uniform => "uniform", Spread::Zipf(_) => "zipf" },
            "zipf_exponent": match ask.spread { Spread::Uniform => None, Spread::Zipf(it) => Some(it) },
            "cost": ask.cost,
            "warm_up_s": plan.warm_up.as_secs_f64(),
            "warm_up_calls": self.warm_up_calls,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "ended_early": self.ended_early,
            "calls": { "made": counts.calls, "per_s": self.calls_per_second() },
            "decisions": {
                "asked": counts.asked,
                "allowed": counts.allowed,
                "denied": counts.denied,
                "degraded": counts.degraded,
                "failed": counts.failed,
                "per_s": self.decisions_per_second(),
            },
            "errors": errors,
            "latency_us": self.latency.json(),
            "open_loop": self.open_loop.map(|open| json!({
                "rate": open.rate,
                "missed": open.missed,
                "late_us": open.late.json(),
            })),
            "cpu": {
                "generator_us_per_call": self.cpu.generator_us_per_call,
                "servers": self.cpu.servers.iter().map(|server| json!({
                    "pid": server.pid,
                    "us_per_decision": server.us_per_decision,
                    "cores": server.cores,
                    "rss_bytes": server.rss_bytes,
                    "rss_growth_bytes": server.rss_growth_bytes,
                })).collect::<Vec<_>>(),
            },
        })
    }
}

impl Latency {
    #[allow(clippy::cast_precision_loss)] // nobody measures centuries
    fn from_histogram(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        Self {
            min_us: us(histogram.min()),
            mean_us: histogram.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            p99_99_us: at(0.9999),
            max_us: us(histogram.max()),
        }
    }

    fn json(&self) -> Value {
        json!({
            "min": self.min_us,
            "mean": self.mean_us,
            "p50": self.p50_us,
            "p90": self.p90_us,
            "p99": self.p99_us,
            "p99_9": self.p99_9_us,
            "p99_99": self.p99_99_us,
            "max": self.max_us,
        })
    }
}

impl Cpu {
    fn new(plan: &Plan, counts: &Counts, elapsed: Duration, measured: &Measured) -> Self {
        let used_us = |before: &Option<Usage>, after: &Option<Usage>| {
            Some(after.as_ref()?.cpu_us.saturating_sub(before.as_ref()?.cpu_us))
        };
        let own = used_us(&measured.before.own, &measured.after.own);
        let others = plan.pids.iter().zip(measured.before.others.iter().zip(&measured.after.others));
        let server = |(pid, (before, after)): (&u32, (&Option<Usage>, &Option<Usage>))| {
            let used_us = used_us(before, after)?;
            let (rss_bytes, rss_before) = (after.as_ref()?.rss_bytes, before.as_ref()?.rss_bytes);
            Some(ServerCpu {
                pid: *pid,
                us_per_decision: ratio(used_us, counts.decisions()),
                cores: ratio(used_us, elapsed.as_micros().try_into().unwrap_or(u64::MAX)),
                rss_bytes,
                rss_growth_bytes: rss_bytes.cast_signed().wrapping_sub(rss_before.cast_signed()),
            })
        };
        Self {
            generator_us_per_call: own.map(|used| ratio(used, counts.calls)),
            servers: others.filter_map(server).collect(),
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn per_second(count: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { count as f64 / elapsed.as_secs_f64() }
}

#[allow(clippy::cast_precision_loss)]
fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
