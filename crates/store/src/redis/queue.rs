//! One call of a queue on its way to a node and back. It has a script call of its own: `lua/queue/`.

mod decode;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError};
use tokio::sync::oneshot;

use super::call::{Fate, evaluate};
use super::connect::Connection;
use super::context::LinkContext;
use super::fault::Fault;
use super::request::{Job, NodeRequest};
use super::source::{QueueScript, Script, queue_script};
use crate::config::RedisConfig;
use crate::queue::{QUEUE_DEADLINE, QueueAsk};
use crate::{StoreError, redis::queue::decode::decode};
use weir_core::key::{self, KeySecret, QueueKeys};
use weir_core::queue::{ItemId, QueueAnswer, QueueKind, QueueNumbers, QueueOp, QueuePart};
use weir_time::clock::monotonic;
use weir_time::deadlines::{Deadlines, Passed};
use weir_units::{LATEST, Micros};

/// Names of consumers in the group of a queue. The callers' own names are kept with their items, so that the group does
/// not grow.
const CONSUMERS: u128 = 16;

/// What is asked, with its keys already built; shared by its tries.
pub(super) struct QueueRequest {
    slot: u16,
    keys: QueueKeys,
    call: QueueScript,
    script: &'static Script,
    /// All numbers but the time.
    numbers: Vec<f64>,
    /// What follows them.
    texts: Vec<Box<[u8]>>,
}

/// A call that waits for its node's answer.
pub(super) struct QueueJob {
    request: Arc<QueueRequest>,
    /// Whether the node is asked on behalf of another one, during a slot's migration.
    asking: bool,
    pub(super) reply: oneshot::Sender<Result<QueueAnswer, Fault>>,
}

impl NodeRequest for Arc<QueueRequest> {
    type Answer = QueueAnswer;

    fn slot(&self) -> u16 {
        self.slot
    }

    fn job(&self, asking: bool, _: bool, reply: oneshot::Sender<Result<QueueAnswer, Fault>>) -> Job {
        Job::Queue(QueueJob { request: Arc::clone(self), asking, reply })
    }
}

impl QueueRequest {
    /// Builds the keys, for a node of a cluster or a server of its own.
    pub(super) fn new(config: &RedisConfig, secret: &KeySecret, cluster: bool, ask: &QueueAsk<'_>) -> Self {
        let (name, numbers) = (ask.rule.name(), ask.rule.numbers());
        let tag = key::queue_tag(secret, name);
        let prefix = config.namespace.prefix(tag);
        let is_list = numbers.kind == QueueKind::List && ask.part == QueuePart::Main;
        let own = match ask.part {
            QueuePart::Main => [if is_list { "list" } else { "stream" }, "due", "meta", "outcomes"],
            QueuePart::Dead => ["dead", "dead_due", "dead_meta", "dead_outcomes"],
        };
        let [items, due, meta, outcomes] = own;
        let mut keys = QueueKeys::new(prefix, name, &[items, due, meta, outcomes, "dead", "dead_meta"]);
        if let QueueOp::Enqueue { items } = ask.op {
            for item in items.iter().filter(|item| !item.id.is_empty()) {
                keys.push(|text| key::write_put_id_key(text, prefix, name, item.id));
            }
        }
        let call = match ask.op {
            QueueOp::Enqueue { .. } => QueueScript::Enqueue,
            QueueOp::Take { .. } => QueueScript::Take,
            QueueOp::Ack { .. } | QueueOp::Nack { .. } => QueueScript::Settle,
            QueueOp::Stats { .. } => QueueScript::Stats,
        };
        let slot = if cluster { key::slot(tag) } else { 0 };
        let script = queue_script(call, is_list);
        Self { slot, keys, call, script, numbers: numbers_of(numbers, ask), texts: texts_of(&ask.op) }
    }

    fn command(&self, name: &str, script: &str, now: Option<Micros>) -> Cmd {
        let now = now.map_or(-1.0, |now| now.min(LATEST).0 as f64);
        let numbers = std::iter::once(&now).chain(&self.numbers);
        let packed: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.count());
        for key in self.keys.iter() {
            command.arg(key);
        }
        command.arg(packed);
        for text in &self.texts {
            command.arg(&**text);
        }
        command
    }

    /// A call with many bytes counts for more.
    pub(super) fn weight(&self) -> usize {
        let bytes: usize = self.texts.iter().map(|text| text.len()).sum();
        self.keys.count() + bytes / 1024
    }
}

/// The numbers that `lua/queue/start.lua` reads, after the time, and whether each new item has an id.
fn numbers_of(rule: &QueueNumbers, ask: &QueueAsk<'_>) -> Vec<f64> {
    let pace = rule.pace.filter(|_| ask.part == QueuePart::Main);
    let [count, period] = pace.map_or([0.0; 2], |pace| [pace.count as f64, pace.period.0 as f64]);
    let max_deliveries = rule.max_deliveries.filter(|_| ask.part == QueuePart::Main).unwrap_or(0);
    let n = match ask.op {
        QueueOp::Enqueue { items } => items.len() as f64,
        QueueOp::Take { max_items, .. } => max_items as f64,
        QueueOp::Ack { .. } => 0.0,
        QueueOp::Nack { delay, .. } => delay.0 as f64,
        QueueOp::Stats { outcomes } => outcomes as f64,
    };
    let (capacity, max_bytes) = (rule.capacity as f64, rule.max_bytes as f64);
    let (visibility, outcomes) = (rule.visibility.0 as f64, rule.outcomes.0 as f64);
    let mut numbers =
        vec![capacity, max_bytes, visibility, max_deliveries as f64, count, period, outcomes, n];
    if let QueueOp::Enqueue { items } = ask.op {
        numbers.extend(items.iter().map(|item| if item.id.is_empty() { 0.0 } else { 1.0 }));
    }
    numbers
}

fn texts_of(op: &QueueOp<'_>) -> Vec<Box<[u8]>> {
    let settle = |does: &str, outcome: &str, ids: &[ItemId]| {
        let begin = [does.as_bytes().into(), outcome.as_bytes().into()];
        begin.into_iter().chain(ids.iter().map(|id| member(*id))).collect()
    };
    match *op {
        QueueOp::Enqueue { items } => items.iter().map(|item| item.payload.into()).collect(),
        QueueOp::Take { taker, .. } => {
            let number = KeySecret::BUILT_IN.hash(taker.as_bytes()) % CONSUMERS;
            vec![taker.as_bytes().into(), format!("weir-{number}").into_bytes().into()]
        }
        QueueOp::Ack { ids, outcome } => settle("ack", outcome, ids),
        QueueOp::Nack { ids, .. } => settle("nack", "", ids),
        QueueOp::Stats { .. } => Vec::new(),
    }
}

/// An id as the scripts keep it: with leading zeros, so that texts have the order of ids.
fn member(ItemId { ms, seq }: ItemId) -> Box<[u8]> {
    format!("{ms:016}-{seq:016}").into_bytes().into()
}

impl QueueJob {
    /// How much work it is for the node.
    pub(super) fn weight(&self) -> usize {
        self.request.weight()
    }

    /// Sends the call and hands over its answer.
    pub(super) async fn run(
        self,
        mut connection: Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        host: &str,
    ) -> Fate {
        let Self { request, asking, reply } = self;
        let now = context.clock.explicit();
        let command = |name: &str, script: &str| request.command(name, script, now);
        let exchange = evaluate(&mut connection, request.script, asking, command);
        let deadline = monotonic() + deadline(context);
        let (fate, answer) = match deadlines.until(deadline, exchange).await {
            Ok(Ok(value)) => match decode(request.call, &value) {
                Ok(answer) => (Fate::Answered, Ok(answer)),
                Err(error) => (Fate::Broken, Err(Fault::Failed(error))),
            },
            Ok(Err(error)) => {
                let fault = fault(&error, host);
                let fate = if matches!(fault, Fault::Broken(_)) { Fate::Broken } else { Fate::Answered };
                (fate, Err(fault))
            }
            Err(Passed) => (Fate::Silent, Err(Fault::Failed(StoreError::Timeout))),
        };
        let _ = reply.send(answer);
        fate
    }
}

/// How long a call waits for its node.
pub(super) fn deadline(context: &LinkContext) -> Duration {
    Duration::from(context.config.deadline).max(QUEUE_DEADLINE)
}

fn fault(error: &RedisError, host: &str) -> Fault {
    match error.code() {
        Some("WRONGTYPE") => Fault::Failed(StoreError::Unreadable(error.to_string().into())),
        _ => Fault::of(error, host),
    }
}
