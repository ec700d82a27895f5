//! Probes a node that has failed, until a probe succeeds, and while its breaker is open.
//!
//! A probe is a script that writes one key with an expiry: one that only reads succeeds where every write is refused.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

use super::StoreHealth;
use super::tags::ProcessTags;
use crate::redis::breaker::{Breaker, BreakerPhase};
use crate::redis::connect::{Connection, RedisPeer, connect};
use crate::redis::context::LinkContext;
use crate::redis::fault::node_failure;
use crate::redis::for_each_node::for_each_node;
use crate::redis::script_call::is_stalled;
use crate::redis::topology::Address;

/// Interval of probes. While the breaker is open, up to as much again is added at random.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// A probe waits no longer, and no longer than a call.
const PROBE_TIMEOUT: Duration = Duration::from_millis(200);

const PROBE: &str = "return redis.call('SET', KEYS[1], '1', 'PX', 60000)";

/// Keeps a prober for each known node, until it is dropped.
pub(in crate::redis) async fn keep_probing_breakers(
    context: &Arc<LinkContext>,
    health: Option<&StoreHealth>,
) {
    let tags = Arc::new(ProcessTags::new(&context.surroundings.random));
    let start = |address: Address| {
        let breaker = context.breakers.of(&address);
        let (context, health, tags) = (Arc::clone(context), health.cloned(), Arc::clone(&tags));
        BreakerProber {
            address,
            breaker,
            context,
            health,
            tags,
            deadlines: Deadlines::default(),
            connection: None,
            told: BreakerPhase::Closed,
        }
        .run()
    };
    for_each_node(&context.topology, |_| {}, start).await;
}

struct BreakerProber {
    address: Address,
    breaker: Arc<Breaker>,
    context: Arc<LinkContext>,
    health: Option<StoreHealth>,
    tags: Arc<ProcessTags>,
    /// Deadlines of which one that passes while this process does not run is known.
    deadlines: Deadlines,
    connection: Option<Connection>,
    told: BreakerPhase,
}

enum ProbeEnd {
    Answered,
    /// Not sent, because the node has no slot; or this process did not run when the answer fell due.
    Unknown,
}

impl Drop for BreakerProber {
    fn drop(&mut self) {
        self.breaker.set_probed(false);
    }
}

impl BreakerProber {
    async fn run(mut self) {
        self.breaker.set_probed(true);
        loop {
            // A probe over an open connection finds a frozen node sooner than a new connection would.
            let _ = self.connect().await;
            self.breaker.trouble().await;
            while self.is_needed() {
                self.probe().await;
                let more =
                    if self.breaker.phase() == BreakerPhase::Open { self.jitter() } else { Duration::ZERO };
                tokio::time::sleep(PROBE_EVERY + more).await;
            }
        }
    }

    /// True until there is no failure left and the breaker is closed.
    fn is_needed(&mut self) -> bool {
        let is_needed = self.breaker.needs_probes(monotonic());
        let phase = self.breaker.phase();
        if std::mem::replace(&mut self.told, phase) != phase
            && let Some(health) = &self.health
        {
            health.breaker_changed();
        }
        is_needed
    }

    async fn probe(&mut self) {
        let begun = monotonic();
        let (sent, outcome) = match self.connect().await {
            Ok(()) => (monotonic(), self.write().await),
            Err(reason) => (begun, Err(reason)),
        };
        match outcome {
            Ok(ProbeEnd::Answered) => self.breaker.succeeded(sent),
            Ok(ProbeEnd::Unknown) => {}
            Err(failure) => {
                self.context.topology.suspect();
                self.breaker.failed(sent, &failure);
            }
        }
    }

    /// Connects if there is no connection. The timeout is that of connections: TLS takes longer than a call.
    async fn connect(&mut self) -> Result<(), String> {
        if self.connection.is_none() {
            let dialled = connect(&self.address, &self.context, RedisPeer::Redis).await;
            self.connection = Some(dialled.map_err(String::from)?);
        }
        Ok(())
    }

    /// Writes a key. An error speaks of the node; a refusal of this script or key is as good as an answer.
    async fn write(&mut self) -> Result<ProbeEnd, String> {
        let (Some(command), Some(mut connection)) = (self.command(), self.connection.take()) else {
            return Ok(ProbeEnd::Unknown);
        };
        let timeout = PROBE_TIMEOUT.min(self.context.config.deadline.into());
        let due = monotonic() + timeout;
        let Ok(reply) = self.deadlines.until(due, connection.send(&command)).await else {
            if is_stalled(due, monotonic()) {
                self.connection = Some(connection);
                return Ok(ProbeEnd::Unknown);
            }
            // The path of an open connection may be dead while the node is well, so each later probe has a new one.
            if self.breaker.phase() != BreakerPhase::Open {
                self.connection = Some(connection);
            }
            return Err(format!("no answer to a probe within {timeout:?}"));
        };
        let Err(error) = reply else {
            self.connection = Some(connection);
            return Ok(ProbeEnd::Answered);
        };
        if error.code().is_some() {
            self.connection = Some(connection);
        }
        node_failure(&error).map_or(Ok(ProbeEnd::Answered), Err)
    }

    /// Up to the interval of probes, so that the nodes of Weir do not probe in step.
    fn jitter(&self) -> Duration {
        Duration::from_micros(self.context.surroundings.random.below(PROBE_EVERY.as_micros() as u64))
    }

    /// `None` if the node has no slot.
    fn command(&self) -> Option<Cmd> {
        let LinkContext { config, topology, .. } = &*self.context;
        let owns = |slot| topology.owner(slot).is_ok_and(|owner| owner == self.address);
        let mut key = Vec::with_capacity(48);
        config.namespace.prefix(self.tags.next(owns)?).write(&mut key);
        key.extend_from_slice(b"probe:breaker");
        let mut command = redis::cmd("EVAL");
        command.arg(PROBE).arg(1).arg(key);
        Some(command)
    }
}
