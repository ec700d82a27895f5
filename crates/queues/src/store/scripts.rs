//! The request of a queue operation. The scripts are in `lua/queues/`; operations of one kind on one queue share a call.

mod codes;
mod decode;
mod numbers;
mod texts;

use crate::model::{ItemId, QueueAnswer, QueueKind, QueueOp, QueuePart};
use smallvec::SmallVec;
use weir_core::key::{self, KeySecret, QueueKeys};
use weir_store::StoreError;
use weir_store::scripts::{AskScripts, LaneReplies, LaneRequest, LinkReply, Script, ask, put_double as put};
use weir_units::{LATEST, Micros};

use self::numbers::{QueueCallNumbers, QueueRuleNumbers};
pub use self::texts::{QUEUES, QUEUES_THAT_DROP};
use self::texts::{QueueScript, queue_script};
use crate::store::{QueueAsk, QueueStore};

/// Number of consumer names in the stream's consumer group. The takers' own names are stored with their items, so that
/// the group does not grow.
const CONSUMERS: u128 = 16;

/// Maximum number of items in a shared call. Redis is blocked meanwhile, and the answer may be as large as all these
/// items together.
const MAX_SHARED_ITEMS: usize = 64;

/// Maximum number of payload bytes in a shared call.
const MAX_SHARED_BYTES: usize = 1 << 20;

/// The request of one queue operation, with its keys already built. Its retries share it.
struct QueueRequest {
    script: &'static Script,
    tag: u128,
    keys: QueueKeys,
    /// Extra keys. Enqueue: two per new item with an id (id, payload digest). Redrive: the due times of the dead
    /// letters.
    more_keys: QueueKeys,
    call: QueueScript,
    rule: QueueRuleNumbers,
    numbers: QueueCallNumbers,
    /// Payloads of an Enqueue, or item ids of an Ack or Nack.
    texts: SmallVec<[Box<[u8]>; 1]>,
    /// Name of the taker, outcome of an Ack, or text of the outcomes in a search.
    said: Box<str>,
}

impl QueueRequest {
    /// Builds the keys.
    fn new(access: &impl AskScripts, ask: &QueueAsk<'_>) -> Self {
        let (name, numbers) = (ask.rule.name(), ask.rule.numbers());
        let tag = key::queue_tag(access.secret(), name);
        let prefix = access.namespace().prefix(tag);
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
        let rule = QueueRuleNumbers::new(numbers, ask.part);
        let script = queue_script(call, is_list, rule.makes_room(call));
        let said = match ask.op {
            QueueOp::Take { taker, .. } => taker,
            QueueOp::Ack { outcome, .. } => outcome,
            QueueOp::Outcomes(search) => search.text,
            _ => "",
        };
        Self {
            script,
            tag,
            keys,
            more_keys,
            call,
            rule,
            numbers: QueueCallNumbers::new(&ask.op),
            texts: texts_of(&ask.op),
            said: said.into(),
        }
    }

    /// Returns the size of its texts.
    fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }
}

impl<A: AskScripts> QueueStore for A {
    async fn queue(&self, asked: &QueueAsk<'_>) -> Result<QueueAnswer, StoreError> {
        ask(self, QueueRequest::new(self, asked), asked.deadline).await
    }
}

impl LaneRequest for QueueRequest {
    type Answer = QueueAnswer;

    fn script(&self) -> &'static Script {
        self.script
    }

    fn tag(&self) -> u128 {
        self.tag
    }

    /// Returns the number of keys of the request, plus one per KiB of texts.
    fn keys(&self) -> usize {
        self.keys.count() + self.more_keys.count() + self.bytes() / 1024
    }

    fn is_like(&self, other: &Self) -> bool {
        self.rule == other.rule && self.keys == other.keys
    }

    fn fits(&self, others: &[&Self]) -> bool {
        let items: usize = others.iter().map(|other| other.numbers.items()).sum();
        let bytes = || others.iter().map(|other| other.bytes()).sum::<usize>();
        matches!(self.call, QueueScript::Enqueue | QueueScript::Take | QueueScript::Settle)
            && !self.rule.makes_room(self.call)
            && items + self.numbers.items() <= MAX_SHARED_ITEMS
            && bytes() + self.bytes() <= MAX_SHARED_BYTES
    }

    fn write(requests: &[&Self], now: Option<Micros>, argument: &mut dyn FnMut(&[u8])) {
        let Some(first) = requests.first() else { return };
        let more_keys = || requests.iter().flat_map(|request| request.more_keys.iter());
        argument((first.keys.count() + more_keys().count()).to_string().as_bytes());
        first.keys.iter().chain(more_keys()).for_each(&mut *argument);
        let mut packed = Vec::with_capacity(256);
        put(&mut packed, now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
        first.rule.put(&mut packed);
        put(&mut packed, requests.len() as f64);
        for request in requests {
            request.numbers.put(&mut packed);
        }
        argument(&packed);
        if first.call == QueueScript::Take {
            let number = KeySecret::BUILT_IN.hash(first.said.as_bytes()) % CONSUMERS;
            argument(format!("weir-{number}").as_bytes());
        }
        for text in requests.iter().flat_map(|request| &request.texts) {
            argument(text);
        }
        if matches!(first.call, QueueScript::Take | QueueScript::Settle | QueueScript::Outcomes) {
            for request in requests {
                argument(request.said.as_bytes());
            }
        }
    }

    fn decode(requests: &[&Self], reply: &LinkReply) -> Result<LaneReplies<QueueAnswer>, StoreError> {
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
