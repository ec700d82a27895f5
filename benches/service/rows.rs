//! The rows of the table: a workload, and the server that runs it.

use weir_load::{CallMode, LoadReport, Plan, PlannedQuestion, RunWatch, Spread, UnaryMethod};

use crate::Effort;
use crate::plan::{FEW, open, plan};
use crate::processes::Process;
use crate::servers::Servers;
use crate::store_alone::StoreWork;

/// One line of the table.
pub struct Row {
    pub id: &'static str,
    pub work: &'static str,
    pub server: &'static str,
    /// The row that it is compared with.
    pub against: &'static str,
    pub what: Work,
}

/// The calls of a row.
pub enum Work {
    Calls(Box<Plan>),
    /// Commands to Redis, without a service.
    Store(StoreWork),
}

/// The result of a measurement.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    pub id: &'static str,
    pub per_second: f64,
    pub server_us: f64,
    pub redis_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub generator_us: f64,
    pub failed: u64,
}

impl Row {
    pub fn name(&self) -> String {
        format!("{}: {}", self.server, self.work)
    }

    pub fn measure(&self) -> Sample {
        match &self.what {
            Work::Store(work) => work.measure(self.id),
            Work::Calls(plan) => {
                let report = weir_load::run(plan, &RunWatch::default())
                    .unwrap_or_else(|error| panic!("{}: {error}", self.name()));
                Sample::from_report(self.id, &report)
            }
        }
    }
}

impl Sample {
    fn from_report(id: &'static str, report: &LoadReport) -> Self {
        let cpu = &report.cpu;
        Self {
            id,
            per_second: report.decisions_per_second(),
            server_us: cpu.servers.first().map_or(0.0, |server| server.us_per_decision),
            redis_us: cpu.servers.iter().skip(1).fold(0.0, |sum, redis| sum + redis.us_per_decision),
            p50_us: report.latency.p50_us,
            p99_us: report.latency.p99_us,
            p99_9_us: report.latency.p99_9_us,
            generator_us: cpu.generator_us_per_call.unwrap_or(0.0) / report.plan.mode.decisions() as f64,
            failed: report.counts.failed,
        }
    }

    /// Of the service and of Redis.
    pub fn cpu_us(&self) -> f64 {
        self.server_us + self.redis_us
    }

    /// Of each figure by itself.
    pub fn median(samples: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<f64> = samples.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        Self {
            id: samples[0].id,
            per_second: of(|it| it.per_second),
            server_us: of(|it| it.server_us),
            redis_us: of(|it| it.redis_us),
            p50_us: of(|it| it.p50_us),
            p99_us: of(|it| it.p99_us),
            p99_9_us: of(|it| it.p99_9_us),
            generator_us: of(|it| it.generator_us),
            failed: samples.iter().map(|it| it.failed).sum(),
        }
    }

    pub fn line(&self) -> String {
        format!(
            "{:>9.0}/s {:>6.2} µs + redis {:>5.2} µs, p99 {:.0} µs",
            self.per_second, self.server_us, self.redis_us, self.p99_us
        )
    }
}

/// The rows of the memory store and of a single Redis, in the order of the table.
pub fn rows(servers: &Servers, effort: Effort) -> Vec<Row> {
    let mut rows = memory(servers, effort);
    rows.extend(on_redis(servers, effort));
    rows
}

fn memory(servers: &Servers, effort: Effort) -> Vec<Row> {
    let plan = |resource, keys| plan(effort, &servers.memory, &[], resource, keys);
    let on = |process: &Process| self::plan(effort, process, &[], "allow", 100_000);
    let mut rows = vec![
        row("memory", "unary, 100 k keys", "memory", "bare", plan("allow", 100_000)),
        row("tonic", "unary, 100 k keys", "memory, `transport: tonic`", "bare", on(&servers.by_tonic)),
        row("bare", "unary, a constant answer", "bare tonic", "bare", on(&servers.bare)),
        row("h2", "unary, a constant answer", "h2 alone", "bare", on(&servers.h2)),
    ];
    if let Some(throttlecrab) = &servers.throttlecrab {
        let plan = Plan { mode: CallMode::Other(THROTTLE), ..on(throttlecrab) };
        rows.push(row("throttlecrab", "unary, 100 k keys", "throttlecrab", "bare", plan));
    }
    let many = self::plan(effort, &servers.many_keys, &[], "keep", effort.many_keys);
    let strategies = on(&servers.many_strategies);
    // As many decisions in flight as the service works on at once, not more that only wait.
    let with = |mode| Plan { mode, in_flight: 16, ..plan("allow", 100_000) };
    let with_calls = |mode| Plan { mode, ..plan("allow", 100_000) };
    rows.extend([
        row("memory-hot", "unary, one key", "memory", "memory", plan("allow", 1)),
        row("memory-1k", "unary, 1 k keys", "memory", "memory", plan("keep", 1_000)),
        row("memory-many", effort.many_keys_name(), "memory", "memory-1k", many),
        row("memory-strategies", "unary, 10,000 strategies and patterns", "memory", "memory", strategies),
        row("memory-envoy", "unary, Envoy's protocol", "memory", "memory", with_calls(CallMode::Envoy)),
        row("memory-batch", "batches of 100", "memory", "memory", with(CallMode::Batch(100))),
        row("memory-stream", "streams, 100 a message", "memory", "memory", with(CallMode::Stream(100))),
        row("memory-stream-1", "streams, 1 a message", "memory", "memory", with_calls(CallMode::Stream(1))),
        row("bare-open", "unary, 10,000 calls/s", "bare tonic", "bare-open", open(&on(&servers.bare), FEW)),
        row(
            "memory-open",
            "unary, 10,000 calls/s",
            "memory",
            "bare-open",
            open(&plan("allow", 100_000), FEW),
        ),
    ]);
    rows
}

fn on_redis(servers: &Servers, effort: Effort) -> Vec<Row> {
    let redis = [&servers.redis];
    let plan = |resource, keys| plan(effort, &servers.single, &redis, resource, keys);
    let unaided = |resource, keys| self::plan(effort, &servers.unaided, &redis, resource, keys);
    let memory_deny = self::plan(effort, &servers.memory, &[], "deny", 1_000);
    let zipf = |resource| {
        let plan = plan(resource, 100_000);
        Plan { ask: PlannedQuestion { spread: Spread::Zipf(1.0), ..plan.ask.clone() }, ..plan }
    };
    let with = |mode| Plan { mode, in_flight: 16, ..plan("allow", 100_000) };
    let (batch, stream) = (with(CallMode::Batch(100)), with(CallMode::Stream(100)));
    vec![
        row("redis", "unary, 100 k keys", "redis", "memory", plan("allow", 100_000)),
        row("redis-batch", "batches of 100", "redis", "redis", batch),
        row("redis-stream", "streams, 100 a message", "redis", "redis", stream),
        row("redis-hot", "unary, one key", "redis", "redis", plan("allow", 1)),
        row("redis-hot-off", "unary, one key, coalescing off", "redis", "redis-hot", unaided("allow", 1)),
        row("redis-hot-second", "unary, one key, 1,000/s pass", "redis", "redis", plan("second", 1)),
        row("redis-zipf", "unary, zipf(1.0)", "redis", "redis", zipf("allow")),
        row("redis-zipf-second", "unary, zipf(1.0), 1,000/s pass", "redis", "redis", zipf("second")),
        // Side by side, because they are compared.
        row("memory-deny", "unary, denied", "memory", "memory", memory_deny),
        row("redis-deny", "unary, denied", "redis", "memory-deny", plan("deny", 1_000)),
        row(
            "redis-deny-off",
            "unary, denied, denial cache off",
            "redis",
            "redis-deny",
            unaided("deny", 1_000),
        ),
    ]
}

pub fn row(
    id: &'static str,
    work: &'static str,
    server: &'static str,
    against: &'static str,
    plan: Plan,
) -> Row {
    Row { id, work, server, against, what: Work::Calls(Box::new(plan)) }
}

/// throttlecrab's `Throttle`: key, burst, so many per so many seconds, quantity.
const THROTTLE: UnaryMethod = UnaryMethod {
    path: "/throttlecrab.RateLimiter/Throttle",
    message: |key| {
        let name = format!("user_{key}");
        let mut out = vec![1 << 3 | 2, name.len() as u8];
        out.extend_from_slice(name.as_bytes());
        for (number, value) in [(2, 1_000_000_000), (3, 1_000_000_000), (4, 60), (5, 1)] {
            out.push(number << 3);
            prost::encoding::encode_varint(value, &mut out);
        }
        out
    },
};
