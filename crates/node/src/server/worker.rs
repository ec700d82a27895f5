//! Worker threads: each has a runtime, a store and a gRPC server of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};

use weir_config::ServerConfig;
use weir_grpc::{BufferBudget, WorkerBudget};
use weir_store::Store;

use super::connections::Connections;
use super::feature_ports::WorkerPorts;
use super::listener::Accepted;
use super::open::OpenConnection;
use super::stopping::stopped;
use super::worker_port::{AcceptedConnections, WorkerPort};
use super::{Parts, ServerError, routes, runtime};
use crate::feature::{NodeCalls, WorkerContext};
use crate::memory::give_back;

pub(super) struct Workers {
    hands: Vec<Hand>,
    feature_hands: Vec<Vec<Hand>>,
    threads: Vec<Option<JoinHandle<Result<(), ServerError>>>>,
    ended: mpsc::UnboundedReceiver<usize>,
}

/// The acceptor's handle of one worker.
#[derive(Clone)]
pub(super) struct Hand {
    /// Unbounded, but each entry holds an open file, and the process has a limit of these.
    sender: mpsc::UnboundedSender<(Accepted, OpenConnection)>,
    open: Arc<AtomicUsize>,
}

/// Reports the end of its thread when dropped, so also after a panic.
struct ThreadEnd(usize, mpsc::UnboundedSender<usize>);

impl Hand {
    pub(super) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Gives the worker one more connection. If the worker has ended, the connection is closed.
    pub(super) fn give(&self, stream: Accepted) {
        let _ = self.sender.send((stream, OpenConnection::count(&self.open)));
    }
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        let _ = self.1.send(self.0);
    }
}

impl Workers {
    /// Starts `count` workers. Each ends when `stop`'s sender is dropped and its calls have finished.
    pub(super) fn start<S: Store>(
        count: usize,
        budget: &BufferBudget,
        config: &ServerConfig,
        parts: Parts<S>,
        stop: &watch::Receiver<()>,
    ) -> Result<Self, ServerError> {
        let (parts, config) = (Arc::new(parts), Arc::new(config.clone()));
        let (end, ended) = mpsc::unbounded_channel();
        let mut workers = Self { hands: Vec::new(), feature_hands: Vec::new(), threads: Vec::new(), ended };
        for index in 0..count {
            let (sender, accepted) = mpsc::unbounded_channel();
            workers.hands.push(Hand { sender, open: parts.metrics.connections() });
            let of_features = parts.features.iter().map(|_| mpsc::unbounded_channel());
            let (senders, of_features): (Vec<_>, Vec<_>) = of_features.unzip();
            let hand = |sender| Hand { sender, open: Arc::default() };
            workers.feature_hands.push(senders.into_iter().map(hand).collect());
            let (parts, config) = (Arc::clone(&parts), Arc::clone(&config));
            let (stop, end, budget) = (stop.clone(), end.clone(), budget.worker());
            let body = move || {
                let _ended = ThreadEnd(index, end);
                serve(index, &parts, &config, (accepted, of_features), budget, stop)
            };
            let thread = std::thread::Builder::new().name(format!("weir-worker-{index}")).spawn(body);
            let thread =
                thread.map_err(|error| ServerError::Io { what: "starting a worker thread", error })?;
            workers.threads.push(Some(thread));
        }
        Ok(workers)
    }

    /// Returns the acceptor's handles of the workers.
    pub(super) fn hands(&self) -> Vec<Hand> {
        self.hands.clone()
    }

    /// Returns the acceptor's handles of the workers for a feature.
    pub(super) fn feature_hands(&self, feature: usize) -> Vec<Hand> {
        self.feature_hands.iter().filter_map(|hands| hands.get(feature).cloned()).collect()
    }

    /// Waits until a worker ends without being asked to, and returns its error.
    pub(super) async fn any_ended(&mut self) -> ServerError {
        match self.ended.recv().await {
            Some(index) => self.join(index).err().unwrap_or(ServerError::WorkerLost(index)),
            // Unreachable while workers run: each holds a sender until it has reported.
            None => std::future::pending().await,
        }
    }

    /// Waits until every worker has ended.
    pub(super) async fn all_ended(&mut self) -> Result<(), ServerError> {
        while self.threads.iter().any(Option::is_some) {
            let Some(index) = self.ended.recv().await else { break };
            self.join(index)?;
        }
        Ok(())
    }

    /// Joins a thread that has reported its end: this blocks for a moment at most.
    fn join(&mut self, index: usize) -> Result<(), ServerError> {
        match self.threads.get_mut(index).and_then(Option::take).map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(ServerError::WorkerLost(index)),
            None => Ok(()),
        }
    }
}

fn serve<S: Store>(
    index: usize,
    parts: &Parts<S>,
    config: &ServerConfig,
    (accepted, of_features): (AcceptedConnections, Vec<AcceptedConnections>),
    budget: WorkerBudget,
    stop: watch::Receiver<()>,
) -> Result<(), ServerError> {
    runtime()?.block_on(async {
        let services = Arc::new(routes::services((parts.store)(), parts, index, config, budget.budget())?);
        let calls = Arc::clone(&services) as Arc<dyn NodeCalls>;
        let worker =
            WorkerContext { calls, budget: budget.budget().clone(), draining: parts.readiness.draining() };
        let ports = WorkerPorts::new(&parts.features, of_features, &worker);
        let metrics = parts.metrics.transport();
        let connections = Connections::new(services, config, budget, metrics);
        let connections = WorkerPort::new(connections, parts.tls.clone(), accepted);
        let too_long = async {
            stopped(stop.clone()).await;
            tokio::time::sleep(config.drain_timeout.into()).await;
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(connections.serve(stop.clone()), ports.serve(&stop)) } => Ok(()),
            never = give_back() => match never {},
            () = too_long => {
                let after_ms = config.drain_timeout.0 / 1000;
                tracing::warn!(after_ms, "drain timeout reached; calls in flight were cancelled");
                Ok(())
            }
        }
    })
}
