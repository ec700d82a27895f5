//! The thread that reads the counters every second and answers questions.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use weir_node::limiter::InvalidField;
use weir_node::owned_thread::OwnedThread;
use weir_node::telemetry::Metrics;
use weir_store::scripts::ScriptClient;
use weir_time::clock::{self, Clock};
use weir_units::Micros;

use super::collect::{Collector, second};
use super::exchange::{Exchange, OfOthers};
use super::nodes::{NodeRoster, OwnNode};
use super::pace::QuestionPace;
use super::timeseries::TimeSeries;
use super::{ConsumersAnswer, ConsumersAsk, MAX_WAITING, UsageAnswer, UsageAsk, UsageHandle, UsageQuestion};
use crate::consumers::ConsumerSamplers;
use crate::settings::UsageConfig;
use crate::store::UsageLink;

/// Thread handle. Dropping it ends the thread after a last read of the counters.
pub(crate) struct UsageThread {
    _thread: OwnedThread,
    handle: UsageHandle,
    samplers: ConsumerSamplers,
}

impl UsageThread {
    /// Starts to read the counters of `metrics`.
    ///
    /// `scripts` is the store that nodes share, if there is one.
    pub(crate) fn start(
        config: &UsageConfig,
        metrics: Metrics,
        clock: Clock,
        scripts: Option<&ScriptClient>,
        own: OwnNode,
    ) -> std::io::Result<Self> {
        let (handle, questions) = mpsc::channel(MAX_WAITING);
        let samplers = ConsumerSamplers::start(&metrics, config.sample);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (node, started) = (own.name.clone(), clock.now());
        let exchange = scripts.filter(|_| config.shared).map(UsageLink::open);
        let exchange = exchange.map(|link| Exchange::new(link, &node, started));
        let member = exchange.as_ref().map_or_else(String::new, |exchange| exchange.member().to_owned());
        let roster = NodeRoster::new(own, member, started);
        let timeseries = scripts.filter(|_| config.timeseries).map(UsageLink::open);
        let timeseries = timeseries.map(|link| TimeSeries::new(link, &node, started));
        let collector = Collector::new(metrics, samplers.clone(), started);
        let pace = QuestionPace::default();
        let state = UsageState { node, roster, collector, exchange, timeseries, clock, pace };
        let body = move |stopped| runtime.block_on(state.run(questions, stopped));
        let thread = OwnedThread::spawn("weir-usage", body)?;
        Ok(Self { _thread: thread, handle: UsageHandle(handle), samplers })
    }

    /// The samplers of consumers.
    #[must_use]
    pub(crate) fn samplers(&self) -> ConsumerSamplers {
        self.samplers.clone()
    }

    /// A handle for questions.
    #[must_use]
    pub(crate) fn handle(&self) -> UsageHandle {
        self.handle.clone()
    }
}

struct UsageState {
    node: String,
    roster: NodeRoster,
    collector: Collector,
    exchange: Option<Exchange>,
    timeseries: Option<TimeSeries>,
    clock: Clock,
    /// Bounds what questions take of a core.
    pace: QuestionPace,
}

impl UsageState {
    async fn run(mut self, mut questions: mpsc::Receiver<UsageQuestion>, mut stopped: oneshot::Receiver<()>) {
        let mut tick = pin!(tokio::time::sleep(until_next_second(self.clock.now())));
        loop {
            let turn = self.pace.next(clock::monotonic());
            tokio::select! {
                biased;
                _ = &mut stopped => return self.collect(true).await,
                // However many questions there are, the counters are read every second.
                () = tick.as_mut() => {
                    self.collect(false).await;
                    let next = clock::monotonic() + until_next_second(self.clock.now());
                    tick.as_mut().reset(next.into());
                }
                Some(question) = next(&mut questions, turn) => {
                    let before = clock::thread_cpu();
                    self.answer(question).await;
                    self.pace.took(clock::thread_cpu().saturating_sub(before), clock::monotonic());
                }
            }
        }
    }

    /// Reads the counters, and sends changes to other nodes; for the last time, if the process ends.
    async fn collect(&mut self, ends: bool) {
        let now = self.count();
        match &mut self.exchange {
            Some(exchange) => {
                exchange.write(&mut self.collector, now).await;
                self.roster.write(exchange.link(), now, ends).await;
                if !ends {
                    exchange.merge_left_out(now).await;
                }
            }
            None => self.collector.history.trim_changed(),
        }
        if let Some(timeseries) = &mut self.timeseries {
            timeseries.write(&self.collector, now, ends).await;
        }
    }

    /// Reads the counters. Returns the time, by a clock that may have stepped back.
    fn count(&mut self) -> Micros {
        let now = self.clock.now();
        if self.collector.is_ahead_of(now) {
            tracing::warn!("clock stepped back by more than an hour; starting a new usage history");
            self.collector.begin_anew(now);
            if let Some(exchange) = &mut self.exchange {
                exchange.begin_anew(&self.node, now);
            }
            if let Some(timeseries) = &mut self.timeseries {
                timeseries.begin_anew(now);
            }
        }
        self.collector.collect(now);
        now
    }

    /// A caller that has given up gets no answer.
    async fn answer(&mut self, question: UsageQuestion) {
        let now = self.count();
        match question {
            UsageQuestion::Totals(ask, reply) => {
                let _ = reply.send(self.totals(ask, now).await);
            }
            UsageQuestion::Latency(reply) => {
                let _ = reply.send((second(now), self.collector.latency.points(second(now))));
            }
            UsageQuestion::Nodes(reply) => {
                let link = self.exchange.as_mut().map(Exchange::link);
                let _ = reply.send(self.roster.read(link, now).await);
            }
            UsageQuestion::Consumers(ask, reply) => {
                let _ = reply.send(self.consumers(&ask, now).await);
            }
        }
    }

    async fn totals(&mut self, ask: UsageAsk, now: Micros) -> Result<UsageAnswer, InvalidField> {
        let mut sums = self.collector.sums(ask, now)?;
        let (mut nodes, mut incomplete) = (Vec::new(), None);
        if let Some(exchange) = &mut self.exchange {
            let others = exchange.add_others(&mut sums, now).await;
            (nodes, incomplete) = (others.nodes, others.incomplete);
        }
        let mut answer = sums.into_answer(self.with_own(nodes), incomplete)?;
        for row in &mut answer.rows {
            for cost in &mut row.costs {
                cost.unit = self.collector.series.unit(&row.strategy, &cost.name);
            }
        }
        Ok(answer)
    }

    async fn consumers(&mut self, ask: &ConsumersAsk, now: Micros) -> ConsumersAnswer {
        self.collector.collect_consumers(now);
        let others = match &mut self.exchange {
            Some(exchange) => exchange.consumers(ask, now).await,
            None => OfOthers { found: Vec::new(), nodes: Vec::new(), incomplete: None },
        };
        let found = self.collector.found(ask, now).into_iter().chain(&others.found);
        ask.answer(found, self.with_own(others.nodes), others.incomplete)
    }

    fn with_own(&self, mut nodes: Vec<String>) -> Vec<String> {
        nodes.push(self.node.clone());
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// The next question, not before its turn.
async fn next(questions: &mut mpsc::Receiver<UsageQuestion>, turn: Instant) -> Option<UsageQuestion> {
    if turn > clock::monotonic() {
        tokio::time::sleep_until(turn.into()).await;
    }
    questions.recv().await
}

/// A moment after it begins, so that it has begun by the wall clock too.
fn until_next_second(now: Micros) -> Duration {
    Duration::from_micros(1_000_000 - now.0 % 1_000_000 + 500)
}
