//! `envoy.rules` on limits of a control plane.

use super::{Ads, config, leaf, start};
use crate::support::{RedisServer, SOON, eventually, scratch};

#[test]
fn an_entry_changes_rules_of_a_control_plane() {
    let folder = scratch::dir("overlay-");
    let file = folder.path().join("weir.yaml");
    let rules = "envoy: { rules: [\n\
                 { domain: d, path: 'k=*', algorithm: token_bucket, burst: 4 },\n\
                 { domain: later, path: x, algorithm: sliding_window, count_rejected: false } ] }\n";
    std::fs::write(&file, rules).unwrap();
    let ads = Ads::start();
    ads.set("1", &[config("d", vec![leaf("k", "v", 2)])]);
    let own = ("WEIR_CONFIG", file.to_str().unwrap());
    let started = start(&ads.address.to_string(), &[own, ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")]);
    ads.accepted("1");
    let asked = [(); 5].map(|()| started.json("d", &[("k", "v")]));
    assert_eq!(asked, ["OK 2/DAY", "OK 2/DAY", "OK 2/DAY", "OK 2/DAY", "OVER_LIMIT 2/DAY"]);
    assert_eq!(started.metric(6070, "weir_envoy_overlay_unmatched"), Some(1.0));

    // What an entry does not fit is refused, and named.
    let mut unlimited = leaf("x", "", 1);
    unlimited.rate_limit.as_mut().unwrap().unlimited = true;
    unlimited.rate_limit.as_mut().unwrap().unit = 0;
    ads.set("2", &[config("d", vec![leaf("k", "v", 3)]), config("later", vec![unlimited])]);
    eventually(SOON, "it is refused", || !ads.refusals().is_empty());
    let expected = "envoy.rules: domain \"later\", rule `x`: it is unlimited, so there is nothing to count";
    assert_eq!(ads.refusals()[0], expected);
    assert_eq!(started.metric(6070, "weir_envoy_overlay_unmatched"), Some(0.0));
    let (_, log) = started.stop();
    assert_eq!(log.matches("of the domain \"later\" matches no rule").count(), 1, "{log}");
}

/// The overlay follows its file while it serves, also where the control plane sends nothing more.
#[test]
fn an_overlay_that_changes_is_laid_on_the_last_set() {
    let folder = scratch::dir("overlay-");
    let file = folder.path().join("weir.yaml");
    let write = |entry: &str| std::fs::write(&file, format!("envoy: {{ rules: [{entry}] }}\n")).unwrap();
    write("");
    let ads = Ads::start();
    ads.set("1", &[config("d", vec![leaf("k", "", 2)])]);
    let own = ("WEIR_CONFIG", file.to_str().unwrap());
    let started = start(&ads.address.to_string(), &[own, ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")]);
    ads.accepted("1");
    let passed =
        |value: &str| (0..20).take_while(|_| started.json("d", &[("k", value)]).starts_with("OK")).count();
    assert_eq!(passed("before"), 2);
    write("{ domain: d, path: k, algorithm: token_bucket, burst: 5 }");
    let mut tries = 0;
    eventually(SOON, "a burst of 5", || {
        tries += 1;
        passed(&format!("bucket-{tries}")) == 5
    });
    // It does not fit: the domain goes on as it was, and the control plane is not told of what it cannot change.
    write("{ domain: d, path: k, algorithm: token_bucket, count_rejected: true }");
    let refused = || started.metric(6070, "weir_envoy_config_loads_total{result=\"error\"}") >= Some(1.0);
    eventually(SOON, "it is refused", refused);
    assert_eq!(passed("refused"), 5);
    assert!(ads.refusals().is_empty());
    // A set that is refused because of the overlay is taken when that is corrected, though it is the same set.
    ads.set("2", &[config("d", vec![leaf("k", "", 3)])]);
    eventually(SOON, "it is refused", || !ads.refusals().is_empty());
    write("");
    ads.accepted("2");
    let mut tries = 0;
    eventually(SOON, "3 a day", || {
        tries += 1;
        passed(&format!("again-{tries}")) == 3
    });
    let (_, log) = started.stop();
    assert!(!log.contains("needs a restart"), "{log}");
}

/// Nodes count rules of a control plane on their own, also those of its next sets.
#[test]
fn nodes_count_rules_of_a_control_plane() {
    let (folder, redis) = (scratch::dir("overlay-"), RedisServer::start());
    let file = folder.path().join("weir.yaml");
    let rule = "{ domain: d, path: 'k=*', approximate: { max_over: 4, nodes: 2, sync: 10s } }";
    std::fs::write(&file, format!("envoy: {{ rules: [{rule}] }}\n")).unwrap();
    let ads = Ads::start();
    ads.set("1", &[config("other", vec![leaf("k", "v", 10)])]);
    let own = [
        ("WEIR_CONFIG", file.to_str().unwrap()),
        ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
        ("WEIR_STORE", &redis.url()),
    ];
    let started = start(&ads.address.to_string(), &own);
    ads.accepted("1");
    let place = || started.metric(6070, "weir_approximate_has_place{strategy=\"envoy\"}");
    assert_eq!(place(), None);
    ads.set("2", &[config("d", vec![leaf("k", "v", 10)])]);
    ads.accepted("2");
    eventually(SOON, "it has a place", || place() == Some(1.0));
    let passed =
        |value: &str| (0..30).take_while(|_| started.json("d", &[("k", value)]).starts_with("OK")).count();
    assert_eq!(passed("v"), 10, "one node alone admits no more than the limit");
    let by_node = || started.metric(6070, "weir_approximate_decisions_total{by=\"node\"}").unwrap();
    assert!(by_node() > 0.0);

    // What the entry does not fit is refused, and named. The limits before go on.
    ads.set("3", &[config("d", vec![leaf("k", "v", 4)])]);
    eventually(SOON, "it is refused", || !ads.refusals().is_empty());
    let refusal = &ads.refusals()[0];
    assert!(
        refusal.starts_with("envoy.rules: domain \"d\", rule `k=v`: approximate: each node may"),
        "{refusal}"
    );
    assert!(refusal.ends_with("which must be less than the limit of 4"), "{refusal}");
    assert_eq!(passed("v"), 0);

    // Another limit keeps the counters and the place.
    ads.set("4", &[config("d", vec![leaf("k", "v", 13)])]);
    ads.accepted("4");
    let mut more = 0;
    eventually(SOON, "the rest of 13", || {
        more += passed("v");
        more == 3
    });
    assert_eq!(place(), Some(1.0));
    ads.set("5", &[config("other", vec![leaf("k", "v", 10)])]);
    ads.accepted("5");
    eventually(SOON, "it gives the place back", || place().is_none());
    started.stop();
}
