//! What is asked about a lease in Redis. The script is `lua/lease.lua`; leases of the same kind of limit share a call of it.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::sync::oneshot;
use weir_config::RedisConfig;
use weir_core::key::{self, KeySecret, Namespace};
use weir_core::lease::{
    AdaptiveRule, ConcurrencyRule, ControllerRule, LeaseAnswer, LeaseOp, LeaseOutcome, LeaseRefusal,
    LimitSource, ProbeRule, WorkOutcome,
};
use weir_units::{CEILING, LATEST, Micros};

use super::call::evaluate;
use super::connect::Connection;
use super::context::LinkContext;
use super::fault::Fault;
use super::request::{Job, NodeRequest};
use super::script::{garbled, number, whole};
use super::shared_call::{SharedJob, SharedRequest, reason_of};
use super::source::{Script, lease_script};
use crate::{LeaseAsk, StoreError};

/// What is asked, with its keys already built; shared by its tries.
pub(super) struct LeaseRequest {
    slot: u16,
    /// Both keys, one after the other, and where the first one ends.
    keys: Vec<u8>,
    first_ends: usize,
    id: Box<str>,
    partition: Box<str>,
    script: &'static Script,
    /// All but the time.
    numbers: [f64; 19],
}

/// Bytes of an answer: 7 doubles.
const ANSWER_BYTES: usize = 56;

/// The status of a lease whose keys had an error.
const FAILED: f64 = 0.0;

/// Why a probe's call about a lease failed.
pub(super) enum LeaseProbeError {
    /// An error of Redis or of the connection.
    Refused(RedisError),
    /// The reply cannot be read.
    Unreadable(StoreError),
}

impl NodeRequest for Arc<LeaseRequest> {
    type Answer = LeaseAnswer;

    fn slot(&self) -> u16 {
        self.slot
    }

    fn job(&self, asking: bool, alone: bool, reply: oneshot::Sender<Result<LeaseAnswer, Fault>>) -> Job {
        Job::Lease(SharedJob { request: Arc::clone(self), asking, alone, reply })
    }
}

impl LeaseRequest {
    /// Builds the keys, for a node of a cluster or a server of its own.
    pub(super) fn new(
        config: &RedisConfig,
        secret: &KeySecret,
        cluster: bool,
        ask: &LeaseAsk<'_>,
    ) -> Result<Self, StoreError> {
        let rule = ask.rule()?;
        let mut keys = Vec::with_capacity(160);
        let tag = config.placements.tag(secret, ask.strategy, &ask.subject, &mut keys);
        keys.clear();
        let prefix = config.namespace.prefix(tag);
        let first_ends = key::write_lease_keys(&mut keys, prefix, ask.strategy, &ask.subject);
        let (partition, share) = match ask.partition() {
            Some(partition) => (partition.name.into(), partition.share as f64),
            None => (Box::default(), -1.0),
        };
        Ok(Self {
            slot: if cluster { key::slot(tag) } else { 0 },
            keys,
            first_ends,
            id: ask.id.into(),
            partition,
            script: lease_script(rule),
            numbers: numbers(rule, &ask.op, ask.jitter(), share),
        })
    }

    /// A call on the probe's leases under `tag`: by whom, that is, its partition (which has no share) and its id, and what.
    pub(super) fn probe(
        rule: &ConcurrencyRule,
        namespace: &Namespace,
        tag: u128,
        (partition, id, op): (&str, &str, LeaseOp),
    ) -> Self {
        let mut keys = Vec::with_capacity(96);
        let first_ends = key::write_lease_probe_keys(&mut keys, namespace.prefix(tag));
        Self {
            slot: key::slot(tag),
            keys,
            first_ends,
            id: id.into(),
            partition: partition.into(),
            script: lease_script(rule),
            numbers: numbers(rule, &op, 1.0, 0.0),
        }
    }

    /// Sends the call over `connection` and reads its answer.
    pub(super) async fn ask(
        &self,
        connection: &mut Connection,
        now: Option<Micros>,
    ) -> Result<(), LeaseProbeError> {
        let command = |name: &str, script: &str| command_of([self].into_iter(), (name, script), now, false);
        let reply =
            evaluate(connection, self.script, false, command).await.map_err(LeaseProbeError::Refused)?;
        decode(1, &reply).map(drop).map_err(LeaseProbeError::Unreadable)
    }
}

/// The command for all of `calls`.
fn command_of<'a>(
    calls: impl ExactSizeIterator<Item = &'a LeaseRequest> + Clone,
    (name, script): (&str, &str),
    now: Option<Micros>,
    spans: bool,
) -> Cmd {
    let now = now.map_or(-1.0, |now| now.min(LATEST).0 as f64);
    let numbers = calls.clone().flat_map(|call| call.numbers);
    let packed: Vec<u8> = std::iter::once(now).chain(numbers).flat_map(f64::to_le_bytes).collect();
    let mut command = redis::cmd(name);
    command.arg(script).arg(if spans { 0 } else { 2 * calls.len() });
    for call in calls.clone() {
        let (records, ends) = call.keys.split_at(call.first_ends);
        command.arg(records).arg(ends);
    }
    for call in calls {
        command.arg(&*call.id).arg(&*call.partition);
    }
    command.arg(packed);
    command
}

impl SharedRequest for LeaseRequest {
    type Answer = LeaseAnswer;

    fn slot(&self) -> u16 {
        self.slot
    }

    /// Its keys.
    fn weight(&self) -> usize {
        2
    }

    fn script(&self) -> &'static Script {
        self.script
    }

    fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.script, other.script)
    }

    /// However many are ready: no more than a link sends at once.
    fn joins(&self, _: &[Arc<Self>]) -> bool {
        true
    }

    fn deadline(context: &LinkContext) -> Duration {
        Duration::from(context.config.deadline)
    }

    fn command(calls: &[Arc<Self>], names: (&str, &str), now: Option<Micros>, spans: bool) -> Cmd {
        command_of(calls.iter().map(|call| &**call), names, now, spans)
    }

    fn decode(
        calls: &[Arc<Self>],
        reply: &Value,
    ) -> Result<Vec<Result<LeaseAnswer, StoreError>>, StoreError> {
        decode(calls.len(), reply)
    }
}

/// The numbers that `lua/lease/start.lua` reads, after the time.
fn numbers(rule: &ConcurrencyRule, op: &LeaseOp, jitter: f64, share: f64) -> [f64; 19] {
    let limit = LimitNumbers::of(rule);
    let [window, samples] = limit.sampling;
    let [p1, p2, p3, p4] = limit.own;
    let max_ttl = rule.numbers().max_ttl.0 as f64;
    let [op, weight, ttl, outcome, rtt, in_flight] = op_numbers(op);
    let LimitNumbers { initial, least, most, idle, .. } = limit;
    [
        op, initial, least, most, max_ttl, idle, share, weight, ttl, outcome, rtt, in_flight, jitter, window,
        samples, p1, p2, p3, p4,
    ]
}

/// Operation, weight, ttl, outcome, rtt and in-flight; 0 or -1 for what it does not have.
fn op_numbers(op: &LeaseOp) -> [f64; 6] {
    let rtt = |rtt: Option<Micros>| rtt.map_or(-1.0, |rtt| rtt.0.min(CEILING) as f64);
    match *op {
        LeaseOp::Acquire { weight, ttl } => {
            [1.0, weight.min(CEILING) as f64, ttl.0 as f64, 0.0, rtt(None), 0.0]
        }
        LeaseOp::Renew { ttl } => [2.0, 0.0, ttl.0 as f64, 0.0, rtt(None), 0.0],
        LeaseOp::Release { outcome, rtt: took } => {
            let outcome = match outcome {
                WorkOutcome::Success => 1.0,
                WorkOutcome::Ignored => 2.0,
                WorkOutcome::Dropped => 3.0,
            };
            [3.0, 0.0, 0.0, outcome, rtt(took), 0.0]
        }
        LeaseOp::Sample { rtt: took, in_flight, dropped } => {
            [4.0, 0.0, 0.0, if dropped { 3.0 } else { 1.0 }, rtt(Some(took)), in_flight as f64]
        }
    }
}

/// What the script gets to know of the limit.
struct LimitNumbers {
    initial: f64,
    least: f64,
    most: f64,
    idle: f64,
    sampling: [f64; 2],
    own: [f64; 4],
}

impl LimitNumbers {
    fn of(rule: &ConcurrencyRule) -> Self {
        match &rule.numbers().source {
            LimitSource::Fixed(limit) => {
                let limit = *limit as f64;
                let (sampling, own) = ([0.0; 2], [0.0; 4]);
                Self { initial: limit, least: limit, most: limit, idle: 0.0, sampling, own }
            }
            LimitSource::Adaptive(AdaptiveRule { initial, min, max, controller, sampling, idle }) => Self {
                initial: *initial as f64,
                least: *min as f64,
                most: *max as f64,
                idle: idle.0 as f64,
                sampling: sampling.map_or([0.0; 2], |rule| [rule.window.0 as f64, rule.samples as f64]),
                own: own_numbers(controller),
            },
        }
    }
}

/// p1 to p4, as the top of each controller's file explains them.
fn own_numbers(controller: &ControllerRule) -> [f64; 4] {
    match controller {
        ControllerRule::Aimd(rule) => [rule.backoff, rule.timeout.0 as f64, 0.0, 0.0],
        ControllerRule::Vegas(rule) => {
            let probe = match rule.probe {
                ProbeRule::Never => 0.0,
                ProbeRule::Every(samples) => -samples,
                ProbeRule::PerPermit(samples) => samples,
            };
            [rule.smoothing, rule.alpha.unwrap_or(-1.0), rule.beta.unwrap_or(-1.0), probe]
        }
        ControllerRule::Gradient2(rule) => [rule.smoothing, rule.queue, rule.long_window, rule.tolerance],
    }
}

/// Reads a reply of `lua/lease.lua` to so many calls.
fn decode(calls: usize, reply: &Value) -> Result<Vec<Result<LeaseAnswer, StoreError>>, StoreError> {
    let (packed, reasons) = match reply {
        Value::BulkString(packed) => (packed, &[][..]),
        Value::Array(parts) => match parts.split_first() {
            Some((Value::BulkString(packed), reasons)) => (packed, reasons),
            _ => return Err(garbled()),
        },
        _ => return Err(garbled()),
    };
    if packed.len() != calls * ANSWER_BYTES {
        return Err(garbled());
    }
    let mut reasons = reasons.iter();
    let answer = |packed: &[u8]| {
        let numbers: Vec<f64> = packed.chunks_exact(8).map(number).collect();
        if numbers.get(1) == Some(&FAILED) {
            let Some(Value::BulkString(reason)) = reasons.next() else { return Err(garbled()) };
            return Ok(Err(reason_of(&String::from_utf8_lossy(reason))));
        }
        answer_of(&numbers).map(Ok)
    };
    packed.chunks_exact(ANSWER_BYTES).map(answer).collect()
}

fn answer_of(numbers: &[f64]) -> Result<LeaseAnswer, StoreError> {
    let &[now, status, limit, in_flight, remaining, extra, estimate] = numbers else {
        return Err(garbled());
    };
    let count = |number: f64| whole(Some(number));
    let span = |number: f64| count(number).map(Micros);
    let refused = |refusal| {
        let bound = if extra < 0.0 { None } else { Some(span(extra)?) };
        Ok(LeaseOutcome::Refused { refusal, bound })
    };
    let outcome = match count(status)? {
        1 => LeaseOutcome::Held { expires_after: span(extra)?, is_new: true },
        2 => LeaseOutcome::Held { expires_after: span(extra)?, is_new: false },
        3 => LeaseOutcome::Released,
        4 => LeaseOutcome::NotHeld,
        5 => LeaseOutcome::OtherWeight(count(extra)?),
        6 => refused(LeaseRefusal::Limited)?,
        7 => refused(LeaseRefusal::Never)?,
        8 => refused(LeaseRefusal::Full)?,
        9 => LeaseOutcome::Sampled,
        _ => return Err(garbled()),
    };
    let (now, limit) = (span(now)?, count(limit)?);
    Ok(LeaseAnswer {
        now,
        outcome,
        limit,
        in_flight: count(in_flight)?,
        remaining: count(remaining)?,
        estimate,
    })
}
