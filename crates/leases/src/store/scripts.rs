//! The request of a lease operation. The script is `lua/leases/call.lua`; requests with the same kind of limit share a call.

mod codes;
mod decode;
mod list;
mod numbers;
mod probe;
mod texts;

use std::time::Duration;

use weir_core::key::{self, Namespace};
use weir_core::strategy::ConcurrencyRule;
use weir_store::StoreError;
use weir_store::scripts::{AskScripts, LaneReplies, LaneRequest, LinkReply, Script, ask, put_double as put};
use weir_units::{LATEST, Micros};

use self::list::LeaseListRequest;
use self::numbers::LeaseNumbers;
pub use self::texts::LEASES;
use self::texts::lease_script;
use crate::model::{LeaseAnswer, LeaseOp, LeasePage};
use crate::store::{LeaseAsk, LeaseStore, LeasesAsk};

/// The request of one lease operation, with its keys already built. Its retries share it.
struct LeaseRequest {
    script: &'static Script,
    tag: u128,
    /// The two keys, concatenated. The first one ends at `first_ends`.
    keys: Vec<u8>,
    first_ends: usize,
    id: Box<str>,
    partition: Box<str>,
    numbers: LeaseNumbers,
}

impl LeaseRequest {
    /// Builds the keys.
    fn new(access: &impl AskScripts, ask: &LeaseAsk<'_>) -> Result<Self, StoreError> {
        let rule = ask.rule()?;
        let tag = access.tag_of(ask.strategy, &ask.subject);
        let mut keys = Vec::with_capacity(160);
        let prefix = access.namespace().prefix(tag);
        let first_ends = key::write_lease_keys(&mut keys, prefix, ask.strategy, &ask.subject);
        let (partition, share) = match ask.partition() {
            Some(partition) => (partition.name.into(), Some(partition.share)),
            None => (Box::default(), None),
        };
        Ok(Self {
            script: lease_script(rule),
            tag,
            keys,
            first_ends,
            id: ask.id.into(),
            partition,
            numbers: LeaseNumbers::new(rule, &ask.op, ask.jitter(), share),
        })
    }

    /// Builds a call on the probe's leases under `tag`: partition (with a share of 0), id and operation.
    fn probe(
        rule: &ConcurrencyRule,
        namespace: &Namespace,
        tag: u128,
        (partition, id, op): (&str, &str, LeaseOp),
    ) -> Self {
        let mut keys = Vec::with_capacity(96);
        let first_ends = key::write_lease_probe_keys(&mut keys, namespace.prefix(tag));
        Self {
            script: lease_script(rule),
            tag,
            keys,
            first_ends,
            id: id.into(),
            partition: partition.into(),
            numbers: LeaseNumbers::new(rule, &op, 1.0, Some(0)),
        }
    }
}

impl<A: AskScripts> LeaseStore for A {
    async fn lease(&self, asked: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        ask(self, LeaseRequest::new(self, asked)?, asked.deadline).await
    }

    async fn leases(&self, asked: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        ask(self, LeaseListRequest::new(self, asked), asked.deadline).await
    }
}

impl LaneRequest for LeaseRequest {
    type Answer = LeaseAnswer;

    fn script(&self) -> &'static Script {
        self.script
    }

    fn tag(&self) -> u128 {
        self.tag
    }

    fn keys(&self) -> usize {
        2
    }

    fn is_like(&self, _: &Self) -> bool {
        true
    }

    fn fits(&self, _: &[&Self]) -> bool {
        true
    }

    /// An acquisition is a decision.
    fn patience(&self, decisions: Duration) -> Duration {
        decisions
    }

    fn write(requests: &[&Self], now: Option<Micros>, argument: &mut dyn FnMut(&[u8])) {
        argument((2 * requests.len()).to_string().as_bytes());
        for request in requests {
            let (records, ends) = request.keys.split_at(request.first_ends);
            argument(records);
            argument(ends);
        }
        for request in requests {
            argument(request.id.as_bytes());
            argument(request.partition.as_bytes());
        }
        let mut packed = Vec::with_capacity(8 + LeaseNumbers::BYTES * requests.len());
        put(&mut packed, now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
        for request in requests {
            request.numbers.put(&mut packed);
        }
        argument(&packed);
    }

    fn decode(requests: &[&Self], reply: &LinkReply) -> Result<LaneReplies<LeaseAnswer>, StoreError> {
        decode::decode(requests.len(), reply)
    }
}

/// The field names in the order they are sent. A test compares them with the script.
#[cfg(test)]
const DOUBLES: &[&[&str]] = &[LeaseNumbers::NAMES];
