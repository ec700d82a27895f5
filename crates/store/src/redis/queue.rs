//! What is asked of a queue in Redis. The scripts are in `lua/queue/`; calls of one kind for one queue share one.

mod decode;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use smallvec::SmallVec;
use tokio::sync::oneshot;
use weir_config::RedisConfig;
use weir_core::key::{self, KeySecret, QueueKeys};
use weir_core::queue::{ItemId, QueueAnswer, QueueKind, QueueNumbers, QueueOp, QueuePart};
use weir_units::{LATEST, Micros};

use super::context::LinkContext;
use super::fault::Fault;
use super::request::{Job, NodeRequest};
use super::shared_call::{SharedJob, SharedRequest, reason_of};
use super::source::{QueueScript, Script, queue_script};
use crate::StoreError;
use crate::queue::{QUEUE_DEADLINE, QueueAsk};

/// Names of consumers in the group of a queue. The callers' own names are kept with their items, so that the group does
/// not grow.
const CONSUMERS: u128 = 16;

/// Items of calls that share a script call. Redis answers nobody else meanwhile, and an answer may have as many bytes as
/// these items have together.
const MAX_SHARED_ITEMS: usize = 64;

/// Bytes that calls which share a script call may put into a queue.
const MAX_SHARED_BYTES: usize = 1 << 20;

/// What is asked, with its keys already built; shared by its tries.
pub(super) struct QueueRequest {
    slot: u16,
    keys: QueueKeys,
    /// Keys of the ids of new items.
    id_keys: QueueKeys,
    call: QueueScript,
    script: &'static Script,
    /// Those of the queue.
    numbers: [f64; 7],
    /// Those of the call.
    own_numbers: SmallVec<[f64; 3]>,
    /// How many items it puts, takes or settles at most.
    items: usize,
    /// Payloads, or items.
    texts: SmallVec<[Box<[u8]>; 1]>,
    /// Who takes, or the outcome of an Ack.
    said: Box<str>,
}

impl NodeRequest for Arc<QueueRequest> {
    type Answer = QueueAnswer;

    fn slot(&self) -> u16 {
        self.slot
    }

    fn job(&self, asking: bool, alone: bool, reply: oneshot::Sender<Result<QueueAnswer, Fault>>) -> Job {
        Job::Queue(SharedJob { request: Arc::clone(self), asking, alone, reply })
    }
}

impl QueueRequest {
    /// Builds the keys, for a node of a cluster or a server of its own.
    pub(super) fn new(config: &RedisConfig, secret: &KeySecret, cluster: bool, ask: &QueueAsk<'_>) -> Self {
        let (name, numbers) = (ask.rule.name(), ask.rule.numbers());
        let tag = key::queue_tag(secret, name);
        let prefix = config.namespace.prefix(tag);
        let is_list = numbers.kind == QueueKind::List && ask.part == QueuePart::Main;
        let keys = QueueKeys::of_part(prefix, name, is_list, ask.part == QueuePart::Dead);
        let mut id_keys = QueueKeys::default();
        if let QueueOp::Enqueue { items } = ask.op {
            for item in items.iter().filter(|item| !item.id.is_empty()) {
                id_keys.push(|text| key::write_put_id_key(text, prefix, name, item.id));
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
        let (own_numbers, items) = own_numbers(&ask.op);
        let said = match ask.op {
            QueueOp::Take { taker, .. } => taker,
            QueueOp::Ack { outcome, .. } => outcome,
            _ => "",
        };
        Self {
            slot,
            keys,
            id_keys,
            call,
            script,
            numbers: numbers_of(numbers, ask.part),
            own_numbers,
            items,
            texts: texts_of(&ask.op),
            said: said.into(),
        }
    }

    /// Bytes that follow its numbers.
    fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }
}

impl SharedRequest for QueueRequest {
    type Answer = QueueAnswer;

    fn slot(&self) -> u16 {
        self.slot
    }

    /// A call with many bytes counts for more.
    fn weight(&self) -> usize {
        self.keys.count() + self.id_keys.count() + self.bytes() / 1024
    }

    fn script(&self) -> &'static Script {
        self.script
    }

    fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.script, other.script) && self.numbers == other.numbers && self.keys == other.keys
    }

    fn joins(&self, others: &[Arc<Self>]) -> bool {
        let items: usize = others.iter().map(|other| other.items).sum();
        let bytes = || others.iter().map(|other| other.bytes()).sum::<usize>();
        self.call != QueueScript::Stats
            && items + self.items <= MAX_SHARED_ITEMS
            && bytes() + self.bytes() <= MAX_SHARED_BYTES
    }

    fn deadline(context: &LinkContext) -> Duration {
        deadline(context)
    }

    fn command(calls: &[Arc<Self>], (name, script): (&str, &str), now: Option<Micros>, _: bool) -> Cmd {
        let mut command = redis::cmd(name);
        let Some(first) = calls.first() else { return command };
        let id_keys = || calls.iter().flat_map(|call| call.id_keys.iter());
        command.arg(script).arg(first.keys.count() + id_keys().count());
        for key in first.keys.iter().chain(id_keys()) {
            command.arg(key);
        }
        let now = now.map_or(-1.0, |now| now.min(LATEST).0 as f64);
        let own_numbers = calls.iter().flat_map(|call| &call.own_numbers);
        let of_all = std::iter::once(now).chain(first.numbers).chain([calls.len() as f64]);
        let packed: Vec<u8> = of_all.chain(own_numbers.copied()).flat_map(f64::to_le_bytes).collect();
        command.arg(packed);
        if first.call == QueueScript::Take {
            let number = KeySecret::BUILT_IN.hash(first.said.as_bytes()) % CONSUMERS;
            command.arg(format!("weir-{number}"));
        }
        for text in calls.iter().flat_map(|call| &call.texts) {
            command.arg(&**text);
        }
        if matches!(first.call, QueueScript::Take | QueueScript::Settle) {
            for call in calls {
                command.arg(&*call.said);
            }
        }
        command
    }

    fn decode(
        calls: &[Arc<Self>],
        reply: &Value,
    ) -> Result<Vec<Result<QueueAnswer, StoreError>>, StoreError> {
        decode::decode(calls, reply)
    }
}

/// The numbers of a queue that `lua/queue/start.lua` reads, after the time.
fn numbers_of(rule: &QueueNumbers, part: QueuePart) -> [f64; 7] {
    let is_main = part == QueuePart::Main;
    let pace = rule.pace.filter(|_| is_main);
    let [count, period] = pace.map_or([0.0; 2], |pace| [pace.count as f64, pace.period.0 as f64]);
    let max_deliveries = rule.max_deliveries.filter(|_| is_main).unwrap_or(0) as f64;
    let (capacity, max_bytes) = (rule.capacity as f64, rule.max_bytes as f64);
    let (visibility, outcomes) = (rule.visibility.0 as f64, rule.outcomes.0 as f64);
    [capacity, max_bytes, visibility, max_deliveries, count, period, outcomes]
}

/// The numbers of a call, as the top of each script has them, and how many items it is about at most.
fn own_numbers(op: &QueueOp<'_>) -> (SmallVec<[f64; 3]>, usize) {
    match *op {
        QueueOp::Enqueue { items } => {
            let ids = items.iter().map(|item| if item.id.is_empty() { 0.0 } else { 1.0 });
            (std::iter::once(items.len() as f64).chain(ids).collect(), items.len())
        }
        QueueOp::Take { max_items, .. } => (SmallVec::from_slice(&[max_items as f64]), max_items),
        QueueOp::Ack { ids, .. } => (SmallVec::from_slice(&[1.0, 0.0, ids.len() as f64]), ids.len()),
        QueueOp::Nack { ids, delay } => {
            (SmallVec::from_slice(&[2.0, delay.0 as f64, ids.len() as f64]), ids.len())
        }
        QueueOp::Stats { outcomes } => (SmallVec::from_slice(&[outcomes as f64]), 0),
    }
}

fn texts_of(op: &QueueOp<'_>) -> SmallVec<[Box<[u8]>; 1]> {
    match *op {
        QueueOp::Enqueue { items } => items.iter().map(|item| item.payload.into()).collect(),
        QueueOp::Ack { ids, .. } | QueueOp::Nack { ids, .. } => ids.iter().map(|id| member(*id)).collect(),
        QueueOp::Take { .. } | QueueOp::Stats { .. } => SmallVec::new(),
    }
}

/// An id as the scripts keep it: with leading zeros, so that texts have the order of ids.
fn member(ItemId { ms, seq }: ItemId) -> Box<[u8]> {
    format!("{ms:016}-{seq:016}").into_bytes().into()
}

/// How long a call waits for its node.
pub(super) fn deadline(context: &LinkContext) -> Duration {
    Duration::from(context.config.deadline).max(QUEUE_DEADLINE)
}
