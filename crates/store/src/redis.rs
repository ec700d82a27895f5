//! State in Redis or Valkey: one server, a cluster, or a master that sentinels name.
//!
//! A decision's keys are built once and all lie in one slot; the slot's node is asked over this
//! worker's own connection, in one script call that decides atomically on the server's own clock.
//! Redirects of a moving cluster are followed. A call that may have been executed is never sent twice.

mod backend;
mod breaker;
mod callers;
mod codes;
mod connect;
mod connection_counts;
mod context;
pub(crate) mod counts;
mod decisions;
mod evaluate;
mod fair;
mod fault;
mod for_each_node;
mod health;
mod lanes;
mod link;
mod links;
mod lua_files;
mod node_changes;
mod outbox;
mod password_command;
mod plain;
mod printed;
mod probe;
mod probed;
mod reply;
mod script_call;
mod single_slot;
mod slot_link;
mod source;
mod surroundings;
mod topology;
mod trials;
mod watch;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use weir_config::RedisConfig;
use weir_core::key::KeySecret;
use weir_time::clock::{Clock, monotonic};
use weir_time::deadlines::{Deadlines, Passed};

pub use self::backend::{ExactStore, RedisBackend};
use self::breaker::Breakers;
pub use self::connection_counts::ConnectionCounts;
use self::context::LinkContext;
use self::decisions::DecisionRequest;
use self::fault::Fault;
pub use self::health::{StoreHealth, acl_line};
use self::links::Links;
use self::outbox::OutboxRequest;
use self::printed::PrintedPasswords;
use self::script_call::{CallTime, Redirection, ScriptRequest as _, slot_of};
use self::single_slot::SingleSlotNodes;
pub use self::source::scripts_to_check;
pub use self::surroundings::{Dial, Dialer, DialledStream, Dialling, RandomSource, Surroundings};
use self::topology::ClusterView;
use super::scripts::{ScriptClient, UsesInForce};
use super::{Answers, BudgetDecision, Decision, Store, StoreAnswer, StoreError, Verdicts, check_supported};

/// Maximum number of attempts of one request, redirects and retries included. Its deadline is the other bound.
const MAX_HOPS: usize = 16;

/// Retry delay after a retryable error of a node (TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN).
const NOT_YET: Duration = Duration::from_millis(5);

/// State that all workers' Redis stores share: the configuration, the slot map and the nodes' health.
#[derive(Clone)]
pub struct RedisShared {
    context: Arc<LinkContext>,
    secret: KeySecret,
    health: StoreHealth,
}

/// One worker's store, with its own connections. Clones share them, and pending answers keep them open.
#[derive(Clone)]
pub struct RedisStore(Arc<WorkerConnections>);

/// A store without connections until it is used. Clones share them.
#[derive(Clone)]
pub struct LateStore(Arc<LateConnections>);

struct LateConnections {
    shared: RedisShared,
    store: OnceLock<RedisStore>,
}

struct WorkerConnections {
    shared: RedisShared,
    links: Arc<Links>,
    deadlines: Deadlines,
}

/// One worker's access, whose connections are open, or open on first use.
trait Connected: Clone + Send + Sync + 'static {
    fn shared(&self) -> &RedisShared;

    /// Returns the open connections.
    fn store(&self) -> &RedisStore;
}

impl RedisShared {
    /// Opens no connection yet. With a manual clock the scripts get the time instead of reading
    /// the server's.
    pub fn new(config: &RedisConfig, secret: KeySecret, clock: Clock) -> Self {
        Self::within(config, secret, Surroundings { clock, ..Surroundings::default() })
    }

    /// Creates the store in other surroundings than the machine's.
    pub fn within(config: &RedisConfig, secret: KeySecret, surroundings: Surroundings) -> Self {
        let topology = Arc::new(ClusterView::new(config));
        let single_slot_nodes = SingleSlotNodes::default();
        let breakers = Arc::<Breakers>::default();
        let health = StoreHealth::new(config, &secret, Arc::clone(&breakers));
        let config = config.clone();
        let (passwords, connections) = (PrintedPasswords::default(), ConnectionCounts::default());
        let context = LinkContext {
            config,
            passwords,
            connections,
            surroundings,
            topology,
            single_slot_nodes,
            breakers,
        };
        Self { context: Arc::new(context), secret, health }
    }

    /// A store for the current thread's runtime, on which its connections are opened now.
    pub fn store(&self) -> RedisStore {
        let deadlines = Deadlines::new(&self.context.surroundings.clock);
        let links = Links::open(Arc::clone(&self.context), deadlines.clone());
        RedisStore(Arc::new(WorkerConnections { shared: self.clone(), links, deadlines }))
    }

    /// A store that is as [`RedisShared::store`] from its first use on, and opens no connection before. It is used on
    /// one runtime only.
    pub fn lazy_store(&self) -> LateStore {
        LateStore(Arc::new(LateConnections { shared: self.clone(), store: OnceLock::new() }))
    }

    /// Returns the number of script calls to cluster nodes that get one call per slot.
    pub fn single_slot_calls(&self) -> u64 {
        self.context.single_slot_nodes.calls()
    }

    /// Returns the counters of connections.
    pub fn connections(&self) -> ConnectionCounts {
        self.context.connections.clone()
    }

    /// Returns the health of the nodes. It is kept current while [`RedisShared::monitor`] runs.
    pub fn health(&self) -> &StoreHealth {
        &self.health
    }

    /// Refreshes the slot map, and probes every master with charges of these engines. The results go to
    /// [`RedisShared::health`] and to the log, and affect nothing else. Runs until it is dropped, on a runtime apart
    /// from the workers.
    pub async fn monitor(&self, engines: &UsesInForce) {
        health::monitor(&self.context, &self.health, engines).await;
    }

    /// Returns what features keep their data over. A connection is opened on first use.
    pub fn scripts(&self) -> ScriptClient {
        Arc::new(self.clone())
    }

    /// Refreshes the slot map without probes, and reports after each refresh whether Redis can be reached. Runs
    /// until it is dropped, on a runtime apart from the workers. Without it or the monitor no cluster is discovered.
    pub async fn watch(&self, report: impl FnMut(Result<(), String>)) {
        tokio::join!(watch::watch(&self.context, report), health::keep_probing_breakers(&self.context, None));
    }
}

impl Store for RedisStore {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let shared = &self.0.shared;
        let cluster = shared.context.topology.is_cluster();
        for decision in decisions {
            if let Err(error) = check_supported(decision) {
                answers.fail(decision.costs.len(), &error);
                continue;
            }
            let time = self.0.time::<DecisionRequest>(decision.deadline.copied());
            let (config, mut keys) = (&shared.context.config, Vec::new());
            // Without a cluster all slots have one node, and what is refused costs no memory.
            let tag = cluster.then(|| DecisionRequest::tag(config, &shared.secret, decision, &mut keys));
            let slot = tag.map_or(0, |tag| slot_of(tag, cluster));
            if let Err(error) = self.0.check_time(slot, decision.caller, time) {
                answers.fail(decision.costs.len(), &error);
                continue;
            }
            let tag =
                tag.unwrap_or_else(|| DecisionRequest::tag(config, &shared.secret, decision, &mut keys));
            let request = Arc::new(DecisionRequest::new(config, (tag, keys), cluster, decision));
            let connections = Arc::clone(&self.0);
            answers.later(async move { connections.ask_until(&request, time).await });
        }
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        let context = &self.0.shared.context;
        let time = self.0.time::<DecisionRequest>(decision.deadline);
        let terms = (&context.config, &self.0.shared.secret);
        let mark = context.surroundings.random.number() >> 12;
        let is_cluster = context.topology.is_cluster();
        let request = Arc::new(DecisionRequest::with_costs(terms, is_cluster, (decision, mark)));
        if let Err(error) = self.0.check_time(request.target().slot, decision.caller, time) {
            return StoreAnswer::Ready(Err(error));
        }
        let connections = Arc::clone(&self.0);
        StoreAnswer::Later(Box::pin(async move { connections.ask_until(&request, time).await }))
    }

    fn patience(&self) -> Option<Duration> {
        Some(self.0.shared.context.config.deadline.into())
    }
}

impl Connected for RedisStore {
    fn shared(&self) -> &RedisShared {
        &self.0.shared
    }

    fn store(&self) -> &RedisStore {
        self
    }
}

impl Connected for LateStore {
    fn shared(&self) -> &RedisShared {
        &self.0.shared
    }

    fn store(&self) -> &RedisStore {
        self.0.store.get_or_init(|| self.0.shared.store())
    }
}

impl WorkerConnections {
    /// Returns the time of a request that comes now. Its deadline is the caller's, or the store's if that is earlier.
    fn time<R: OutboxRequest>(&self, callers: Option<Instant>) -> CallTime {
        let begun = monotonic();
        let own = begun + R::deadline(&self.shared.context);
        CallTime { begun, deadline: callers.map_or(own, |callers| callers.min(own)) }
    }

    /// Checks that the node of a slot would answer a decision of `caller` in time, as far as is known.
    fn check_time(&self, slot: u16, caller: u32, time: CallTime) -> Result<(), StoreError> {
        let left = time.deadline.saturating_duration_since(time.begun);
        if left.is_zero() {
            return Err(StoreError::Timeout);
        }
        // Without an owner the decision fails on its way, in the words of that.
        let Ok(address) = self.topology().owner(slot) else { return Ok(()) };
        if self.links.to(&address).is_in_time(caller, left) { Ok(()) } else { Err(StoreError::Congested) }
    }

    async fn ask<R: OutboxRequest>(
        &self,
        request: &Arc<R>,
        deadline: Option<Instant>,
    ) -> Result<R::Answer, StoreError> {
        self.ask_until(request, self.time::<R>(deadline)).await
    }

    async fn ask_until<R: OutboxRequest>(
        &self,
        request: &Arc<R>,
        time: CallTime,
    ) -> Result<R::Answer, StoreError> {
        match self.deadlines.until(time.deadline, self.route(request, time)).await {
            Ok(answer) => answer,
            Err(Passed) => {
                self.topology().suspect();
                Err(StoreError::Timeout)
            }
        }
    }

    /// Sends the request to the slot's owner, and follows its redirects.
    async fn route<R: OutboxRequest>(
        &self,
        request: &Arc<R>,
        time: CallTime,
    ) -> Result<R::Answer, StoreError> {
        let mut address = self.topology().owner(request.target().slot)?;
        let mut how = Redirection::default();
        let mut last = StoreError::Timeout;
        for _ in 0..MAX_HOPS {
            match self.links.to(&address).ask(request, how, time).await {
                Ok(answer) => return Ok(answer),
                Err(Fault::Moved(to)) if self.topology().is_cluster() => {
                    self.topology().suspect();
                    (address, how.asking) = (to, false);
                }
                Err(Fault::Ask(to)) if self.topology().is_cluster() => (address, how.asking) = (to, true),
                Err(Fault::Moved(_) | Fault::Ask(_)) => return Err(not_configured_as_cluster()),
                // Nothing was executed for it. In a call of its own it gets a proper redirect.
                Err(Fault::Stray) => how.alone = true,
                Err(Fault::NotYet(error)) => {
                    last = error;
                    self.topology().suspect();
                    tokio::time::sleep(NOT_YET).await;
                    (address, how.asking) = (self.topology().owner(request.target().slot)?, false);
                }
                Err(Fault::Broken(error)) => {
                    self.topology().suspect();
                    return Err(error);
                }
                Err(Fault::Failed(error)) => return Err(error),
            }
        }
        Err(last)
    }

    fn topology(&self) -> &ClusterView {
        &self.shared.context.topology
    }
}

fn not_configured_as_cluster() -> StoreError {
    StoreError::Refused("the server is a node of a cluster: set `topology: cluster`".into())
}
