//! The request of a lease operation. The script is `lua/lease.lua`; requests with the same kind of limit share a call.

mod decode;
mod list;
mod numbers;
mod probe;
mod scripts;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};
use weir_config::RedisConfig;
use weir_core::key::{self, KeySecret, Namespace};
use weir_core::lease::{LeaseAnswer, LeaseOp};
use weir_core::strategy::ConcurrencyRule;
use weir_units::LATEST;

pub(super) use self::list::LeaseListRequest;
use self::numbers::LeaseNumbers;
use self::scripts::lease_script;
use super::callers::Replies;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::script_call::{CallTerms, ScriptRequest, ScriptTarget};
use crate::cost::{KEY_COST, ScriptCost};
use crate::scripts::{Script, ScriptSpec, put_double as put};
use crate::{LeaseAsk, StoreError};

/// The scripts of leases.
pub static LEASES: ScriptSpec = scripts::LEASES;

/// The request of one lease operation, with its keys already built. Its retries share it.
pub(super) struct LeaseRequest {
    target: ScriptTarget<&'static Script>,
    /// Both keys, concatenated. The first one ends at `first_ends`.
    keys: Vec<u8>,
    first_ends: usize,
    id: Box<str>,
    partition: Box<str>,
    numbers: LeaseNumbers,
}

impl LeaseRequest {
    /// Builds the keys, for a cluster or a standalone server.
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
            Some(partition) => (partition.name.into(), Some(partition.share)),
            None => (Box::default(), None),
        };
        Ok(Self {
            target: ScriptTarget::new(lease_script(rule), tag, cluster),
            keys,
            first_ends,
            id: ask.id.into(),
            partition,
            numbers: LeaseNumbers::of(rule, &ask.op, ask.jitter(), share),
        })
    }

    /// Builds a call on the probe's leases under `tag`: partition (with a share of 0), id and operation.
    pub(super) fn probe(
        rule: &ConcurrencyRule,
        namespace: &Namespace,
        tag: u128,
        (partition, id, op): (&str, &str, LeaseOp),
    ) -> Self {
        let mut keys = Vec::with_capacity(96);
        let first_ends = key::write_lease_probe_keys(&mut keys, namespace.prefix(tag));
        Self {
            target: ScriptTarget::new(lease_script(rule), tag, true),
            keys,
            first_ends,
            id: id.into(),
            partition: partition.into(),
            numbers: LeaseNumbers::of(rule, &op, 1.0, Some(0)),
        }
    }
}

impl ScriptRequest for LeaseRequest {
    type Answer = LeaseAnswer;
    type Form = &'static Script;

    fn target(&self) -> &ScriptTarget<&'static Script> {
        &self.target
    }

    /// Its number of keys.
    fn cost(&self) -> ScriptCost {
        2 * KEY_COST
    }

    fn deadline(context: &LinkContext) -> Duration {
        context.config.deadline.into()
    }

    fn script(form: &'static Script, _: &[Arc<Self>]) -> &'static Script {
        form
    }

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let texts = |request: &Arc<Self>| request.keys.len() + request.id.len() + request.partition.len();
        let bytes: usize = requests.iter().map(texts).sum();
        let numbers = 8 + LeaseNumbers::BYTES * requests.len();
        let mut command = script.command(2 + 4 * requests.len(), 8 + bytes + numbers);
        command.arg(if terms.spans { 0 } else { 2 * requests.len() });
        for request in requests {
            let (records, ends) = request.keys.split_at(request.first_ends);
            command.arg(records).arg(ends);
        }
        for request in requests {
            command.arg(&*request.id).arg(&*request.partition);
        }
        let mut packed = command.writer_for_next_arg();
        put(&mut packed, terms.now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
        for request in requests {
            request.numbers.put(&mut packed);
        }
        drop(packed);
        command
    }

    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<LeaseAnswer>, StoreError> {
        decode::decode(requests.len(), &reply)
    }
}

/// The field names in the order they are sent. A test compares them with the script.
#[cfg(test)]
pub(super) const DOUBLES: &[&[&str]] = &[LeaseNumbers::NAMES];
