//! Whose turn a request of Envoy's is on the store.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::Registry;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::limiter::{DescriptorAsk, EnvoyDecisions, EnvoyLimiter, Loaded, RateLimitAsk};
use weir_envoy::metrics::EnvoyMetrics;
use weir_envoy::settings::EnvoyConfig;
use weir_grpc::{CurrentPeer, Peer, with_peer};
use weir_node::access::{CallerName, Rights, rights_of};
use weir_node::telemetry::Metrics;
use weir_store::{Answers, Decision, Store, StoreError, at_once};

use super::files;
use crate::support::server::config;

/// Knows the caller of each decision, and fails.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<u32>>>);

impl Store for Asked {
    const AT_ONCE: bool = true;

    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            self.0.lock().push(decision.caller);
            answers.fail(1, &StoreError::Timeout);
        }
    }
}

/// Before, it was the connection, so a caller had a turn for each of its connections.
#[test]
fn a_named_caller_has_one_turn_and_others_one_for_each_connection() {
    let config = config();
    let metrics = Metrics::register(&Registry::new(), &config.rules).unwrap();
    let asked = Asked::default();
    let reserve = config.server.answer_reserve.into();
    let decisions = EnvoyDecisions::new(Arc::new(asked.clone()), metrics.recorder(), reserve);
    let counted = EnvoyMetrics::new(1);
    let domains = EnvoyFiles::load(files(), false).unwrap().compile();
    let loaded = Loaded::new(Arc::new(domains), &counted);
    let envoy = EnvoyLimiter::new(EnvoyConfig::default(), counted.recorder(0));
    let peers = [Peer::default(), Peer::default()];
    let caller_of = |rights: Rights<'_>, peer: &Peer| {
        let mut ask = RateLimitAsk { domain: "rl", ..RateLimitAsk::new(rights, None) };
        ask.descriptors.push(DescriptorAsk { entries: 0..1, ..DescriptorAsk::default() });
        ask.entries.push(("service", "service_1"));
        let answer = || at_once(decisions.rate_limit(&envoy, &loaded, &ask));
        let _ = with_peer(CurrentPeer::from(peer), answer).expect("the store answers at once");
        asked.0.lock().pop().expect("the store was asked")
    };
    let name = |name| rights_of(None, &CallerName::one(name));
    let (billing, other) = (name("spiffe://x/billing"), name("spiffe://x/other"));
    let named = peers.each_ref().map(|peer| caller_of(Rights::known(&billing), peer));
    assert_eq!(named[0], named[1], "one caller");
    assert_ne!(named[0], caller_of(Rights::known(&other), &peers[0]));
    assert_eq!(peers.each_ref().map(|peer| caller_of(Rights::ALL, peer)), peers.each_ref().map(Peer::number));
}
