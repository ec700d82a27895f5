//! The probe: it checks the ACL rights of all capabilities in use, charges through the real script for each engine, and
//! exercises the scripts of features that have a probe. Its keys belong to this process alone.
//!
//! `PING` and an empty script succeed even where every write is refused: for lack of a right, memory or replicas, or
//! on a server that is too old. A charge writes.

use std::sync::Arc;
use std::time::Duration;

use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::slot;
use weir_core::strategy::{FailurePolicy, Limit, Scope, Strategy};
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;
use weir_units::Micros;

use super::rights::{self, FoundCapability};
use super::tags::ProcessTags;
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::decisions::{DECISIONS, DecisionRequest};
use crate::redis::probed::{Probed, probe, refused, script_of};
use crate::redis::surroundings::RandomSource;
use crate::redis::topology::{Address, ClusterView};
use crate::scripts::{ScriptSpec, Uses};

/// Long enough that a probe reads what the last one wrote, as charges do. Short enough that its keys expire within
/// a minute.
const WINDOW: Micros = Micros::from_secs(10);

/// More than the number of probes in a window, so that each is admitted and writes.
const LIMIT: u64 = 10_000;

/// State that the probes of one process share.
#[derive(Debug)]
pub(super) struct Probes {
    tags: ProcessTags,
    strategies: Vec<Arc<Strategy>>,
}

pub(super) struct NodeProbe {
    pub(super) node: Probed,
    /// Each capability in use beside decisions, and why the node lacks it, if it does; `None` if it did not say.
    pub(super) capabilities: Option<Vec<FoundCapability>>,
}

impl From<Probed> for NodeProbe {
    fn from(node: Probed) -> Self {
        Self { node, capabilities: None }
    }
}

impl Probes {
    pub(super) fn new(random: &RandomSource) -> Self {
        Self { tags: ProcessTags::new(random), strategies: strategies() }
    }

    /// Chooses hash tags for the node at `address`: in a cluster one in a slot of the node, otherwise two of different
    /// slots, because a cluster node would refuse a call with both. `None` if the node has no slot.
    pub(super) fn tags(&self, topology: &ClusterView, address: &Address) -> Option<Vec<u128>> {
        let owns = |slot| topology.owner(slot).is_ok_and(|owner| owner == *address);
        let first = self.tags.next(owns)?;
        if topology.is_cluster() {
            return Some(vec![first]);
        }
        let second = self.tags.next(|other| other != slot(first))?;
        Some(vec![first, second])
    }

    /// Looks for missing rights of all that is in use, charges with every engine of `uses`, and exercises the scripts of
    /// features. `specs` is what this node must be able to do.
    pub(super) async fn probe(
        &self,
        connection: &mut Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        tags: &[u128],
        (uses, specs): (&Uses, &[&'static ScriptSpec]),
    ) -> NodeProbe {
        let mut found = match rights(connection, context, deadlines, tags, specs).await {
            Ok(found) => found,
            Err(node) => return node.into(),
        };
        let decides = found.iter().find(|(spec, _)| spec.name == DECISIONS.name);
        let mut node = match decides.and_then(|(_, lacks)| lacks.clone()) {
            Some(reason) => Probed::Refuses(reason),
            None => self.charge(connection, context, deadlines, tags, uses).await,
        };
        if node == Probed::Decides {
            node = exercise(connection, context, deadlines, tags, (uses, &mut found)).await;
        }
        found.retain(|(spec, _)| spec.name != DECISIONS.name);
        NodeProbe { node, capabilities: Some(found) }
    }

    /// Charges with every engine in use, up to the first failure.
    async fn charge(
        &self,
        connection: &mut Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        tags: &[u128],
        uses: &Uses,
    ) -> Probed {
        let is_used = |strategy: &&Arc<Strategy>| {
            strategy.algorithms().iter().any(|limit| uses.has(limit.engine().kind()))
        };
        for strategy in self.strategies.iter().filter(is_used) {
            let request =
                |&tag: &u128| Arc::new(DecisionRequest::probe(strategy, &context.config.namespace, tag));
            let requests: Vec<_> = tags.iter().map(request).collect();
            let charge = probe(connection, context, &requests);
            let deadline = monotonic() + Duration::from(context.config.deadline);
            match deadlines.until(deadline, charge).await {
                Ok(Probed::Decides) => {}
                Ok(other) => return other,
                Err(_) => return silent(context),
            }
        }
        Probed::Decides
    }
}

/// Exercises the scripts of features whose rights are there, and enters why they fail. Where nothing was charged, only the
/// want of a right is a matter of the feature, and anything else one of the node, which is returned.
async fn exercise(
    connection: &mut Connection,
    context: &LinkContext,
    deadlines: &Deadlines,
    tags: &[u128],
    (uses, found): (&Uses, &mut [FoundCapability]),
) -> Probed {
    for (spec, lacks) in found.iter_mut().filter(|(_, lacks)| lacks.is_none()) {
        let Some(script) = spec.probe.and_then(script_of) else { continue };
        let deadline = monotonic() + Duration::from(context.config.deadline);
        let ran = deadlines.until(deadline, script.run(connection, context, tags)).await;
        match ran.unwrap_or_else(|_| silent(context)) {
            Probed::Decides => {}
            Probed::Refuses(reason) | Probed::Broken(reason)
                if uses.decides() || reason.contains("NOPERM") =>
            {
                *lacks = Some(reason);
            }
            other => return other,
        }
    }
    Probed::Decides
}

/// Looks for missing rights. An error is a finding about the node.
async fn rights(
    connection: &mut Connection,
    context: &LinkContext,
    deadlines: &Deadlines,
    tags: &[u128],
    specs: &[&'static ScriptSpec],
) -> Result<Vec<FoundCapability>, Probed> {
    let tag = tags.first().ok_or(Probed::Elsewhere)?;
    let mut key = Vec::with_capacity(48);
    context.config.namespace.prefix(*tag).write(&mut key);
    key.extend_from_slice(b"probe:rights");
    let check = rights::check(connection, specs, &key);
    match deadlines.until(monotonic() + Duration::from(context.config.deadline), check).await {
        Ok(found) => found.map_err(|error| refused(&error, context.topology.is_cluster())),
        Err(_) => Err(silent(context)),
    }
}

fn silent(context: &LinkContext) -> Probed {
    Probed::Broken(format!("no answer within {}", context.config.deadline))
}

/// Builds a strategy with one limit for each engine.
fn strategies() -> Vec<Arc<Strategy>> {
    let algorithms = [
        Algorithm::bucket(LIMIT, Rate { count: LIMIT, period: WINDOW }),
        Algorithm::fixed_window(LIMIT, WINDOW, false, false),
        Algorithm::interval_refill(LIMIT, LIMIT, WINDOW, false),
        Algorithm::sliding_log(LIMIT, WINDOW),
        Algorithm::sliding_window(LIMIT, WINDOW),
        Algorithm::bucketed_window(LIMIT, WINDOW, 2, false),
        Algorithm::warm_up(Rate { count: LIMIT, period: WINDOW }, WINDOW, 2, None),
        Algorithm::bucketed_window(LIMIT, WINDOW, 400, false),
    ];
    let strategy = |algorithm: Algorithm| {
        let limit = Limit { name: "probe".into(), scope: Scope::default(), algorithm };
        Strategy::new("probe", vec![limit], true, FailurePolicy::Error).map(Arc::new)
    };
    // All of them are valid; the test below checks it.
    algorithms.into_iter().flatten().map(strategy).filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::algorithm::EngineKind;
    use weir_core::key::Namespace;

    #[test]
    fn every_engine_has_a_probe() {
        let strategies = strategies();
        let engines = strategies.iter().map(|strategy| strategy.algorithms()[0].engine().kind());
        assert_eq!(engines.collect::<Vec<_>>(), EngineKind::ALL);
    }

    #[test]
    fn a_key_says_whose_it_is() {
        let strategies = strategies();
        let request =
            DecisionRequest::probe(&strategies[3], &Namespace::new("shop").unwrap(), 0x1234_5678_9abc_def0);
        let keys: Vec<&[u8]> = request.keys().collect();
        assert_eq!(keys, [b"shop:{vN7w}probe:log"]);
    }
}
