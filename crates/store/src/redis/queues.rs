//! The request of a queue operation. The scripts are in `lua/queue/`; operations of one kind on one queue share a call.

mod decode;
mod numbers;
mod scripts;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};
use smallvec::SmallVec;
use weir_config::RedisConfig;
use weir_core::key::{self, KeySecret, QueueKeys};
use weir_core::queue::{ItemId, QueueAnswer, QueueKind, QueueOp, QueuePart};
use weir_units::LATEST;

#[cfg(test)]
pub(super) use self::numbers::DOUBLES;
use self::numbers::{QueueCallNumbers, QueueRuleNumbers};
use self::scripts::{QueueScript, queue_script};
use super::callers::Replies;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::script_call::{CallTerms, ScriptRequest, ScriptTarget};
use crate::StoreError;
use crate::cost::{KEY_COST, ScriptCost};
use crate::queue::{QUEUE_DEADLINE, QueueAsk};
use crate::scripts::{Script, ScriptSpec, put_double as put};

/// The scripts of queues.
pub static QUEUES: ScriptSpec = scripts::QUEUES;

/// What queues need besides if any of them drops items or lets them age: their scripts ask how far it is read.
pub static QUEUES_THAT_DROP: ScriptSpec = scripts::QUEUES_THAT_DROP;

/// Number of consumer names in the stream's consumer group. The takers' own names are stored with their items, so that
/// the group does not grow.
const CONSUMERS: u128 = 16;

/// Maximum number of items in a shared call. Redis is blocked meanwhile, and the answer may be as large as all these
/// items together.
const MAX_SHARED_ITEMS: usize = 64;

/// Maximum number of payload bytes in a shared call.
const MAX_SHARED_BYTES: usize = 1 << 20;

/// The request of one queue operation, with its keys already built. Its retries share it.
pub(super) struct QueueRequest {
    target: ScriptTarget<&'static Script>,
    keys: QueueKeys,
    /// Keys beside those of the part. Of an Enqueue, for each new item that has an id: one for the id, and one for the
    /// digest of its payload. Of a Redrive the due times of the dead letters.
    more_keys: QueueKeys,
    call: QueueScript,
    rule: QueueRuleNumbers,
    numbers: QueueCallNumbers,
    /// Payloads of an Enqueue, or item ids of an Ack or Nack.
    texts: SmallVec<[Box<[u8]>; 1]>,
    /// The taker's name, or the outcome of an Ack.
    said: Box<str>,
}

impl QueueRequest {
    /// Builds the keys, for a cluster or a standalone server.
    pub(super) fn new(config: &RedisConfig, secret: &KeySecret, cluster: bool, ask: &QueueAsk<'_>) -> Self {
        let (name, numbers) = (ask.rule.name(), ask.rule.numbers());
        let tag = key::queue_tag(secret, name);
        let prefix = config.namespace.prefix(tag);
        let is_list = numbers.kind == QueueKind::List && ask.part == QueuePart::Main;
        let keys = QueueKeys::of_part(prefix, name, is_list, ask.part == QueuePart::Dead);
        let mut more_keys = QueueKeys::default();
        if let QueueOp::Redrive { .. } = ask.op {
            more_keys.push_dead_due(prefix, name);
        }
        if let QueueOp::Enqueue { items } = ask.op {
            for item in items.iter().filter(|item| !item.id.is_empty()) {
                more_keys.push(|text| key::write_put_id_key(text, prefix, name, item.id));
                if item.digest != 0 {
                    more_keys.push(|text| key::write_put_digest_key(text, prefix, name, item.id));
                }
            }
        }
        let call = match ask.op {
            QueueOp::Enqueue { .. } => QueueScript::Enqueue,
            QueueOp::Take { .. } => QueueScript::Take,
            QueueOp::Ack { .. } | QueueOp::Nack { .. } | QueueOp::Extend { .. } => QueueScript::Settle,
            QueueOp::Stats { .. } => QueueScript::Stats,
            QueueOp::Browse { .. } => QueueScript::Browse,
            QueueOp::Purge => QueueScript::Purge,
            QueueOp::Outcomes(_) => QueueScript::Outcomes,
            QueueOp::Redrive { .. } => QueueScript::Redrive,
        };
        let rule = QueueRuleNumbers::of(numbers, ask.part);
        let target = ScriptTarget::new(queue_script(call, is_list, rule.makes_room(call)), tag, cluster);
        let said = match ask.op {
            QueueOp::Take { taker, .. } => taker,
            QueueOp::Ack { outcome, .. } => outcome,
            _ => "",
        };
        Self {
            target,
            keys,
            more_keys,
            call,
            rule,
            numbers: QueueCallNumbers::of(&ask.op),
            texts: texts_of(&ask.op),
            said: said.into(),
        }
    }

    /// Returns the size of its texts.
    fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }
}

impl ScriptRequest for QueueRequest {
    type Answer = QueueAnswer;
    type Form = &'static Script;

    fn target(&self) -> &ScriptTarget<&'static Script> {
        &self.target
    }

    /// Its number of keys, plus one per KiB of texts.
    fn cost(&self) -> ScriptCost {
        let keys = self.keys.count() + self.more_keys.count() + self.bytes() / 1024;
        KEY_COST * keys as ScriptCost
    }

    fn is_like(&self, other: &Self) -> bool {
        self.rule == other.rule && self.keys == other.keys
    }

    fn fits(&self, others: &[Arc<Self>]) -> bool {
        let items: usize = others.iter().map(|other| other.numbers.items()).sum();
        let bytes = || others.iter().map(|other| other.bytes()).sum::<usize>();
        matches!(self.call, QueueScript::Enqueue | QueueScript::Take | QueueScript::Settle)
            && !self.rule.makes_room(self.call)
            && items + self.numbers.items() <= MAX_SHARED_ITEMS
            && bytes() + self.bytes() <= MAX_SHARED_BYTES
    }

    /// Longer than that of a decision: see [`QUEUE_DEADLINE`].
    fn deadline(context: &LinkContext) -> Duration {
        Duration::from(context.config.deadline).max(QUEUE_DEADLINE)
    }

    fn script(form: &'static Script, _: &[Arc<Self>]) -> &'static Script {
        form
    }

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let mut command = script.command(16, 256);
        let Some(first) = requests.first() else { return command };
        let more_keys = || requests.iter().flat_map(|request| request.more_keys.iter());
        command.arg(first.keys.count() + more_keys().count());
        for key in first.keys.iter().chain(more_keys()) {
            command.arg(key);
        }
        let mut packed = command.writer_for_next_arg();
        put(&mut packed, terms.now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
        first.rule.put(&mut packed);
        put(&mut packed, requests.len() as f64);
        for request in requests {
            request.numbers.put(&mut packed);
        }
        drop(packed);
        if first.call == QueueScript::Take {
            let number = KeySecret::BUILT_IN.hash(first.said.as_bytes()) % CONSUMERS;
            command.arg(format!("weir-{number}"));
        }
        for text in requests.iter().flat_map(|request| &request.texts) {
            command.arg(&**text);
        }
        if matches!(first.call, QueueScript::Take | QueueScript::Settle) {
            for request in requests {
                command.arg(&*request.said);
            }
        }
        command
    }

    fn decode(requests: &[Arc<Self>], reply: &Value) -> Result<Replies<QueueAnswer>, StoreError> {
        decode::decode(requests, reply)
    }
}

fn texts_of(op: &QueueOp<'_>) -> SmallVec<[Box<[u8]>; 1]> {
    match *op {
        QueueOp::Enqueue { items } => items.iter().map(|item| item.payload.into()).collect(),
        QueueOp::Ack { ids, .. } | QueueOp::Nack { ids, .. } | QueueOp::Extend { ids, .. } => {
            ids.iter().map(|id| member(*id)).collect()
        }
        _ => SmallVec::new(),
    }
}

/// Formats an id as the scripts store it: zero-padded, so that the lexicographic order is the order of ids.
fn member(ItemId { ms, seq }: ItemId) -> Box<[u8]> {
    format!("{ms:016}-{seq:016}").into_bytes().into()
}
