//! The monitor's tasks: one prober per master.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_core::key;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

use super::ask::AskError;
use super::board::{SharedData, StoreHealth};
use super::breaker_prober::keep_probing_breakers;
use super::data_marker::DataMarker;
use super::engines::EnginesInUse;
use super::evictions;
use super::fingerprint;
use super::probe::Probes;
use super::probed::Probed;
use super::remedy::ENDS_AT_SCRIPTS;
use super::rights::{self, Capability};
use super::rules::{self, RulesDigest};
use crate::redis::connect::{Connection, RedisPeer, connect};
use crate::redis::context::LinkContext;
use crate::redis::for_each_node::for_each_node;
use crate::redis::topology::Address;
use crate::redis::watch::watch;

/// Interval of probes of a healthy node.
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// Delay after a failed probe.
const PROBE_AGAIN: Duration = Duration::from_millis(500);

/// Runs the topology watcher and the probers of all current masters, until it is dropped.
pub(in crate::redis) async fn monitor(
    context: &Arc<LinkContext>,
    health: &StoreHealth,
    engines: &EnginesInUse,
) {
    let looks = watch(context, |outcome| health.looked(&outcome));
    let breakers = keep_probing_breakers(context, Some(health));
    tokio::join!(looks, breakers, keep_probing(context, health, engines));
}

/// Keeps one prober running per known master, and stops those of masters that are gone.
async fn keep_probing(context: &Arc<LinkContext>, health: &StoreHealth, engines: &EnginesInUse) {
    let probes = Arc::new(Probes::new(&context.surroundings.random));
    let start = |address: Address| {
        let prober = Prober {
            address,
            context: Arc::clone(context),
            health: health.clone(),
            engines: engines.clone(),
            probes: Arc::clone(&probes),
            deadlines: Deadlines::default(),
            tags: Vec::new(),
            compared: None,
            rules_written: None,
            informed: None,
            marker: DataMarker::default(),
        };
        prober.run()
    };
    for_each_node(&context.topology, |nodes| health.keep(nodes), start).await;
}

/// The prober of one node.
struct Prober {
    address: Address,
    context: Arc<LinkContext>,
    health: StoreHealth,
    engines: EnginesInUse,
    probes: Arc<Probes>,
    deadlines: Deadlines,
    /// Hash tags in the node's slots, by the current slot map.
    tags: Vec<u128>,
    /// The last comparison of secrets.
    compared: Option<Instant>,
    /// What this node has written of its rules.
    rules_written: Option<RulesDigest>,
    /// The last query of `INFO`.
    informed: Option<Instant>,
    marker: DataMarker,
}

impl Prober {
    async fn run(mut self) {
        let mut connection = None;
        loop {
            let probed = self.probe(&mut connection).await;
            let pause = match &probed {
                Probed::Decides => {
                    self.health.probed(&self.address, Ok(()));
                    PROBE_EVERY
                }
                // The slot map is about to change; the next probe chooses new tags.
                Probed::Elsewhere => {
                    self.tags.clear();
                    PROBE_AGAIN
                }
                Probed::Refuses(reason) | Probed::Broken(reason) => {
                    self.health.probed(&self.address, Err(reason));
                    PROBE_AGAIN
                }
            };
            let is_broken = match (&probed, &connection) {
                (Probed::Decides, Some(open)) => self.look_around(&mut open.clone()).await.is_err(),
                (Probed::Broken(_), _) => true,
                _ => false,
            };
            if is_broken {
                connection = None;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Probes over the open connection, or over a new one.
    async fn probe(&mut self, connection: &mut Option<Connection>) -> Probed {
        let context = &self.context;
        let is_new = connection.is_none();
        let open = match connection {
            Some(open) => open,
            None => match connect(&self.address, context, RedisPeer::Redis).await {
                Ok(opened) => connection.insert(opened),
                Err(error) => return Probed::Broken(error.into()),
            },
        };
        let owns =
            |tag: &u128| context.topology.owner(key::slot(*tag)).is_ok_and(|owner| owner == self.address);
        if self.tags.is_empty() || (context.topology.is_cluster() && !self.tags.iter().all(owns)) {
            self.tags = self.probes.tags(&context.topology, &self.address).unwrap_or_default();
        }
        if self.tags.is_empty() {
            return Probed::Elsewhere;
        }
        match self.probes.probe(open, context, &self.deadlines, &self.tags, self.engines.all()).await {
            // It has just answered PING or AUTH. Proxies end connections at commands that they do not know.
            Probed::Broken(reason) if is_new && open.has_ended() => {
                Probed::Broken(format!("{ENDS_AT_SCRIPTS}: {reason}"))
            }
            probed => probed,
        }
    }

    /// Runs the queries that are rarer than the probe, on a node that decides. An error means that the connection is
    /// broken.
    async fn look_around(&mut self, connection: &mut Connection) -> Result<(), ()> {
        let now = monotonic();
        let is_due = |last: Option<Instant>, every| {
            last.is_none_or(|last| now.saturating_duration_since(last) >= every)
        };
        let timeout = Duration::from(self.context.config.connect_timeout);
        let has_fingerprint =
            self.context.topology.owner(key::fingerprint_slot()).is_ok_and(|owner| owner == self.address);
        if has_fingerprint && !is_due(self.compared, fingerprint::EVERY) && self.has_new_rules() {
            self.compare_rules(connection).await?;
        }
        if has_fingerprint && is_due(self.compared, fingerprint::EVERY) {
            self.compared = Some(now);
            let own = self.health.own_fingerprint();
            let namespace = &self.context.config.namespace;
            let exchanged = fingerprint::exchange(connection, namespace, &own);
            let exchanged = tokio::time::timeout(timeout, exchanged);
            match exchanged.await.unwrap_or(Err(AskError::Failed)) {
                Ok(found) => self.health.compared(found.as_deref()),
                Err(AskError::Refused(reason)) => self.health.comparison_refused(&reason),
                Err(AskError::Failed) => return Err(()),
            }
            self.compare_rules(connection).await?;
        }
        self.look_for_shared_data(connection, timeout).await?;
        if !is_due(self.informed, evictions::EVERY) {
            return Ok(());
        }
        self.informed = Some(now);
        if self.health.may_ask_info() {
            let looked = tokio::time::timeout(timeout, evictions::look(connection));
            match looked.await.unwrap_or(Err(AskError::Failed)) {
                Ok(info) => self.health.informed(&self.address, info),
                Err(AskError::Refused(reason)) => self.health.info_refused(&self.address, &reason),
                Err(AskError::Failed) => return Err(()),
            }
        }
        if let Some(&tag) = self.tags.first() {
            let terms = (now, self.health.may_ask_info());
            let looked = self.marker.look(connection, &self.context.config.namespace, tag, terms);
            match tokio::time::timeout(timeout, looked).await {
                Ok(Ok(true)) => self.health.lost(&self.address),
                Ok(Ok(false)) => {}
                Ok(Err(_)) | Err(_) => return Err(()),
            }
        }
        Ok(())
    }

    /// True if a reload has changed this node's rules since they were compared.
    fn has_new_rules(&self) -> bool {
        self.rules_written.as_ref().is_some_and(|written| *written != *self.health.own_rules())
    }

    /// Compares this node's rules with those of other nodes. An error means that the connection is broken.
    async fn compare_rules(&mut self, connection: &mut Connection) -> Result<(), ()> {
        let own = self.health.own_rules();
        if own.strategies.is_empty() || self.health.may_not_compare_rules() {
            return Ok(());
        }
        let timeout = Duration::from(self.context.config.connect_timeout);
        let terms = (&*own, &mut self.rules_written);
        let exchanged = rules::exchange(connection, &self.context.config.namespace, terms);
        match tokio::time::timeout(timeout, exchanged).await.unwrap_or(Err(AskError::Failed)) {
            Ok(compared) => self.health.rules_compared(compared),
            Err(AskError::Refused(reason)) => self.health.rules_refused(&reason),
            Err(AskError::Failed) => return Err(()),
        }
        Ok(())
    }

    /// Asks the owners of the slots of shared data whether all rights for it are there.
    async fn look_for_shared_data(&self, connection: &mut Connection, timeout: Duration) -> Result<(), ()> {
        let context = &self.context;
        let name = format!("probe:{:x}", self.tags.first().copied().unwrap_or_default());
        let namespace = &context.config.namespace;
        for (capability, of, slot, key) in [
            (Capability::Usage, SharedData::Usage, key::usage_slot(), namespace.usage_key(&name)),
            (Capability::Control, SharedData::Control, key::control_slot(), namespace.control_key(&name)),
        ] {
            let used = self.engines.all();
            let is_here = context.topology.owner(slot).is_ok_and(|owner| owner == self.address);
            if !is_here || !capability.is_in(used) {
                continue;
            }
            let missing = rights::missing(connection, capability, used, key.as_bytes());
            match tokio::time::timeout(timeout, missing).await {
                Ok(Ok(missing)) => self.health.shared_looked(of, missing.as_deref()),
                Ok(Err(_)) | Err(_) => return Err(()),
            }
        }
        Ok(())
    }
}
