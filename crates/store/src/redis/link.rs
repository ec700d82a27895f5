//! The connection to one node: dialled, served, given up and dialled again, by one task.
//!
//! Requests that are ready at the same moment leave together in one script call; a request that is
//! alone leaves alone, and nothing waits for a timer. While the node is known to be away, requests are
//! answered at once instead of waiting for their deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};

use super::call::{CallSlots, Fate, NodeCall, ScriptCall};
use super::connect::{Connection, connect};
use super::context::LinkContext;
use super::fault::Fault;
use super::request::{Job, NodeRequest};
use super::shared_call::SharedCall;
use super::topology::{Address, ClusterView};
use super::trials::Trials;
use crate::StoreError;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

/// Keys in one script call: a batch of the largest size with one limit each, and few enough not to hold
/// Redis up for more than some milliseconds. The last request may pass it.
const MAX_KEYS: usize = 1000;

/// After this many calls in a row without an answer the connection is given up: a node that hangs
/// reports no error, and its successor is found only by looking.
const SILENT_CALLS: u32 = 3;

/// A connection that was given up sooner than this was never any good.
const BRIEF: Duration = Duration::from_secs(1);

/// A handle to the task that talks to one node.
pub(super) struct Link {
    queue: mpsc::UnboundedSender<Job>,
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl Link {
    /// Starts the task on the current runtime; it ends when the link is dropped.
    pub(super) fn open(address: Address, context: Arc<LinkContext>, deadlines: Deadlines) -> Self {
        let (queue, jobs) = mpsc::unbounded_channel();
        let max_waiting = context.config.max_waiting;
        let trials = Trials::new(Arc::clone(&context), address.clone());
        tokio::spawn(Task { address, context, deadlines, jobs, trials }.run());
        Self { queue, waiting: AtomicUsize::new(0), max_waiting }
    }

    /// Sends a request and waits for its answer. Dropping the future takes back what has not left yet.
    pub(super) async fn ask<R: NodeRequest>(
        &self,
        request: &R,
        asking: bool,
        alone: bool,
    ) -> Result<R::Answer, Fault> {
        let _place = LinkPlace::take(&self.waiting, self.max_waiting)
            .ok_or(Fault::Failed(StoreError::Overloaded(self.max_waiting)))?;
        let (reply, answer) = oneshot::channel();
        let gone = |_| Fault::Broken(StoreError::Unavailable("the connection was closed".into()));
        self.queue.send(request.job(asking, alone, reply)).map_err(|_| gone(()))?;
        answer.await.unwrap_or_else(|_| Err(gone(())))
    }
}

/// A place of a waiting call. Their number is bounded.
struct LinkPlace<'a>(&'a AtomicUsize);

impl<'a> LinkPlace<'a> {
    fn take(waiting: &'a AtomicUsize, max: usize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Relaxed) < max).then_some(place)
    }
}

impl Drop for LinkPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

struct Task {
    address: Address,
    context: Arc<LinkContext>,
    deadlines: Deadlines,
    jobs: mpsc::UnboundedReceiver<Job>,
    trials: Trials,
}

/// The link was dropped: no more calls come.
struct LinkClosed;

/// Why a connection is not used any more.
enum Parted {
    /// The server closed it, or what lies between: many do so where nothing is said for a while.
    Ended,
    /// It was of no use.
    GivenUp,
}

impl Task {
    async fn run(mut self) {
        let mut failures = 0_u32;
        let (address, context) = (self.address.clone(), Arc::clone(&self.context));
        loop {
            let dialled = connect(&address, &context.config, context.config.login.as_ref());
            let outcome = if failures == 0 {
                // Nothing speaks against the node yet, so requests wait for it.
                dialled.await
            } else {
                match self.meanwhile_refuse(dialled, "it did not answer the last time").await {
                    Ok(outcome) => outcome,
                    Err(LinkClosed) => return,
                }
            };
            let error = match outcome {
                Ok(connection) => {
                    let began = monotonic();
                    let parted = match self.serve(&connection).await {
                        Ok(parted) => parted,
                        Err(LinkClosed) => return,
                    };
                    // A server that takes connections and is of no use (a demoted master that answers
                    // READONLY) is dialled no more often than one that takes none.
                    if began.elapsed() >= BRIEF {
                        failures = u32::from(matches!(parted, Parted::GivenUp));
                        continue;
                    }
                    "its connections are of no use".to_owned()
                }
                Err(error) => {
                    let error = String::from(error);
                    self.context.topology.suspect();
                    self.log(&error, failures);
                    error
                }
            };
            failures = failures.saturating_add(1);
            let pause = tokio::time::sleep(backoff(failures));
            if self.meanwhile_refuse(pause, &error).await.is_err() {
                return;
            }
        }
    }

    /// Every worker tries on, several times a second. The monitor warns of a node that cannot decide, once for all.
    fn log(&self, error: &str, failures: u32) {
        if failures == 0 {
            tracing::info!(node = %self.address, error, "cannot reach Redis; trying on");
        } else {
            tracing::debug!(node = %self.address, error, failures, "cannot reach Redis");
        }
    }

    /// Sends what comes until the connection has ended or is given up.
    async fn serve(&mut self, connection: &Connection) -> Result<Parted, LinkClosed> {
        let health = Arc::new(Health::default());
        let mut slots = if self.context.topology.is_cluster() { CallSlots::Apart } else { CallSlots::Any };
        let passed = self.trials.pass(connection.clone());
        let ended = connection.closed();
        tokio::pin!(passed, ended);
        loop {
            let first = tokio::select! {
                biased;
                () = health.given_up.notified() => {
                    tracing::info!(node = %self.address, "gave up a connection to Redis");
                    return Ok(Parted::GivenUp);
                }
                () = &mut ended => {
                    tracing::debug!(node = %self.address, "a connection to Redis was closed");
                    return Ok(Parted::Ended);
                }
                () = &mut passed, if slots == CallSlots::Apart => {
                    slots = CallSlots::Together;
                    continue;
                }
                job = self.jobs.recv() => job.ok_or(LinkClosed)?,
            };
            // What has come to the worker's sockets meanwhile is ready too: it is looked at once before
            // the call leaves. That makes calls larger by a third where several nodes answer in turn.
            tokio::task::yield_now().await;
            let (mut keys, mut decisions) = (0, Vec::with_capacity(1));
            let (mut leases, mut queues) = (Vec::new(), Vec::new());
            let mut next = Some(first);
            while let Some(job) = next {
                keys += job.weight();
                match job {
                    // Callers that are gone must not be charged.
                    job if job.is_abandoned() => {}
                    Job::Decision(job) => decisions.push(job),
                    Job::Lease(job) => leases.push(job),
                    Job::Queue(job) => queues.push(job),
                }
                next = if keys < MAX_KEYS { self.jobs.try_recv().ok() } else { None };
            }
            let decisions = ScriptCall::group(decisions, slots);
            if slots == CallSlots::Apart {
                self.context.single_slot_nodes.count(decisions.len());
            }
            let leases = SharedCall::group(leases, slots).into_iter().map(NodeCall::Leases);
            let queues = SharedCall::group(queues, slots).into_iter().map(NodeCall::Queue);
            for call in leases.chain(queues).chain(decisions.into_iter().map(NodeCall::Decisions)) {
                let (connection, health) = (connection.clone(), Arc::clone(&health));
                let (context, host) = (Arc::clone(&self.context), Arc::clone(&self.address.host));
                let deadlines = self.deadlines.clone();
                tokio::spawn(async move {
                    let fate = call.run(connection, &context, &deadlines, &host).await;
                    health.record(fate, &context.topology);
                });
            }
        }
    }

    /// Drives `work`; requests that come meanwhile get the error at once.
    async fn meanwhile_refuse<T>(
        &mut self,
        work: impl Future<Output = T>,
        why: &str,
    ) -> Result<T, LinkClosed> {
        tokio::pin!(work);
        loop {
            let job = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                job = self.jobs.recv() => job.ok_or(LinkClosed)?,
            };
            let error = StoreError::Unavailable(format!("{}: {why}", self.address).into());
            job.fail(Fault::Broken(error));
        }
    }
}

#[derive(Default)]
struct Health {
    silent: AtomicU32,
    given_up: Notify,
}

impl Health {
    fn record(&self, fate: Fate, topology: &ClusterView) {
        let give_up = match fate {
            Fate::Answered => {
                self.silent.store(0, Relaxed);
                return;
            }
            Fate::Silent => self.silent.fetch_add(1, Relaxed) + 1 >= SILENT_CALLS,
            Fate::Broken => true,
        };
        topology.suspect();
        if give_up {
            self.given_up.notify_one();
        }
    }
}

/// 20 ms, doubling up to half a second, each time a little different so that workers do not dial in step.
fn backoff(failures: u32) -> Duration {
    use std::hash::BuildHasher as _;
    let base = 20_u64 << failures.saturating_sub(1).min(5);
    let jitter = std::collections::hash_map::RandomState::new().hash_one(failures) % (base / 2 + 1);
    Duration::from_millis(base.min(500) + jitter)
}
