//! A node of Weir as it runs: the limiter in front of the stores, as the service puts them.

mod recorded;

use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use tokio::task::JoinSet;
use weir::leases::model::{LeaseAnswer, LeaseOp};
use weir::leases::store::{LeaseAsk, LeaseStore as _};
use weir_config::RedisConfig;
use weir_core::algorithm::budget::SettleOutcome;
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{Rules, Strategy};
use weir_node::access::Rights;
use weir_node::limiter::{Answer, Begun, Limiter, LimiterError, Question, Shaping};
use weir_node::settle::Outcome;
use weir_node::telemetry::Metrics;
use weir_store::approximate::{ApproximateShared, ApproximateStore};
use weir_store::coalesce::Coalesce;
use weir_store::denials::{Denials, DenialsShared};
use weir_store::local::{LocalFallback, LocalShared};
use weir_store::redis::{Dialer, LateStore, RandomSource, RedisShared, RedisStore, Surroundings};
use weir_store::{StoreError, Verdicts};
use weir_time::clock::{Clock, Monotonic, monotonic};

use self::recorded::RecordedStore;
use crate::log::{CallOutcome, CounterName, DecidedCost, SimulationLog, WorldFault};
use crate::network::{NodeDialer, SimulatedNetwork};
use crate::setup::BUDGET;
use crate::timeline::MachineClock;

/// The resource of all calls.
pub(crate) const RESOURCE: &str = "zoo";

/// The stores of a worker, in front of one another.
type NodeStore = LocalFallback<ApproximateStore<Coalesce<Denials<RecordedStore>>, RedisStore>>;

/// The setup that all nodes share.
#[derive(Clone)]
pub(crate) struct NodeSetup {
    pub(crate) redis: RedisConfig,
    pub(crate) rules: Arc<Rules>,
    pub(crate) network: SimulatedNetwork,
    pub(crate) log: SimulationLog,
}

/// The process of a node.
pub(crate) struct NodeProcess {
    pub(crate) number: usize,
    pub(crate) workers: Vec<Arc<NodeWorker>>,
    setup: NodeSetup,
    dialer: NodeDialer,
    approximate: ApproximateShared,
    counts: LateStore,
    tasks: JoinSet<()>,
}

/// One of its workers.
pub(crate) struct NodeWorker {
    limiter: Limiter<NodeStore>,
    leases: RedisStore,
}

impl NodeProcess {
    /// Begins with nothing. `seed` is that of its random numbers.
    pub(crate) fn begin(
        setup: &NodeSetup,
        number: usize,
        clock: &MachineClock,
        workers: usize,
        seed: u64,
    ) -> Self {
        setup.log.fault(WorldFault::NodeBegins(number));
        let dialer = NodeDialer::new(&setup.network, number);
        let clock = Clock::Simulated(clock.of_node());
        let surroundings = Surroundings {
            clock: clock.clone(),
            dialer: Dialer::Given(Arc::new(dialer.clone())),
            random: RandomSource::seeded(seed),
        };
        let redis = &setup.redis;
        // Keys collide in the cache of denials as the seed says.
        let secret = KeySecret::from_text(&format!("{seed:x}"));
        let shared = RedisShared::within(redis, KeySecret::BUILT_IN, surroundings);
        let denials = DenialsShared::under(secret, redis.denials_max_age, Monotonic::from_clock(&clock));
        let local = LocalShared::new(redis.local_budget, clock.clone());
        let approximate = ApproximateShared::new(redis, &clock);
        let (counts, mut tasks) = (shared.lazy_store(), JoinSet::new());
        let watched = shared.clone();
        tasks.spawn(async move { watched.watch(|_| ()).await });
        let swept = local.clone();
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                swept.sweep();
            }
        });
        let (kept, kept_by, counted) = (approximate.clone(), counts.clone(), counted(&setup.rules));
        tasks.spawn(async move { kept.keep(kept_by, || counted.clone()).await });
        let metrics = Metrics::register(&Registry::new(), &setup.rules).expect("the registry is empty");
        let worker = |_| {
            let store = shared.store();
            let recorded = RecordedStore { store: store.clone(), node: number, log: setup.log.clone() };
            let exact = Coalesce::on(&clock, denials.before(recorded), redis);
            let decisions = local.before(approximate.before(exact, store.clone()));
            let limiter = Limiter::new(Arc::clone(&setup.rules), decisions, metrics.recorder());
            Arc::new(NodeWorker { limiter, leases: store })
        };
        let workers = (0..workers).map(worker).collect();
        Self { number, workers, setup: setup.clone(), dialer, approximate, counts, tasks }
    }

    /// Does some work of callers, until the process is gone.
    pub(crate) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(work);
    }

    /// The process is killed.
    pub(crate) fn crash(self) {
        self.setup.log.fault(WorldFault::NodeCrashes(self.number));
        self.dialer.crash();
        self.setup.network.lose_node(self.number);
    }

    /// The process ends as it should: it pushes what it has counted, and frees its places.
    pub(crate) async fn end(mut self) {
        self.workers.clear();
        let last = self.approximate.finish(self.counts.clone());
        let _ = tokio::time::timeout(Duration::from_secs(1), last).await;
        self.setup.log.fault(WorldFault::NodeEnds(self.number));
        self.dialer.crash();
        self.setup.network.lose_node(self.number);
    }
}

/// The strategies that nodes count.
fn counted(rules: &Rules) -> Vec<Arc<Strategy>> {
    rules.strategies().iter().filter(|strategy| strategy.approximate().is_some()).cloned().collect()
}

impl NodeWorker {
    /// Answers a caller who waits for so long.
    pub(crate) async fn decide(
        &self,
        counter: &CounterName,
        cost: u64,
        patience: Option<Duration>,
    ) -> CallOutcome {
        let deadline = patience.map(|patience| monotonic() + patience);
        let question = Question {
            resource: RESOURCE,
            consumer: &counter.consumer,
            strategy: &counter.strategy,
            cost,
            ..Question::until(deadline, Rights::ALL)
        };
        let question = Question { deadline: self.limiter.store_deadline(deadline, monotonic()), ..question };
        let (mut answered, mut waiting) = (None, None);
        self.limiter.round().decide([&question].into_iter(), |begun| match begun {
            Begun::Answered(answer) => answered = Some(outcome_of(answer)),
            Begun::Waiting(later) => waiting = Some(later),
        });
        if let Some(mut later) = waiting {
            let mut verdicts = Verdicts::default();
            answered = Some(outcome_of(self.limiter.wait(&mut later, &mut verdicts).await));
        }
        answered.unwrap_or(CallOutcome::Failed("there is no answer".to_owned()))
    }

    /// Holds tokens. Returns what is granted, for how long, and whether this call did it; `None` if it is denied.
    pub(crate) async fn hold(
        &self,
        consumer: &str,
        shaping: Shaping<'_>,
    ) -> Result<Option<(u64, u64, bool)>, LimiterError> {
        let question = self.of_budget(consumer, shaping);
        let (mut answered, mut waiting) = (None, None);
        self.limiter.round().decide([&question].into_iter(), |begun| match begun {
            Begun::Answered(answer) => answered = Some(answer.map(|answer| held_of(&answer))),
            Begun::Waiting(later) => waiting = Some(later),
        });
        if let Some(mut later) = waiting {
            let mut verdicts = Verdicts::default();
            let answer = self.limiter.wait(&mut later, &mut verdicts).await;
            answered = Some(answer.map(|answer| held_of(&answer)));
        }
        answered.unwrap_or(Ok(None))
    }

    /// Settles a hold. Returns the outcome, and whether this call did it.
    pub(crate) async fn settle(
        &self,
        consumer: &str,
        shaping: Shaping<'_>,
    ) -> Result<(SettleOutcome, bool), LimiterError> {
        let question = self.of_budget(consumer, shaping);
        let settled = self.limiter.settle_hold(&question, None).await?;
        Ok((settled.outcome.unwrap_or(SettleOutcome::Unknown), settled.applied))
    }

    fn of_budget<'a>(&self, consumer: &'a str, shaping: Shaping<'a>) -> Question<'a> {
        let deadline = self.limiter.store_deadline(None, monotonic());
        Question {
            resource: RESOURCE,
            consumer,
            strategy: BUDGET,
            shaping: Some(Box::new(shaping)),
            ..Question::until(deadline, Rights::ALL)
        }
    }

    /// Asks for permits, or gives them back.
    pub(crate) async fn lease(
        &self,
        strategy: &Arc<Strategy>,
        consumer: &str,
        id: &str,
        op: LeaseOp,
    ) -> Result<LeaseAnswer, StoreError> {
        let subject = Subject { resource: RESOURCE, consumer, ..Subject::default() };
        self.leases.lease(&LeaseAsk { strategy, subject, id, op, deadline: None }).await
    }
}

/// Of the second limit, which holds.
fn held_of(answer: &Answer<'_, '_>) -> Option<(u64, u64, bool)> {
    let Outcome::Decided(decided) = answer.outcome else { return None };
    let costs = decided.costs.filter(|costs| costs.allowed)?;
    Some((costs.limits.get(1)?.granted?, costs.held_for?.0, costs.applied))
}

fn outcome_of(answer: Result<Answer<'_, '_>, LimiterError>) -> CallOutcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return CallOutcome::Failed(error.to_string()),
    };
    match answer.outcome {
        Outcome::Decided(decided) => {
            CallOutcome::Decided(DecidedCost { verdict: decided.verdict, limits: decided.limits.to_vec() })
        }
        Outcome::Local(decided) => CallOutcome::Local { allowed: decided.verdict.allowed },
        Outcome::Policy { allowed } => CallOutcome::Policy { allowed },
        Outcome::Listed(_) | Outcome::Banned(_) => CallOutcome::Failed("there are no lists".to_owned()),
    }
}
