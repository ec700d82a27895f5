//! The `envoy` section of the configuration, and the flags that go before it.

use std::path::Path;

use weir::features;
use weir_config::Config;
use weir_envoy::settings::{EnvoyConfig, EnvoyLayout};

fn parse(text: &str) -> Result<EnvoyConfig, String> {
    let config = Config::parse(text, "weir.yaml", &features::overrides());
    config.map(|config| EnvoyConfig::from_config(&config)).map_err(|errors| errors.to_string())
}

#[test]
fn it_says_everything_or_nothing() {
    let built_in = Config::built_in_with(&features::overrides()).unwrap();
    assert_eq!(EnvoyConfig::from_config(&built_in), EnvoyConfig::default());
    let all = "envoy: { config: /etc/limits, merge_domains: true, isolate_domains: true, max_rules: 7, overrides_in_request: false, headers: true, limit_header: X-Limit, \
               dynamic_metadata: true, near_limit_ratio: 0.25, shadow_mode: true, quota_mode: true }";
    let expected = EnvoyConfig {
        config: Some("/etc/limits".into()),
        merge_domains: true,
        isolate_domains: true,
        max_rules: 7,
        overrides_in_request: false,
        headers: true,
        limit_header: "X-Limit".to_owned(),
        remaining_header: "RateLimit-Remaining".to_owned(),
        reset_header: "RateLimit-Reset".to_owned(),
        dynamic_metadata: true,
        near_limit_ratio: 0.25,
        shadow_mode: true,
        quota_mode: true,
        count_rejected: false,
        stop_when_over: false,
        all_or_none: weir_envoy::overlay::AllOrNone::default(),
        reference_metrics: false,
        standard_headers: false,
        xds: None,
        rules: weir_envoy::overlay::EnvoyOverlay::default(),
        layout: EnvoyLayout::Paths,
    };
    // Where Envoy's files say what is limited, strategies need not.
    assert_eq!(parse(all), Ok(expected));
    assert!(parse("envoy: { headers: true }").unwrap_err().contains("no strategy is configured"));
}

/// Settings that would make a denied request charge something, or that are not meant.
#[test]
fn all_or_none_is_refused_beside_what_contradicts_it() {
    for (settings, reason) in [
        (
            "all_or_none: [{ domain: a, by: [] }], count_rejected: true",
            "envoy.all_or_none: cannot stand beside `count_rejected: true`: it charges denied hits",
        ),
        (
            "stop_when_over: true, all_or_none: [{ domain: a, by: [] }]",
            "envoy.all_or_none: cannot stand beside `stop_when_over: true`: it looks before it charges",
        ),
        (
            "quota_mode: true, all_or_none: [{ domain: a, by: [] }]",
            "envoy.all_or_none: cannot stand beside `quota_mode: true`: a request is then denied only if all",
        ),
        (
            "all_or_none: [{ domain: a, by: [x] }, { domain: a, by: [] }]",
            "envoy.all_or_none[1]: names the domain \"a\" again",
        ),
        ("all_or_none: [{ domain: a, by: [x, x] }]", "envoy.all_or_none[0].by[1]: names the key \"x\" again"),
        (
            "all_or_none: [{ domain: a, by: [a, b, c, d, e, f, g, h, i] }]",
            "envoy.all_or_none[0].by: has 9 keys: at most 8",
        ),
        (
            "all_or_none: [{ domain: a }]",
            "envoy.all_or_none[0].by: is missing; give it the keys of entries, or []",
        ),
        ("all_or_none: [{ by: [] }]", "envoy.all_or_none[0].domain: is missing; it is the domain of the"),
        ("all_or_none: yes", "envoy.all_or_none: must be a list"),
    ] {
        let error = parse(&format!("envoy: {{ config: x, {settings} }}")).unwrap_err();
        assert!(error.contains(reason), "{settings}: {error}");
    }
    // Nothing contradicts an empty list.
    assert!(parse("envoy: { config: x, count_rejected: true, all_or_none: [] }").is_ok());
}

#[test]
fn mistakes_are_reported() {
    let text = "envoy: { config: x, near_limit_ratio: 1.5, header: true, quota_mode: yes }";
    let expected = "weir.yaml:1:39: envoy.near_limit_ratio: \"1.5\" is not a part of one, from 0 to 1, such as 0.8\n\
                    weir.yaml:1:44: envoy.header: unknown key; did you mean `headers`?\n\
                    weir.yaml:1:70: envoy.quota_mode: \"yes\" is neither true nor false";
    assert_eq!(parse(text).unwrap_err(), expected);
    for wrong in ["", "a b", "a:b", "é", "x\\ny", &"x".repeat(65)] {
        let text = format!("envoy: {{ config: x, reset_header: \"{wrong}\" }}");
        assert!(parse(&text).unwrap_err().contains("envoy.reset_header: "), "{wrong}");
    }
    for wrong in ["-0.1", "nan", "1e0", "", ".5", "inf"] {
        let text = format!("envoy: {{ config: x, near_limit_ratio: '{wrong}' }}");
        assert!(parse(&text).is_err(), "{wrong}");
    }
}

#[test]
fn flags_go_before_it() {
    let settings = features::overrides().with("envoy_config", "/flag").with("envoy_merge_domains", "true");
    let config = Config::parse("envoy: { config: /file }", "weir.yaml", &settings).unwrap();
    let envoy = EnvoyConfig::from_config(&config);
    assert_eq!((envoy.config.as_deref(), envoy.merge_domains), (Some(Path::new("/flag")), true));
    let envoy = EnvoyConfig::from_config(&Config::built_in_with(&settings).unwrap());
    assert_eq!(envoy.config.as_deref(), Some(Path::new("/flag")));
    let settings = features::overrides().with("envoy_merge_domains", "maybe");
    let errors = Config::built_in_with(&settings).unwrap_err().to_string();
    let label =
        "--envoy-merge-domains or WEIR_ENVOY_MERGE_DOMAINS: envoy.merge_domains: \"maybe\" is neither";
    assert!(errors.starts_with(label), "{errors}");
}

/// A control plane that comes or goes is one change. Its secret is never shown.
#[test]
fn changes_are_named_once_and_without_secrets() {
    let changed = |before: &str, after: &str| -> Vec<String> {
        let read = |text: &str| Config::parse(text, "weir.yaml", &features::overrides()).unwrap();
        let changes = read(before).setting_changes(&read(after));
        changes.iter().map(ToString::to_string).collect()
    };
    let xds = |more: &str| format!("envoy: {{ xds: {{ server: 'a:1'{more} }} }}");
    let files = "envoy: { config: /x }";
    assert_eq!(changed(files, &xds("")), ["envoy.config: /x -> none", "envoy.xds: changed"]);
    assert_eq!(changed(&xds(""), files), ["envoy.config: none -> /x", "envoy.xds: changed"]);
    assert_eq!(
        changed(&xds(", call_headers: 'k:one'"), &xds(", call_headers: 'k:two', node_id: n")),
        ["envoy.xds.node_id: weir -> n", "envoy.xds.call_headers: changed"]
    );
    assert_eq!(changed(&xds(", tls: {}"), &xds("")), ["envoy.xds.tls: changed"]);
    let rules = "envoy: { config: /x, rules: [{ domain: d, path: k, algorithm: gcra }] }";
    assert_eq!(changed(files, rules), ["envoy.rules: changed"]);
}
