//! A decision on its way to a node: what `lua/decide.lua` and the short path are asked.

mod decode;
mod encode;
mod reason;
mod replay;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};
use smallvec::SmallVec;
use weir_config::RedisConfig;
use weir_core::algorithm::{Algorithm, MAX_LIMITS, Op};
use weir_core::key::{self, KeySecret, Namespace};
use weir_core::strategy::Strategy;

#[cfg(test)]
pub(super) use self::encode::DOUBLES;
use super::callers::Replies;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::plain::{self, Form};
use super::script_call::{CallTerms, ScriptCall, ScriptRequest};
use super::source::{Script, script_for};
use crate::{Decision, LimitSet, Once, Phases, StoreError, Verdicts};

/// What is asked, with its keys already built; shared by its tries.
pub(super) struct DecisionRequest {
    strategy: Arc<Strategy>,
    /// Which of its limits.
    limits: LimitSet,
    /// The form of its limits.
    form: Form,
    op: Op,
    /// What the last key is, beside those of limits.
    once: OnceKey,
    costs: SmallVec<[u64; 1]>,
    /// For each limit its key's phase, where any of them is spread.
    phases: Phases,
    /// The slot of all its keys in a cluster; 0 where there is none.
    slot: u16,
    /// All keys, one after the other, and where each ends.
    keys: Vec<u8>,
    ends: SmallVec<[usize; MAX_LIMITS]>,
}

/// What the last key of a request is, beside those of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnceKey {
    /// There is none: it happens each time.
    None,
    /// A marker: that this has happened, and may not happen again.
    Marker,
    /// A record of what was decided.
    Record,
}

impl DecisionRequest {
    /// Builds the keys of `decision`, for a node of a cluster or a server of its own.
    pub(super) fn new(
        config: &RedisConfig,
        secret: &KeySecret,
        cluster: bool,
        decision: &Decision<'_>,
    ) -> Self {
        let Decision { strategy, subject, op, costs, .. } = decision;
        let mut keys = Vec::with_capacity(160);
        let tag = config.placements.tag(secret, strategy, subject, &mut keys);
        keys.clear();
        let prefix = config.namespace.prefix(tag);
        let mut ends = SmallVec::new();
        for limit in decision.limits() {
            key::write_key(&mut keys, prefix, strategy, limit, subject);
            ends.push(keys.len());
        }
        for limit in decision.limits().filter(|limit| limit.algorithm.is_held()) {
            key::write_held_key(&mut keys, prefix, strategy, limit, subject);
            ends.push(keys.len());
        }
        let once = match decision.once() {
            None => OnceKey::None,
            Some(Once::Marker(id)) => {
                key::write_refund_key(&mut keys, prefix, strategy, subject, id);
                OnceKey::Marker
            }
            Some(Once::Record(operation, id)) => {
                key::write_record_key(&mut keys, prefix, operation, strategy, subject, id);
                OnceKey::Record
            }
        };
        if once != OnceKey::None {
            ends.push(keys.len());
        }
        let slot = if cluster { key::slot(tag) } else { 0 };
        let limits = decision.limit_set();
        let (strategy, phases) = (Arc::clone(strategy), decision.phases());
        let form = match once {
            OnceKey::Record => Form::Any,
            _ => plain::form_of(decision.limits().map(|limit| &limit.algorithm)),
        };
        Self { strategy, limits, form, op: *op, once, costs: (*costs).into(), phases, slot, keys, ends }
    }

    /// A charge of 1 on the probe's key under `tag`. The strategy has one limit.
    pub(super) fn probe(strategy: &Arc<Strategy>, namespace: &Namespace, tag: u128) -> Self {
        let mut keys = Vec::with_capacity(48);
        for limit in strategy.algorithms() {
            key::write_probe_key(&mut keys, namespace.prefix(tag), limit.engine());
        }
        Self {
            form: plain::form_of(strategy.algorithms().iter()),
            strategy: Arc::clone(strategy),
            limits: LimitSet::ALL,
            op: Op::Charge,
            once: OnceKey::None,
            costs: SmallVec::from_slice(&[1]),
            phases: Phases::new(),
            slot: key::slot(tag),
            ends: SmallVec::from_slice(&[keys.len()]),
            keys,
        }
    }

    /// The algorithms of its limits, in order.
    fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        let all = self.strategy.algorithms().iter().enumerate();
        all.filter(|(index, _)| self.limits.has(*index)).map(|(_, algorithm)| algorithm)
    }

    /// Whether `other` may be in one group with this: the same limits, operation and number of costs.
    fn shares_limits(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.strategy, &other.strategy)
            && self.limits == other.limits
            && (self.op, self.once) == (other.op, other.once)
            && self.costs.len() == other.costs.len()
    }

    /// Its keys.
    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let start = |index: usize| index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.iter().enumerate().map(move |(index, &end)| &self.keys[start(index)..end])
    }
}

impl ScriptRequest for DecisionRequest {
    type Answer = Verdicts;
    type Form = Form;

    fn form(&self) -> Form {
        self.form
    }

    fn slot(&self) -> u16 {
        self.slot
    }

    /// Its keys, as often as they are decided over.
    fn weight(&self) -> usize {
        self.costs.len() * self.ends.len()
    }

    /// Those of one form come together. Strategies keep the order of what they and their overrides were asked, and so do
    /// their keys.
    fn arrange(calls: &mut [ScriptCall<Self>]) {
        let family = |call: &ScriptCall<Self>| call.first().map(|first| first.strategy.family());
        // Mostly all are of one family, whose overrides have the same engines.
        let is_like = |a: &_, b: &_| family(a) == family(b);
        if calls.windows(2).all(|pair| pair[0].form == pair[1].form && is_like(&pair[0], &pair[1])) {
            return;
        }
        calls.sort_by_key(family);
        for family in calls.chunk_by_mut(is_like) {
            // Where an override has other engines, all go together, and so in order.
            if family.windows(2).any(|pair| pair[0].form != pair[1].form) {
                family.iter_mut().for_each(|call| call.form = Form::Any);
            }
        }
        calls.sort_by_key(|call| call.form);
    }

    fn deadline(context: &LinkContext) -> Duration {
        context.config.deadline.into()
    }

    fn script(form: Form, requests: &[Arc<Self>]) -> &'static Script {
        let once = requests.iter().any(|request| request.once == OnceKey::Record);
        script_for(form, once, requests.iter().flat_map(|request| request.algorithms()))
    }

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let count: usize = requests.iter().map(|request| request.ends.len()).sum();
        let bytes: usize = requests.iter().map(|request| request.keys.len()).sum();
        let mut command = script.command(2 + count, bytes + encode::capacity(requests));
        command.arg(if terms.spans { 0 } else { count });
        for key in requests.iter().flat_map(|request| request.keys()) {
            command.arg(key);
        }
        encode::encode(requests, terms.now, &mut command.writer_for_next_arg());
        command
    }

    fn decode(requests: &[Arc<Self>], reply: &Value) -> Result<Replies<Verdicts>, StoreError> {
        decode::decode(requests, reply)
    }
}
