//! The request of a decision, for `lua/decide.lua` and the short path.

mod budget;
mod decode;
mod encode;
mod reason;
mod replay;
mod scripts;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};
use smallvec::SmallVec;
use weir_config::RedisConfig;
use weir_core::algorithm::budget::{Ask, CostedLimits};
use weir_core::algorithm::{Algorithm, MAX_LIMITS, Op};
use weir_core::key::{self, KeySecret, Namespace};
use weir_core::strategy::Strategy;

use self::budget::BudgetRequest;
#[cfg(test)]
pub(super) use self::budget::DOUBLES as BUDGET_DOUBLES;
#[cfg(test)]
pub(super) use self::encode::DOUBLES;
pub(super) use self::scripts::{DECISIONS, needed};
use super::callers::Replies;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::plain::{self, Form};
use super::script_call::{CallTerms, ScriptCall, ScriptRequest, ScriptTarget};
use super::source::script_for;
use crate::cost::{self, ScriptCost};
use crate::scripts::Script;
use crate::{BudgetDecision, Decision, LimitSet, Once, Phases, StoreError, Verdicts};

/// The request of one decision, with its keys already built. Its retries share it.
pub(super) struct DecisionRequest {
    strategy: Arc<Strategy>,
    limits: LimitSet,
    caller: u32,
    /// The worst time that it takes the node.
    cost: ScriptCost,
    /// The form is the one that fits its limits.
    target: ScriptTarget<Form>,
    op: Op,
    /// The kind of the idempotency key, which follows the keys of limits.
    once: OnceKey,
    costs: SmallVec<[u64; 1]>,
    /// The question, if the limits have costs of their own.
    budget: Option<Box<BudgetRequest>>,
    /// The phase of each limit's key, if any window is spread.
    phases: Phases,
    /// All keys, concatenated, and the end offset of each.
    keys: Vec<u8>,
    ends: KeyEnds,
}

type KeyEnds = SmallVec<[usize; MAX_LIMITS]>;

/// The kind of a request's idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnceKey {
    /// No key: each try takes effect.
    None,
    /// A marker that the operation was executed, and may not be again.
    Marker,
    Record,
}

impl DecisionRequest {
    /// Returns the tag of the keys of `decision`. `keys` is room for what is built next.
    pub(super) fn tag(
        config: &RedisConfig,
        secret: &KeySecret,
        decision: &Decision<'_>,
        keys: &mut Vec<u8>,
    ) -> u128 {
        keys.reserve(160);
        let tag = config.placements.tag(secret, decision.strategy, &decision.subject, keys);
        keys.clear();
        tag
    }

    /// Builds a question over limits with costs of their own, with its keys under their tag.
    pub(super) fn with_costs(
        (config, secret): (&RedisConfig, &KeySecret),
        cluster: bool,
        (decision, mark): (&BudgetDecision<'_>, u64),
    ) -> Self {
        let mut keys = Vec::with_capacity(320);
        let tag = config.placements.tag(secret, decision.strategy, &decision.subject, &mut keys);
        keys.clear();
        let ends = budget::write_keys(&mut keys, config.namespace.prefix(tag), decision);
        let request = BudgetRequest::new(secret, decision, mark);
        Self {
            strategy: Arc::clone(decision.strategy),
            limits: LimitSet::ALL,
            caller: decision.caller,
            cost: cost::of_budget(decision, request.form() != Form::Budget),
            target: ScriptTarget::new(request.form(), tag, cluster),
            op: Op::Charge,
            once: if request.needs_once() { OnceKey::Record } else { OnceKey::None },
            costs: SmallVec::from_slice(&[0]),
            phases: Phases::new(),
            budget: Some(Box::new(request)),
            keys,
            ends,
        }
    }

    /// Builds the keys of `decision` under their tag, for a cluster or a standalone server.
    pub(super) fn new(
        config: &RedisConfig,
        (tag, mut keys): (u128, Vec<u8>),
        cluster: bool,
        decision: &Decision<'_>,
    ) -> Self {
        let Decision { strategy, subject, op, costs, .. } = decision;
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
        let limits = decision.limit_set();
        let (strategy, phases) = (Arc::clone(strategy), decision.phases());
        let form = match once {
            OnceKey::Record => Form::Any,
            _ => plain::form_of(decision.limits().map(|limit| &limit.algorithm)),
        };
        let target = ScriptTarget::new(form, tag, cluster);
        let each = cost::of_decision(decision);
        Self {
            strategy,
            limits,
            caller: decision.caller,
            cost: each * costs.len().max(1) as ScriptCost,
            target,
            op: *op,
            once,
            costs: (*costs).into(),
            phases,
            budget: None,
            keys,
            ends,
        }
    }

    /// Builds a charge of 1 on the probe's key under `tag`. The strategy has one limit.
    pub(super) fn probe(strategy: &Arc<Strategy>, namespace: &Namespace, tag: u128) -> Self {
        let mut keys = Vec::with_capacity(48);
        for limit in strategy.algorithms() {
            key::write_probe_key(&mut keys, namespace.prefix(tag), limit.engine());
        }
        Self {
            target: ScriptTarget::new(plain::form_of(strategy.algorithms().iter()), tag, true),
            strategy: Arc::clone(strategy),
            limits: LimitSet::ALL,
            caller: 0,
            cost: cost::of(strategy.algorithms().iter(), Op::Charge),
            op: Op::Charge,
            once: OnceKey::None,
            costs: SmallVec::from_slice(&[1]),
            phases: Phases::new(),
            budget: None,
            ends: SmallVec::from_slice(&[keys.len()]),
            keys,
        }
    }

    #[cfg(test)]
    pub(super) fn of_caller(self, caller: u32) -> Self {
        Self { caller, ..self }
    }

    /// The caller, and within it a number of the owner of its keys: the strategy with its overrides, all inline limits, or
    /// a domain of Envoy's.
    pub(super) fn place_in_turns(&self) -> (u32, (usize, ())) {
        (self.caller, (Arc::as_ptr(self.strategy.owner()) as usize, ()))
    }

    /// Iterates over the algorithms of its limits, in order.
    fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        let all = self.strategy.algorithms().iter().enumerate();
        all.filter(|(index, _)| self.limits.has(*index)).map(|(_, algorithm)| algorithm)
    }

    /// True if `other` may share a group with this: same limits, operation and number of costs.
    fn shares_limits(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.strategy, &other.strategy)
            && self.limits == other.limits
            && (self.op, self.once) == (other.op, other.once)
            && self.costs.len() == other.costs.len()
    }

    /// The question over limits with costs of their own.
    fn budget(&self) -> Option<&BudgetRequest> {
        self.budget.as_deref()
    }

    /// The limits with costs of their own, and what the short path is asked of them, if the question is one for it.
    fn plain_costs(&self) -> Option<(&CostedLimits, &Ask)> {
        self.budget()?.plain()
    }

    /// True if `other` may share a group of the script of budgets with this.
    fn shares_costs(&self, other: &Self) -> bool {
        let both = self.budget.as_ref().zip(other.budget.as_ref());
        both.is_some_and(|(own, other)| own.shares_limits(other))
    }

    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let start = |index: usize| index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.iter().enumerate().map(move |(index, &end)| &self.keys[start(index)..end])
    }
}

impl ScriptRequest for DecisionRequest {
    type Answer = Verdicts;
    type Form = Form;

    fn target(&self) -> &ScriptTarget<Form> {
        &self.target
    }

    fn cost(&self) -> ScriptCost {
        self.cost
    }

    /// Sorts calls by form. Calls of one strategy and its overrides keep their order, and so do calls of one key.
    fn arrange(calls: &mut [ScriptCall<Self>]) {
        let family = |call: &ScriptCall<Self>| call.first().map(|first| first.strategy.family());
        // Usually all are of one family, whose overrides have the same engines.
        let is_like = |a: &_, b: &_| family(a) == family(b);
        if calls.windows(2).all(|pair| pair[0].form == pair[1].form && is_like(&pair[0], &pair[1])) {
            return;
        }
        calls.sort_by_key(family);
        for family in calls.chunk_by_mut(is_like) {
            // If an override has other engines, the whole family uses the full drivers, and so keeps its order.
            if family.windows(2).any(|pair| pair[0].form != pair[1].form) {
                family.iter_mut().for_each(|call| call.form = call.form.of_full_driver());
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
        if requests.first().is_some_and(|first| first.budget.is_some()) {
            budget::encode(requests, terms.now, &mut command.writer_for_next_arg());
        } else {
            encode::encode(requests, terms.now, &mut command.writer_for_next_arg());
        }
        command
    }

    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<Verdicts>, StoreError> {
        if requests.first().is_some_and(|first| first.budget.is_some()) {
            return budget::decode(requests, &reply);
        }
        decode::decode(requests, &reply)
    }
}
