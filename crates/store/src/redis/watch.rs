//! The topology watcher: one per process, apart from the workers.

mod sentinel;

use std::time::Duration;

use redis::{Cmd, Value};
use weir_config::Topology;

use super::connect::{Connection, RedisPeer, connect};
use super::context::LinkContext;
use super::decisions::DecisionRequest;
use super::fault::as_written;
use super::plain::Form;
use super::script_call::{CallTerms, exchange};
use super::topology::{Address, SlotMap};

/// Interval of periodic refreshes.
const UNASKED: Duration = Duration::from_secs(2);

/// Interval of refreshes while Redis is unreachable, or while workers keep suspecting changes.
const SUSPECTED: Duration = Duration::from_millis(100);

/// Refreshes the topology, reports the result, and waits for the next refresh. Never returns.
pub(super) async fn watch(context: &LinkContext, mut report: impl FnMut(Result<(), String>)) {
    let mut watcher = Watcher { context, connection: None, master: None, no_master: None, turn: 0 };
    loop {
        let outcome = watcher.poll().await;
        let pause = if outcome.is_ok() { UNASKED } else { SUSPECTED };
        report(outcome);
        tokio::select! {
            // So that a simulation takes the same course each time. Either order does.
            biased;
            () = tokio::time::sleep(pause) => {}
            () = context.topology.suspected() => tokio::time::sleep(SUSPECTED).await,
        }
    }
}

/// Joins the failures of all nodes: the first few in full, and the number of others.
fn listed(failures: &[String]) -> String {
    const SHOWN: usize = 4;
    match failures.len() {
        0 => "no address is configured".to_owned(),
        count if count > SHOWN => format!("{}; and {} more", failures[..SHOWN].join("; "), count - SHOWN),
        _ => failures.join("; "),
    }
}

struct Watcher<'a> {
    context: &'a LinkContext,
    /// The node that answered last; it is queried first.
    connection: Option<(Address, Connection)>,
    /// The master that the sentinels named last.
    master: Option<(Address, Connection)>,
    /// The address that a sentinel named in this refresh, and that did not prove to be a master.
    no_master: Option<Address>,
    /// Start of the round robin over candidates, so that a hanging one is not always first.
    turn: usize,
}

impl Watcher<'_> {
    /// Queries the nodes in turn until one answers.
    async fn poll(&mut self) -> Result<(), String> {
        self.no_master = None;
        if let Some((address, mut connection)) = self.connection.take()
            && self.ask(&address, &mut connection).await.is_ok()
        {
            // In a cluster the next refresh queries another node, whose view may be newer.
            if !self.context.topology.is_cluster() {
                self.connection = Some((address, connection));
            }
            return Ok(());
        }
        let mut candidates = self.context.topology.candidates();
        let first = self.turn % candidates.len().max(1);
        candidates.rotate_left(first);
        self.turn = self.turn.wrapping_add(1);
        let mut failures = Vec::new();
        for address in candidates {
            let outcome = async {
                let mut connection = connect(&address, self.context, self.peer()).await?;
                self.ask(&address, &mut connection).await?;
                Ok::<_, String>(connection)
            };
            match outcome.await {
                Ok(connection) => {
                    self.connection = Some((address, connection));
                    return Ok(());
                }
                Err(error) => failures.push(format!("{address}: {error}")),
            }
        }
        Err(listed(&failures))
    }

    fn peer(&self) -> RedisPeer {
        if self.context.config.sentinel.is_some() { RedisPeer::Sentinel } else { RedisPeer::Redis }
    }

    async fn ask(&mut self, address: &Address, connection: &mut Connection) -> Result<(), String> {
        match self.context.config.topology {
            Topology::Single => self.decides(connection).await,
            Topology::Cluster => {
                let reply = self.ask_for(connection, redis::cmd("CLUSTER").arg("SLOTS")).await?;
                let map =
                    SlotMap::parse(&reply, address).ok_or("it has no slots: is it part of a cluster?")?;
                self.context.topology.replace(map);
                self.decides(connection).await
            }
            Topology::Sentinel => sentinel::ask(self, connection).await,
        }
    }

    /// Checks that the node can run decisions, by a script call with no requests. A server that answers `PING` and
    /// refuses scripts cannot be used.
    async fn decides(&self, connection: &mut Connection) -> Result<(), String> {
        let timeout = self.context.config.connect_timeout;
        let asked = exchange::<DecisionRequest>(connection, Form::Any, &[], CallTerms::default());
        match tokio::time::timeout(timeout.into(), asked).await {
            Ok(reply) => reply.map(drop).map_err(|error| as_written(&error)),
            Err(_) => Err(format!("no answer within {timeout}")),
        }
    }

    async fn ask_for(&self, connection: &mut Connection, command: &Cmd) -> Result<Value, String> {
        let timeout = self.context.config.connect_timeout;
        match tokio::time::timeout(timeout.into(), connection.send(command)).await {
            Ok(reply) => reply.map_err(|error| as_written(&error)),
            Err(_) => Err(format!("no answer within {timeout}")),
        }
    }
}
