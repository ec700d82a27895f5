//! The cases, on every store.
//!
//! Of the reference's 57 cases, those that are not here, and why:
//!
//! * 13: a switch by which one descriptor that is over keeps the others from being charged. There is none.
//! * 39, 40, 42: the store is gone, no files, health: [`super::status`], because they are about the service.
//! * 41: the reference's HTTP port: `ratelimit/pages.rs` of the operators' tests.
//! * 43, 44, 45, 56: refused files: `envoy_config`, because no request is needed to see it.
//! * 46, 57: files that change: `envoy_config/reload.rs`, and [`super::status`] for the metric.
//! * 49: the reference's cache of what is over. Ours (`crates/store/src/denials.rs`) has tests of its own.
//! * 52: both global switches at once: in [`super::cases::BOTH_MODES`].

use weir_config::{Config, StoreConfig};
use weir_envoy::settings::{EnvoyConfig, XdsConfig};

use super::cases::{
    ALL_IN_SHADOW, ALL_OR_NONE, BOTH_MODES, COUNT_REJECTED, HEADERS, NO_OVERRIDES, OURS, QUOTA_MODE,
    REFERENCE, SHADOW_MODE, SHARED, STOP_WHEN_OVER,
};
use super::play::{Case, play};
use super::{cluster, files, memory, redis};
use crate::support::ads::Ads;
use crate::support::as_messages::as_messages;

#[tokio::test]
async fn on_memory() {
    every_case(memory).await;
}

#[tokio::test]
async fn on_redis() {
    every_case(redis).await;
}

#[tokio::test]
async fn on_a_cluster() {
    every_case(cluster).await;
}

/// The limits of the files, sent by a control plane.
///
/// Left out are the cases of `share_threshold`, which the protocol has no field for, and [`OURS`], which are about what
/// Weir's own keys say.
#[tokio::test]
async fn over_xds() {
    let ads = tokio::task::spawn_blocking(Ads::start).await.unwrap();
    let mut texts: Vec<String> = std::fs::read_dir(files())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    ads.set("1", &as_messages(texts.iter().map(String::as_str)));
    let xds = XdsConfig { server: ads.address.to_string(), ..XdsConfig::default() };
    let default = || EnvoyConfig { xds: Some(xds.clone()), ..EnvoyConfig::default() };
    let is_sent = |case: &&Case| !["29", SHARED].contains(&case.name);
    let mut first = 0;
    for (cases, envoy) in [
        (REFERENCE, default()),
        (HEADERS, EnvoyConfig { headers: true, dynamic_metadata: true, ..default() }),
        (SHADOW_MODE, EnvoyConfig { shadow_mode: true, ..default() }),
        (QUOTA_MODE, EnvoyConfig { quota_mode: true, ..default() }),
        (BOTH_MODES, EnvoyConfig { quota_mode: true, shadow_mode: true, ..default() }),
        (NO_OVERRIDES, EnvoyConfig { overrides_in_request: false, ..default() }),
    ] {
        let cases: Vec<Case> = cases.iter().filter(is_sent).copied().collect();
        let wrong = play(&cases, first, memory(), envoy).await;
        assert!(wrong.is_empty(), "{} lines went otherwise:\n{}", wrong.len(), wrong.join("\n"));
        first += cases.len();
    }
}

async fn every_case(store: fn() -> StoreConfig) {
    let default = EnvoyConfig::default;
    let all = [
        (REFERENCE, default()),
        (OURS, default()),
        (HEADERS, EnvoyConfig { headers: true, dynamic_metadata: true, ..default() }),
        (SHADOW_MODE, EnvoyConfig { shadow_mode: true, ..default() }),
        (QUOTA_MODE, EnvoyConfig { quota_mode: true, ..default() }),
        (BOTH_MODES, EnvoyConfig { quota_mode: true, shadow_mode: true, ..default() }),
        (NO_OVERRIDES, EnvoyConfig { overrides_in_request: false, ..default() }),
        (COUNT_REJECTED, counting()),
        (ALL_OR_NONE, all_or_none()),
        (ALL_IN_SHADOW, EnvoyConfig { shadow_mode: true, ..all_or_none() }),
        (STOP_WHEN_OVER, EnvoyConfig { stop_when_over: true, ..default() }),
        // What the reference's own tests expect holds in its own way of counting too.
        (REFERENCE, counting()),
    ];
    let mut first = 0;
    for (cases, envoy) in all {
        let wrong = play(cases, first, store(), envoy).await;
        assert!(wrong.is_empty(), "{} lines went otherwise:\n{}", wrong.len(), wrong.join("\n"));
        first += cases.len();
    }
}

/// The settings of `count_rejected: true`.
fn counting() -> EnvoyConfig {
    configured("count_rejected: true")
}

/// Three domains that are charged together. The files have rules that `envoy.rules` would refuse there.
pub(super) fn all_or_none() -> EnvoyConfig {
    let together = "[{ domain: another, by: [] }, { domain: rl, by: [] }, { domain: basic, by: [user] }]";
    let envoy = configured(&format!("all_or_none: {together}"));
    EnvoyConfig { rules: weir_envoy::overlay::EnvoyOverlay::default(), ..envoy }
}

/// The section with these settings.
fn configured(settings: &str) -> EnvoyConfig {
    let text = format!("envoy: {{ config: /nowhere, {settings} }}");
    let config = Config::parse(&text, "weir.yaml", &weir::features::overrides()).unwrap();
    EnvoyConfig { config: None, ..EnvoyConfig::from_config(&config) }
}

/// Every kind of line can go otherwise.
#[tokio::test]
async fn what_goes_otherwise_is_noticed() {
    let lines = "another [key2=v] => OK | OK 20 of 20/MINUTE 60s
         another [key2=v] => OK | OK 18 of 20/MINUTE 60s
         after 1s
         another [key2=v] => OK | OK 17 of 20/MINUTE 60s
         metric weir_envoy_hits_total{domain=\"another\",rule=\"key2\"} +4
         metric weir_envoy_hits_total{domain=\"another\",rule=\"key2\"} +3
         headers 3
         header RateLimit-Limit 20
         metadata {}";
    let wrong = play(&[Case { name: "wrong", lines }], 0, memory(), EnvoyConfig::default()).await;
    assert_eq!(wrong.len(), 6, "{}", wrong.join("\n"));
}
