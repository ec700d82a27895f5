//! The request for a page of leases. The script is `lua/lease/list.lua`; each request has a call of its own.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};
use weir_config::RedisConfig;
use weir_core::key::{self, KeySecret};
use weir_core::lease::{HeldLease, LeasePage};
use weir_units::{LATEST, Micros};

use super::scripts::lease_list_script;
use crate::cost::{KEY_COST, ScriptCost};
use crate::redis::callers::Replies;
use crate::redis::context::LinkContext;
use crate::redis::evaluate::ScriptName;
use crate::redis::reply::{bytes, doubles, garbled, next_whole, packed, text};
use crate::redis::script_call::{CallTerms, ScriptRequest, ScriptTarget};
use crate::scripts::Script;
use crate::scripts::put_double as put;
use crate::{LeasesAsk, StoreError};

/// The request for a page of leases.
pub(in crate::redis) struct LeaseListRequest {
    target: ScriptTarget<&'static Script>,
    /// Both keys, concatenated. The first one ends at `first_ends`.
    keys: Vec<u8>,
    first_ends: usize,
    after_id: Box<str>,
    after_end: Option<Micros>,
}

impl LeaseListRequest {
    /// Builds the keys, for a cluster or a standalone server.
    pub(in crate::redis) fn new(
        config: &RedisConfig,
        secret: &KeySecret,
        cluster: bool,
        ask: &LeasesAsk<'_>,
    ) -> Self {
        let mut keys = Vec::with_capacity(160);
        let tag = config.placements.tag(secret, ask.strategy, &ask.subject, &mut keys);
        keys.clear();
        let first_ends =
            key::write_lease_keys(&mut keys, config.namespace.prefix(tag), ask.strategy, &ask.subject);
        let target = ScriptTarget::new(lease_list_script(), tag, cluster);
        let (after_id, after_end) = match ask.after {
            Some(after) => (after.id.into(), Some(after.ends)),
            None => (Box::default(), None),
        };
        Self { target, keys, first_ends, after_id, after_end }
    }
}

impl ScriptRequest for LeaseListRequest {
    type Answer = LeasePage;
    type Form = &'static Script;

    fn target(&self) -> &ScriptTarget<&'static Script> {
        &self.target
    }

    /// A page costs about as much as so many keys.
    fn cost(&self) -> ScriptCost {
        20 * KEY_COST
    }

    fn fits(&self, _others: &[Arc<Self>]) -> bool {
        false
    }

    fn deadline(context: &LinkContext) -> Duration {
        context.config.deadline.into()
    }

    fn script(form: &'static Script, _: &[Arc<Self>]) -> &'static Script {
        form
    }

    /// There is one request, because none fits to another.
    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let texts = requests.iter().map(|request| request.keys.len() + request.after_id.len()).sum::<usize>();
        let mut command = script.command(2 + 4 * requests.len(), 24 + texts);
        command.arg(2 * requests.len());
        for request in requests {
            let (records, ends) = request.keys.split_at(request.first_ends);
            command.arg(records).arg(ends);
        }
        for request in requests {
            command.arg(&*request.after_id);
            let mut packed = command.writer_for_next_arg();
            put(&mut packed, terms.now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
            put(&mut packed, request.after_end.map_or(-1.0, |ends| ends.0 as f64));
        }
        command
    }

    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<LeasePage>, StoreError> {
        if requests.len() != 1 {
            return Err(garbled());
        }
        Ok(std::iter::once(Ok(page(&reply)?)).collect())
    }
}

fn page(reply: &Value) -> Result<LeasePage, StoreError> {
    let (numbers, texts) = packed(reply)?;
    let mut numbers = doubles(numbers);
    let mut next = || next_whole(&mut numbers);
    let (now, count, more) = (Micros(next()?), next()?, next()? == 1);
    let lease = |names: &[Value]| {
        let [id, partition] = names else { return Err(garbled()) };
        let (weight, acquired, ends) = (next()?, Micros(next()?), Micros(next()?));
        // A record has its partition behind a letter, so an empty one is none.
        let partition = bytes(partition)?;
        let partition = partition.strip_prefix(b"p").map(|name| String::from_utf8_lossy(name).into());
        Ok(HeldLease { id: text(id)?.into(), weight, acquired, ends, partition })
    };
    let leases = texts.chunks(2).map(lease).collect::<Result<_, _>>()?;
    Ok(LeasePage { now, count, leases, more })
}
