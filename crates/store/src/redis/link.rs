//! The connection to one node: one task dials it, serves it, gives it up and redials.
//!
//! Requests that are ready at the same moment are batched into one script call. A single request leaves at once, unless
//! `store.redis.gather` lets it wait for others. While the node is known to be unreachable, requests fail fast instead of waiting for
//! their deadlines.

mod gather_timer;
mod sender;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use self::gather_timer::GatherTimer;
use self::sender::Sender;
use super::breaker::Breaker;
use super::connect::{Connection, RedisPeer, connect};
use super::context::LinkContext;
use super::fault::Fault;
use super::outbox::{LinkClosed, Outbox, OutboxRequest, ReadyCalls};
use super::script_call::{CallSlots, CallTime, Redirection, ScriptCall};
use super::surroundings::RandomSource;
use super::topology::Address;
use super::trials::Trials;
use crate::StoreError;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

/// A connection that ended sooner than this counts as a failed attempt.
const BRIEF: Duration = Duration::from_secs(1);

/// A handle to the task that talks to one node.
pub(super) struct Link {
    outbox: Arc<Outbox>,
    breaker: Arc<Breaker>,
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl Link {
    /// Starts the task on the current runtime; it ends when the link is dropped.
    pub(super) fn open(address: Address, context: Arc<LinkContext>, deadlines: Deadlines) -> Self {
        let (deadline, gather) = (context.config.deadline.into(), context.config.gather.into());
        let outbox = Arc::new(Outbox::new(deadline, gather));
        let max_waiting = context.config.max_waiting;
        let breaker = context.breakers.of(&address);
        let trials = Trials::new(Arc::clone(&context), address.clone());
        let (queued, judged) = (Arc::clone(&outbox), Arc::clone(&breaker));
        tokio::spawn(Task { address, context, deadlines, outbox: queued, breaker: judged, trials }.run());
        Self { outbox, breaker, waiting: AtomicUsize::new(0), max_waiting }
    }

    /// True if a decision of `caller` would be answered within `left`, as far as is known.
    pub(super) fn is_in_time(&self, caller: u32, left: Duration) -> bool {
        self.outbox.is_in_time(caller, left)
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request if it has not been sent yet.
    pub(super) async fn ask<R: OutboxRequest>(
        &self,
        request: &Arc<R>,
        how: Redirection,
        time: CallTime,
    ) -> Result<R::Answer, Fault> {
        self.breaker.admit(monotonic).map_err(Fault::Failed)?;
        let place = LinkPlace::take(&self.waiting);
        if place.number >= self.max_waiting {
            let overloaded = Fault::Failed(StoreError::Overloaded(self.max_waiting));
            match self.outbox.displace(&**request) {
                Some(newest) => newest.fail(&overloaded),
                None => return Err(overloaded),
            }
        }
        let (caller, answer) = oneshot::channel();
        let closed = || Fault::Broken(StoreError::Unavailable("the connection was closed".into()));
        let call = ScriptCall::new(request, how, time, caller);
        self.outbox.put(call).map_err(|LinkClosed| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// A place of a waiting request. Their number is bounded.
struct LinkPlace<'a> {
    waiting: &'a AtomicUsize,
    number: usize,
}

impl<'a> LinkPlace<'a> {
    fn take(waiting: &'a AtomicUsize) -> Self {
        Self { waiting, number: waiting.fetch_add(1, Relaxed) }
    }
}

impl Drop for LinkPlace<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}

struct Task {
    address: Address,
    context: Arc<LinkContext>,
    deadlines: Deadlines,
    outbox: Arc<Outbox>,
    breaker: Arc<Breaker>,
    trials: Trials,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// The reason that a connection is no longer used.
enum Parted {
    /// The server or a middlebox closed it. Many close idle connections.
    Ended,
    /// The connection was broken or silent.
    GivenUp,
}

impl Task {
    async fn run(mut self) {
        let mut failures = 0_u32;
        let (address, context) = (self.address.clone(), Arc::clone(&self.context));
        loop {
            let begun = monotonic();
            let dialled = connect(&address, &context, RedisPeer::Redis);
            let outcome = if failures == 0 {
                // No failure yet, so requests wait for the connection.
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
                    // A server that accepts connections but cannot serve (a demoted master that answers
                    // READONLY) is dialled no more often than an unreachable one.
                    if monotonic().saturating_duration_since(began) >= BRIEF {
                        failures = u32::from(matches!(parted, Parted::GivenUp));
                        continue;
                    }
                    "its connections are of no use".to_owned()
                }
                Err(error) => {
                    let error = String::from(error);
                    self.context.topology.suspect();
                    self.breaker.failed(begun, &error);
                    self.log(&error, failures);
                    error
                }
            };
            failures = failures.saturating_add(1);
            let pause = tokio::time::sleep(backoff(failures, &self.context.surroundings.random));
            if self.meanwhile_refuse(pause, &error).await.is_err() {
                return;
            }
        }
    }

    /// Logs at low levels: every worker retries several times a second, and the monitor logs one warning for all.
    fn log(&self, error: &str, failures: u32) {
        if failures == 0 {
            tracing::info!(node = %self.address, error, "cannot reach Redis; will retry");
        } else {
            tracing::debug!(node = %self.address, error, failures, "cannot reach Redis");
        }
    }

    /// Sends requests until the connection has ended or is given up.
    async fn serve(&mut self, connection: &Connection) -> Result<Parted, LinkClosed> {
        let given_up = Arc::new(Notify::new());
        self.breaker.register(&given_up);
        self.outbox.set_refusing(false);
        let mut slots = if self.context.topology.is_cluster() { CallSlots::Apart } else { CallSlots::Any };
        let passed = self.trials.pass(connection.clone());
        let ended = connection.closed();
        tokio::pin!(passed, ended);
        let (mut ready, mut gathering) = (ReadyCalls::default(), GatherTimer::new(&self.context));
        loop {
            tokio::select! {
                biased;
                () = given_up.notified() => {
                    let reason = self.breaker.reason();
                    tracing::info!(
                        node = %self.address,
                        reason = reason.as_deref(),
                        "closed a connection to Redis because its calls failed; reconnecting"
                    );
                    return Ok(Parted::GivenUp);
                }
                () = &mut ended => {
                    tracing::debug!(node = %self.address, "connection to Redis closed");
                    return Ok(Parted::Ended);
                }
                () = &mut passed, if slots == CallSlots::Apart => {
                    slots = CallSlots::Together;
                    continue;
                }
                waits = self.outbox.ready() => {
                    waits?;
                    if gathering.begin(&self.outbox) {
                        continue;
                    }
                }
                () = gathering.wait() => {}
            }
            gathering.end();
            // Yield once, so that requests that have meanwhile arrived on the worker's sockets join the batch.
            // That makes calls larger by a third where several nodes answer in turn.
            tokio::task::yield_now().await;
            let now = monotonic();
            self.outbox.take(&mut ready, now);
            let sender = Sender {
                now,
                connection,
                outbox: &self.outbox,
                given_up: &given_up,
                breaker: &self.breaker,
                context: &self.context,
                deadlines: &self.deadlines,
                host: &self.address.host,
                slots,
            };
            sender.send(&mut ready.features);
            sender.send(&mut ready.counts);
            let calls = sender.send(&mut ready.decisions);
            if slots == CallSlots::Apart {
                self.context.single_slot_nodes.count(calls);
            }
        }
    }

    /// Drives `work`. Requests that arrive meanwhile fail at once.
    async fn meanwhile_refuse<T>(
        &mut self,
        work: impl Future<Output = T>,
        why: &str,
    ) -> Result<T, LinkClosed> {
        tokio::pin!(work);
        self.outbox.set_refusing(true);
        let mut ready = ReadyCalls::default();
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                waits = self.outbox.ready() => waits?,
            }
            self.outbox.take_all(&mut ready);
            let error = StoreError::Unavailable(format!("{}: {why}", self.address).into());
            ready.fail(&Fault::Broken(error));
        }
    }
}

/// Exponential backoff from 20 ms to half a second, with added jitter so that workers do not dial in step.
fn backoff(failures: u32, random: &RandomSource) -> Duration {
    let base = 20_u64 << failures.saturating_sub(1).min(5);
    Duration::from_millis(base.min(500) + random.below(base / 2 + 1))
}
