//! One decision on its way to a node and back.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;
use weir_config::RedisConfig;
use weir_core::algorithm::{Algorithm, MAX_LIMITS, Op};
use weir_core::key::{self, KeySecret, Namespace};
use weir_core::strategy::Strategy;

use super::fault::Fault;
use super::lease::LeaseRequest;
use super::plain;
use super::queue::QueueRequest;
use super::shared_call::{SharedJob, SharedRequest as _};
use super::source::Form;
use crate::part::Once;
use crate::{Decision, LimitSet, Phases, StoreError, Verdicts};

/// What is asked, with its keys already built; shared by its tries.
pub(super) struct Request {
    pub(super) strategy: Arc<Strategy>,
    /// Which of its limits.
    pub(super) limits: LimitSet,
    /// The form of its limits.
    pub(super) form: Form,
    pub(super) op: Op,
    /// What the last key is, beside those of limits.
    pub(super) once: OnceKey,
    pub(super) costs: SmallVec<[u64; 1]>,
    /// For each limit its key's phase, where any of them is spread.
    pub(super) phases: Phases,
    /// The slot of all its keys in a cluster; 0 where there is none.
    pub(super) slot: u16,
    /// All keys, one after the other, and where each ends.
    keys: Vec<u8>,
    ends: SmallVec<[usize; MAX_LIMITS]>,
}

/// What the last key of a request is, beside those of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnceKey {
    /// There is none: it happens each time.
    None,
    /// A marker: that this has happened, and may not happen again.
    Marker,
    /// A record of what was decided.
    Record,
}

/// What a node answers to one request: verdicts, or an error that is this request's alone.
pub(super) type NodeReply = Result<Verdicts, StoreError>;

/// What a node is asked, by whatever script.
pub(super) trait NodeRequest {
    /// What it answers.
    type Answer;

    /// The slot of all its keys in a cluster.
    fn slot(&self) -> u16;

    /// It, as it waits for its node.
    fn job(&self, asking: bool, alone: bool, reply: oneshot::Sender<Result<Self::Answer, Fault>>) -> Job;
}

/// What waits for a node.
pub(super) enum Job {
    /// A decision, which shares its call with others.
    Decision(DecisionJob),
    /// A call about a lease, which shares its call with others about leases.
    Lease(SharedJob<LeaseRequest>),
    /// A call of a queue, which shares its call with others of its kind.
    Queue(SharedJob<QueueRequest>),
}

/// A request that waits for its node's answer.
pub(super) struct DecisionJob {
    pub(super) request: Arc<Request>,
    /// Which script it is for: its limits' own form, or that of any limits.
    pub(super) form: Form,
    /// Whether the node is asked on behalf of another one, during a slot's migration.
    pub(super) asking: bool,
    /// Whether its call must be of its own slot.
    pub(super) alone: bool,
    pub(super) reply: oneshot::Sender<Result<Verdicts, Fault>>,
}

impl Job {
    /// How much work it is for the node.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Decision(job) => job.request.weight(),
            Self::Lease(job) => job.request.weight(),
            Self::Queue(job) => job.request.weight(),
        }
    }

    /// Whether its caller has given up.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Decision(job) => job.reply.is_closed(),
            Self::Lease(job) => job.reply.is_closed(),
            Self::Queue(job) => job.reply.is_closed(),
        }
    }

    /// Ends it without asking the node.
    pub(super) fn fail(self, fault: Fault) {
        let _ = match self {
            Self::Decision(job) => job.reply.send(Err(fault)).is_ok(),
            Self::Lease(job) => job.reply.send(Err(fault)).is_ok(),
            Self::Queue(job) => job.reply.send(Err(fault)).is_ok(),
        };
    }
}

impl NodeRequest for Arc<Request> {
    type Answer = Verdicts;

    fn slot(&self) -> u16 {
        self.slot
    }

    fn job(&self, asking: bool, alone: bool, reply: oneshot::Sender<Result<Verdicts, Fault>>) -> Job {
        let (request, form) = (Arc::clone(self), self.form);
        Job::Decision(DecisionJob { request, form, asking, alone: alone || asking, reply })
    }
}

impl Request {
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
    pub(super) fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        let all = self.strategy.algorithms().iter().enumerate();
        all.filter(|(index, _)| self.limits.has(*index)).map(|(_, algorithm)| algorithm)
    }

    /// Whether `other` may be in one group with this: the same limits, operation and number of costs.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.strategy, &other.strategy)
            && self.limits == other.limits
            && (self.op, self.once) == (other.op, other.once)
            && self.costs.len() == other.costs.len()
    }

    /// How much work it is for the node: its keys, as often as they are decided over.
    pub(super) fn weight(&self) -> usize {
        self.costs.len() * self.ends.len()
    }

    /// Its keys.
    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let start = |index: usize| index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.iter().enumerate().map(move |(index, &end)| &self.keys[start(index)..end])
    }
}
