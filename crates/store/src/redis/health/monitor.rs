//! The monitor's tasks: one prober per master.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_core::key;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

use super::ask::AskError;
use super::board::StoreHealth;
use super::breaker_prober::keep_probing_breakers;
use super::data_marker::DataMarker;
use super::evictions;
use super::fingerprint;
use super::probe::{NodeProbe, Probes};
use super::remedy::ENDS_AT_SCRIPTS;
use super::rights::specs;
use super::rules::{self, COMPARISON};
use crate::backend::RulesDigest;
use crate::redis::connect::{Connection, RedisPeer, connect};
use crate::redis::context::LinkContext;
use crate::redis::for_each_node::for_each_node;
use crate::redis::probed::Probed;
use crate::redis::topology::Address;
use crate::redis::watch::watch;
use crate::scripts::{ScriptSpec, Uses, UsesInForce};

const PROBE_EVERY: Duration = Duration::from_secs(2);

/// Delay after a failed probe.
const PROBE_AGAIN: Duration = Duration::from_millis(500);

/// Runs the topology watcher and the probers of all current masters, until it is dropped.
pub(in crate::redis) async fn monitor(
    context: &Arc<LinkContext>,
    health: &StoreHealth,
    engines: &UsesInForce,
) {
    let looks = watch(context, |outcome| health.looked(&outcome));
    let breakers = keep_probing_breakers(context, Some(health));
    tokio::join!(looks, breakers, keep_probing(context, health, engines));
}

/// Keeps one prober running per known master, and stops those of masters that are gone.
async fn keep_probing(context: &Arc<LinkContext>, health: &StoreHealth, engines: &UsesInForce) {
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
            lacks_comparison: false,
            informed: None,
            marker: DataMarker::default(),
        };
        prober.run()
    };
    for_each_node(&context.topology, |nodes| health.keep(nodes), start).await;
}

struct Prober {
    address: Address,
    context: Arc<LinkContext>,
    health: StoreHealth,
    engines: UsesInForce,
    probes: Arc<Probes>,
    deadlines: Deadlines,
    /// Hash tags in the node's slots, by the current slot map.
    tags: Vec<u128>,
    /// The last comparison of secrets.
    compared: Option<Instant>,
    rules_written: Option<RulesDigest>,
    /// True if a right was missing when rules were to be compared last.
    lacks_comparison: bool,
    /// The last query of `INFO`.
    informed: Option<Instant>,
    marker: DataMarker,
}

impl Prober {
    async fn run(mut self) {
        let mut connection = None;
        loop {
            let NodeProbe { node: probed, capabilities } = self.probe(&mut connection).await;
            let lacks_something = capabilities.iter().flatten().any(|(_, lacks)| lacks.is_some());
            if let Some(found) = capabilities {
                self.health.found_capabilities(&self.address, found);
            }
            let pause = match &probed {
                Probed::Decides => {
                    self.health.probed(&self.address, Ok(()));
                    if lacks_something { PROBE_AGAIN } else { PROBE_EVERY }
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
    async fn probe(&mut self, connection: &mut Option<Connection>) -> NodeProbe {
        let context = &self.context;
        let is_new = connection.is_none();
        let open = match connection {
            Some(open) => open,
            None => match connect(&self.address, context, RedisPeer::Redis).await {
                Ok(opened) => connection.insert(opened),
                Err(error) => return Probed::Broken(error.into()).into(),
            },
        };
        let owns =
            |tag: &u128| context.topology.owner(key::slot(*tag)).is_ok_and(|owner| owner == self.address);
        if self.tags.is_empty() || (context.topology.is_cluster() && !self.tags.iter().all(owns)) {
            self.tags = self.probes.tags(&context.topology, &self.address).unwrap_or_default();
        }
        if self.tags.is_empty() {
            return Probed::Elsewhere.into();
        }
        let uses = self.engines.all();
        let specs = self.needed_here(&uses);
        self.health.set_uses(&uses);
        let mut probed = self.probes.probe(open, context, &self.deadlines, &self.tags, (&uses, &specs)).await;
        // It has just answered PING or AUTH. Proxies end connections at commands that they do not know.
        if let Probed::Broken(reason) = &mut probed.node
            && is_new
            && open.has_ended()
        {
            *reason = format!("{ENDS_AT_SCRIPTS}: {reason}");
        }
        probed
    }

    /// Returns the capabilities that this node needs: data in one slot is asked for at its owner.
    fn needed_here(&self, uses: &Uses) -> Vec<&'static ScriptSpec> {
        let compares = !self.health.own_rules().strategies.is_empty();
        let topology = &self.context.topology;
        let is_here = |spec: &&ScriptSpec| {
            spec.slot.is_none_or(|slot| topology.owner(slot()).is_ok_and(|owner| owner == self.address))
        };
        specs(uses).chain(compares.then_some(&COMPARISON)).filter(is_here).collect()
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
        let may_again = self.lacks_comparison && !self.health.may_not_compare_rules(&self.address);
        let is_early = self.has_new_rules() || may_again;
        if has_fingerprint && !is_due(self.compared, fingerprint::EVERY) && is_early {
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
        if !is_due(self.informed, evictions::EVERY) {
            return Ok(());
        }
        self.informed = Some(now);
        if self.health.may_ask_info() {
            let polled = tokio::time::timeout(timeout, evictions::poll(connection));
            match polled.await.unwrap_or(Err(AskError::Failed)) {
                Ok(info) => self.health.informed(&self.address, info),
                Err(AskError::Refused(reason)) => self.health.info_refused(&self.address, &reason),
                Err(AskError::Failed) => return Err(()),
            }
        }
        if let Some(&tag) = self.tags.first() {
            let terms = (now, self.health.may_ask_info());
            let polled = self.marker.poll(connection, &self.context.config.namespace, tag, terms);
            match tokio::time::timeout(timeout, polled).await {
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
        self.lacks_comparison = self.health.may_not_compare_rules(&self.address);
        if own.strategies.is_empty() || self.lacks_comparison {
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
}
