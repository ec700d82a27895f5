//! What is accepted, what is refused, and how often.

use std::time::Instant;

use prost::Message as _;
use prost_types::Any;

use super::{Ads, TYPE_URL, config, leaf, start};
use crate::support::{SOON, eventually, scratch};

const FORCE: (&str, &str) = ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true");

#[test]
fn each_set_is_accepted_and_served() {
    let ads = Ads::start();
    let a_and_b = [config("d", vec![leaf("k", "v", 2)]), config("other", vec![leaf("x", "", 1)])];
    ads.set("1", &a_and_b);
    let headers = ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "authorization:Bearer me,X-Team:a");
    let metadata = ("CONFIG_GRPC_XDS_NODE_METADATA", "zone=a,rack=2");
    let started = start(&ads.address.to_string(), &[FORCE, headers, metadata]);
    ads.accepted("1");
    let requests = ads.requests();
    let node = requests[0].node.clone().unwrap();
    assert_eq!(node.id, "envoy-ai-gateway-ratelimit");
    assert_eq!(node.metadata.unwrap().fields.len(), 2);
    let first = (&*requests[0].version_info, &*requests[0].response_nonce, &*requests[0].type_url);
    assert_eq!((first, requests[0].resource_names.len()), (("", "", TYPE_URL), 0));
    assert_eq!((&*requests[1].version_info, &*requests[1].response_nonce), ("1", "n0"));
    assert_eq!(ads.headers()[0].get("authorization").unwrap(), "Bearer me");
    assert_eq!(ads.headers()[0].get("x-team").unwrap(), "a");
    let asked = [(); 3].map(|()| started.json("d", &[("k", "v")]));
    assert_eq!(asked, ["OK 2/DAY", "OK 2/DAY", "OVER_LIMIT 2/DAY"]);
    assert_eq!(started.json("other", &[("x", "1")]), "OK 1/DAY");
    assert_eq!(started.metric(6070, "weir_xds_connected"), Some(1.0));
    assert_eq!(started.metric(6070, "weir_xds_resources"), Some(2.0));
    assert_eq!(started.metric(6070, "weir_xds_domains"), Some(2.0));
    assert!(started.metric(6070, "weir_xds_last_change_timestamp_seconds").unwrap() > 1e9);

    // No resource is a set, too: it unloads everything.
    ads.set("2", &[]);
    ads.accepted("2");
    assert_eq!(started.json("d", &[("k", "v")]), "OK without limit");
    assert_eq!(started.metric(6070, "weir_xds_acks_total"), Some(2.0));

    // What was used is still used when a domain comes back.
    ads.set("3", &a_and_b[..1]);
    ads.accepted("3");
    assert_eq!(started.json("d", &[("k", "v")]), "OVER_LIMIT 2/DAY");
    assert_eq!(started.json("other", &[("x", "1")]), "OK without limit");
    let (code, log) = started.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// A server that restarts numbers its versions from 1 again, and publishes one gateway after the other.
#[test]
fn a_restarted_server_may_send_another_set_of_the_same_version() {
    let ads = Ads::start();
    let both = [config("d", vec![leaf("k", "v", 1)]), config("b", vec![leaf("k", "v", 1)])];
    ads.set("1", &both);
    let started = start(&ads.address.to_string(), &[FORCE]);
    ads.accepted("1");
    assert_eq!(started.json("b", &[("k", "v")]), "OK 1/DAY");
    let address = ads.address;
    drop(ads);
    eventually(SOON, "it is noticed", || started.metric(6070, "weir_xds_connected") == Some(0.0));
    assert_eq!(started.json("b", &[("k", "v")]), "OVER_LIMIT 1/DAY", "the last set goes on");
    let ads = super::Ads::start_at(address);
    ads.set("1", &[config("d", vec![leaf("k", "v", 7)])]);
    ads.accepted("1");
    assert_eq!(ads.requests()[0].version_info, "", "a stream begins without a version");
    assert_eq!(started.json("d", &[("k", "v")]), "OK 7/DAY");
    assert_eq!(started.json("b", &[("k", "v")]), "OK without limit");
    ads.set("2", &both);
    ads.accepted("2");
    assert_eq!(started.json("b", &[("k", "v")]), "OVER_LIMIT 1/DAY", "it was used before");
}

/// The server answers a refusal at once with the same set, for ever.
#[test]
fn a_bad_set_is_refused_without_a_loop() {
    let ads = Ads::start();
    ads.set("1", &[config("d", vec![leaf("k", "v", 1)]), config("b", vec![leaf("k", "v", 1)])]);
    let started = start(&ads.address.to_string(), &[FORCE]);
    ads.accepted("1");
    let bad = config("b", vec![leaf("k", "v", 5), leaf("k", "v", 6)]);
    ads.set("2", &[config("d", vec![leaf("k", "v", 9)]), bad, config("new", vec![leaf("", "v", 1)])]);
    eventually(SOON, "it is refused twice", || ads.refusals().len() >= 2);
    let expected = "name-b: duplicate descriptor composite key 'b.k_v'\nname-new: descriptor has empty key";
    assert!(ads.refusals().iter().all(|text| text == expected), "{:?}", ads.refusals());
    let nacks = ads.requests().into_iter().filter(|one| one.error_detail.is_some());
    let named: Vec<String> = nacks.map(|one| one.version_info).collect();
    assert_eq!(named, ["1", "2"], "the version that was accepted last, then the one that is refused");
    assert_eq!(started.json("d", &[("k", "v")]), "OK 9/DAY", "the good domain changes");
    assert_eq!(started.json("b", &[("k", "v")]), "OK 1/DAY", "the bad one goes on");
    let refused = started.json("new", &[("k", "v")]);
    assert!(refused.contains("no rate limit configuration loaded"), "{refused}");
    assert_eq!(started.metric(6070, "weir_envoy_config_loads_total{result=\"error\"}"), Some(1.0));
    assert_eq!(started.metric(6070, "weir_envoy_domain_refused{domain=\"b\"}"), Some(1.0));
    assert_eq!(started.metric(6070, "weir_xds_nacks_total"), Some(2.0));
    let corrected = Instant::now();
    ads.set("3", &[config("b", vec![leaf("k", "v", 5)])]);
    eventually(SOON, "the correction is accepted", || {
        ads.requests().iter().any(|one| one.version_info == "3" && one.error_detail.is_none())
    });
    println!("a correction is accepted {:?} after it was sent", corrected.elapsed());
    assert_eq!(ads.refusals().len(), 2, "it did not wait for a refusal");
    assert_eq!(started.json("b", &[("k", "v")]), "OK 5/DAY");
    assert_eq!(started.metric(6070, "weir_envoy_domain_refused{domain=\"b\"}"), None);
    let (_, log) = started.stop();
    assert_eq!(log.matches("duplicate descriptor composite key").count(), 1, "it is logged once: {log}");
}

/// A domain beyond the bound is refused by name, whatever the order, and what changes in others comes at once.
#[test]
fn a_domain_with_too_many_rules_is_named() {
    let folder = scratch::dir("max-rules-");
    let file = folder.path().join("weir.yaml");
    std::fs::write(&file, "envoy: { max_rules: 5 }\n").unwrap();
    let ads = Ads::start();
    let leaves = |count: u32| (0..count).map(|index| leaf("k", &index.to_string(), 7)).collect::<Vec<_>>();
    let inner = super::RateLimitDescriptor { rate_limit: None, descriptors: leaves(3), ..leaf("x", "", 1) };
    let all = [config("c", leaves(3)), config("b", vec![inner]), config("a", leaves(2))];
    ads.set("1", &all);
    let own = ("WEIR_CONFIG", file.to_str().unwrap());
    let started = start(&ads.address.to_string(), &[own, FORCE]);
    let expected =
        "name-c: with domain 'c' there are more than 5 rules in all domains: raise `envoy.max_rules`";
    eventually(SOON, "it is refused twice", || ads.refusals().len() == 2);
    assert!(ads.refusals().iter().all(|text| text == expected), "{:?}", ads.refusals());
    assert_eq!(started.json("a", &[("k", "1")]), "OK 7/DAY");
    assert_eq!(started.json("b", &[("x", ""), ("k", "1")]), "OK 7/DAY");
    let [c, b, _] = all;
    let changed = Instant::now();
    ads.set("2", &[b, config("a", vec![leaf("k", "1", 9)]), c]);
    eventually(SOON, "it is served", || started.json("a", &[("k", "1")]) == "OK 9/DAY");
    println!("a good change beside a domain that is refused is served after {:?}", changed.elapsed());
    assert_eq!(started.metric(6070, "weir_envoy_domain_refused{domain=\"c\"}"), Some(2.0));
    eventually(SOON, "it is refused again", || ads.refusals().len() == 4);
    assert!(ads.refusals().iter().all(|text| text == expected), "{:?}", ads.refusals());
    let (_, log) = started.stop();
    assert_eq!(
        log.matches("with domain 'c' there are more than 5 rules").count(),
        2,
        "once for each set: {log}"
    );
}

#[test]
fn rubbish_changes_nothing() {
    let ads = Ads::start();
    ads.set("1", &[config("d", vec![leaf("k", "v", 3)])]);
    let started = start(&ads.address.to_string(), &[FORCE]);
    ads.accepted("1");
    // A type that nobody asked for ends the stream.
    ads.send("2", "type.googleapis.com/envoy.config.cluster.v3.Cluster", Vec::new());
    eventually(SOON, "it asks again", || ads.headers().len() >= 3);
    let rubbish = |value: Vec<u8>| Any { type_url: TYPE_URL.to_owned(), value };
    ads.send("3", TYPE_URL, vec![rubbish(vec![0xff; 9])]);
    eventually(SOON, "it is refused", || !ads.refusals().is_empty());
    assert!(ads.refusals()[0].starts_with("a resource that cannot be decoded: "), "{:?}", ads.refusals());
    assert_eq!(started.json("d", &[("k", "v")]), "OK 3/DAY");
    let mut nested = leaf("k", "", 1);
    for _ in 0..200 {
        nested = super::RateLimitDescriptor { descriptors: vec![nested], ..leaf("k", "", 1) };
    }
    let before = ads.refusals().len();
    ads.send("4", TYPE_URL, vec![rubbish(config("deep", vec![nested]).encode_to_vec())]);
    eventually(SOON, "it is refused too", || ads.refusals().len() > before + 1);
    assert_eq!(started.json("d", &[("k", "v")]), "OK 3/DAY");
    assert_eq!(started.stop().0, Some(0));
}

/// Go's servers take 4 MiB by default; a gateway with many routes needs more. And names may be long.
#[test]
fn sets_may_be_large_and_names_long() {
    let ads = Ads::start();
    let name = "n".repeat(4096);
    let mut many: Vec<_> =
        (0..50_000).map(|number| leaf(&format!("{}{number}", "k".repeat(100)), "", 1)).collect();
    many.push(leaf(&name, &name, 8));
    ads.set("1", &[config(&name, many)]);
    let started = start(&ads.address.to_string(), &[FORCE]);
    ads.accepted("1");
    assert_eq!(started.json(&name, &[(&name, &name)]), "OK 8/DAY");
    let long = "n".repeat(4097);
    ads.set("2", &[config("d", vec![leaf(&long, "", 8)])]);
    eventually(SOON, "it is refused", || !ads.refusals().is_empty());
    assert!(ads.refusals()[0].contains("is 4097 bytes long: at most 4096"), "{:?}", ads.refusals());
}
