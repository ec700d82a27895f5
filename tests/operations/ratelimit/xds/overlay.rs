//! `envoy.rules` on limits of a control plane.

use super::{Ads, config, leaf, start};
use crate::support::{SOON, eventually, scratch};

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
