//! The memory of a process with many rules.

use super::{Ads, RateLimitDescriptor, config, leaf, start};
const RULES: usize = 50_000;

/// What the reference takes for as many.
const MOST: u64 = 268 << 20;

/// The resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// A rule as Envoy Gateway makes it: a level of each condition.
fn nested(number: usize) -> RateLimitDescriptor {
    let route = format!("httproute/shop/api-{number:05}/rule/0/match/0/shop_example_com");
    let lead = |key: &str, value: &str, below| RateLimitDescriptor {
        key: key.to_owned(),
        value: value.to_owned(),
        descriptors: vec![below],
        ..RateLimitDescriptor::default()
    };
    let requests = u32::try_from(number % 100).unwrap() + 1;
    let below = lead("masked_remote_address", "0.0.0.0/0", leaf("remote_address", "", requests));
    lead(&route, &route, lead("rule-0-match-0", "rule-0-match-0", below))
}

/// The memory after `RULES` rules of `rule` in 20 domains, and after all of them were sent once more with a change.
fn measured(what: &str, rule: impl Fn(usize) -> RateLimitDescriptor) {
    let ads = Ads::start();
    let set = |first: &dyn Fn() -> Vec<RateLimitDescriptor>| {
        let domain = |number: usize| {
            let rules = number * RULES / 20..(number + 1) * RULES / 20;
            config(&format!("domain-{number}"), first().into_iter().chain(rules.map(&rule)).collect())
        };
        (0..20).map(domain).collect::<Vec<_>>()
    };
    ads.set("1", &set(&Vec::new));
    let started = start(&ads.address.to_string(), &[("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")]);
    ads.accepted("1");
    assert_eq!(started.metric(6070, "weir_envoy_rules"), Some(RULES as f64));
    let first = resident(started.process.pid());
    ads.set("2", &set(&|| vec![leaf("new", "", 1)]));
    ads.accepted("2");
    let second = resident(started.process.pid());
    println!("{RULES} {what} rules: {} MB, after a change of all {} MB", first >> 20, second >> 20);
    assert!(first <= MOST && second <= MOST, "{first} and {second} bytes");
}

#[test]
fn many_rules_take_no_more_than_in_the_reference() {
    measured("flat", |number| leaf("api_key", &format!("tenant-{number:08}"), 5));
    measured("nested", nested);
}
