//! `weir check`, `weir explain --envoy` and `weir import-envoy`.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_config::{Config, ConfigOverrides};

use crate::support::command::{text, weir};
use crate::support::scratch;

const FILE: &str = r#"
domain: rl
descriptors:
  - key: foo
    rate_limit: { unit: minute, requests_per_unit: 2 }
    descriptors:
      - { key: baz, value: shady, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 3, name: shady } }
      - { key: bay, rate_limit: { unlimited: true } }
      - { key: bad, value: x }
  - { key: files, value: "files/*", share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 10, on_store_failure: deny } }
  - { key: plan, value: gold, rate_limit: { unit: month, requests_per_unit: 5, algorithm: gcra, burst: 2, replaces: [{ name: shady }] } }
  - { key: ip, value_cidr: 10.0.0.0/8, rate_limit: { unit: day, unit_multiplier: 2, requests_per_unit: 7, count_rejected: true } }
"#;

fn folder() -> TempDir {
    let folder = scratch::dir("envoy-tools-");
    std::fs::write(folder.path().join("rl.yaml"), FILE).unwrap();
    folder
}

/// Exit code, stdout and stderr.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let out = weir(args);
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn explain(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    run(&[&["explain", "--envoy", "--envoy-config", folder.to_str().unwrap()], args].concat())
}

#[test]
fn check_understands_a_directory_a_file_and_a_configuration_that_names_one() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let ok = |path: &str| (Some(0), format!("{path}: ok, 1 file, 1 domain, 6 limits\n"), String::new());
    assert_eq!(run(&["check", path]), ok(path));
    assert_eq!(run(&["check", "--envoy", path]), ok(path));
    let file = format!("{path}/rl.yaml");
    assert_eq!(run(&["check", "--envoy", &file]), ok(&file));
    let native = scratch::dir("native-");
    let config = native.path().join("weir.yaml");
    let config = config.to_str().unwrap();
    std::fs::write(config, format!("envoy: {{ config: {path:?} }}")).unwrap();
    let summary = format!(
        "{config}: ok, 0 strategies, 0 resource patterns, and for Envoy 1 file, 1 domain, 6 limits\n"
    );
    assert_eq!(run(&["check", config]), (Some(0), summary, String::new()));

    std::fs::write(
        folder.path().join("bad.yaml"),
        "domain: rl\ndescriptors: [{ key: k, shadow_mode: true }, {}]",
    )
    .unwrap();
    let (code, out, errors) = run(&["check", path]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let expected = format!(
        "{path}/bad.yaml: descriptor has empty key (line 2, column 46)\n\
         {path}/rl.yaml: duplicate domain 'rl' in config file (line 2, column 9)\n"
    );
    assert_eq!(errors, expected);
    assert_eq!(run(&["check", config]).0, Some(1));
    std::fs::write(
        folder.path().join("bad.yaml"),
        "domain: rl\ndescriptors: [{ key: k, shadow_mode: true }]",
    )
    .unwrap();
    let (code, out, warnings) = run(&["check", "--merge-domains", path]);
    assert_eq!((code, out), (Some(0), format!("{path}: ok, 2 files, 1 domain, 6 limits\n")));
    let expected =
        "bad.yaml: key 'shadow_mode' has no effect without rate_limit beside it (line 2, column 25)\n";
    assert_eq!(warnings, format!("warning: {path}/{expected}"));
}

#[test]
fn explain_says_which_rule_matches_level_by_level() {
    let folder = folder();
    for (args, expected) in [
        (
            &["rl", "foo=1,baz=shady"][..],
            "\
domain    \"rl\"
entry     \"foo\"=\"1\" is `foo`: no value or pattern of the key matches, and this is for any other
entry     \"baz\"=\"shady\" is `baz_shady`: this very value
rule      `rl.foo.baz_shady`, named `shady`, in shadow mode: what is over the limit passes
limit     3 per minute, by fixed_window; if the store fails, an error
counter   one for these very entries
",
        ),
        (
            &["rl", "files=files/a,b"],
            "",
        ),
        (
            &["rl", "--entry", "files=files/a,b"],
            "\
domain    \"rl\"
entry     \"files\"=\"files/a,b\" is `files_files/*`: no value is exactly this, and it is the first pattern in the file that matches
rule      `rl.files_files/*`
limit     10 per hour, by fixed_window; if the store fails, denied
counter   one for all that match `files_files/*`
",
        ),
        (
            &["rl", "plan=gold"],
            "\
domain    \"rl\"
entry     \"plan\"=\"gold\" is `plan_gold`: this very value
rule      `rl.plan_gold`
limit     5 per month, by token_bucket of 2; if the store fails, an error
counter   one for these very entries
replaces  limits of the same request that are named `shady`
",
        ),
        (
            &["rl", "foo=1,bay=2"],
            "\
domain    \"rl\"
entry     \"foo\"=\"1\" is `foo`: no value or pattern of the key matches, and this is for any other
entry     \"bay\"=\"2\" is `bay`: no value or pattern of the key matches, and this is for any other
rule      `rl.foo.bay`
limit     unlimited: nothing is charged
",
        ),
        (
            &["rl", "foo=1,bad=y,z=1"],
            "\
domain    \"rl\"
entry     \"foo\"=\"1\" is `foo`: no value or pattern of the key matches, and this is for any other
entry     \"bad\"=\"y\" matches nothing of this level (configured: `baz_shady`, `bay`, `bad_x`)
entry     \"z\"=\"1\" is not looked at
rule      none, because an entry matches nothing, and a choice is final: the answer is OK, and nothing is charged
",
        ),
        (
            &["rl", "foo=1,bad=x"],
            "\
domain    \"rl\"
entry     \"foo\"=\"1\" is `foo`: no value or pattern of the key matches, and this is for any other
entry     \"bad\"=\"x\" is `bad_x`: this very value
rule      none, because the last entry ends on a descriptor without rate_limit: the answer is OK, and nothing is charged
",
        ),
        (
            &["lr", "foo=1"],
            "\
domain    \"lr\" is not configured (configured: `rl`)
rule      none: the answer is OK, and nothing is charged
",
        ),
    ] {
        let (code, out, errors) = explain(folder.path(), args);
        if expected.is_empty() {
            assert_eq!((code, out.as_str()), (Some(1), ""));
            assert!(errors.contains("\"b\": expected KEY=VALUE"), "{errors}");
        } else {
            assert_eq!((code, out.as_str(), errors.as_str()), (Some(0), expected, ""), "{args:?}");
        }
    }
}

/// The bound of rules that nodes count on their own, with the numbers of the entry.
#[test]
fn check_and_explain_print_the_bound_of_rules() {
    let (folder, native) = (folder(), scratch::dir("native-"));
    let config = native.path().join("weir.yaml");
    let config = config.to_str().unwrap();
    let rule = "{ domain: rl, path: 'files=*', approximate: { max_over: 9, nodes: 4 } }";
    let envoy = format!("envoy: {{ config: {:?}, rules: [{rule}] }}", folder.path());
    std::fs::write(config, format!("store: {{ redis: {{ nodes: [redis://a] }} }}\n{envoy}\n")).unwrap();
    let bound = "a window of 1h admits at most 9 above the limit of 10";
    let (code, _, notes) = run(&["check", config]);
    assert_eq!(code, Some(0), "{notes}");
    assert!(notes.contains(&format!("note: rule `rl.files_files/*`, approximate: {bound}")), "{notes}");
    assert_eq!(notes.matches("approximate: ").count(), 1, "{notes}");
    let explain = |more: &[&str]| {
        let args = ["explain", "--config", config, "--envoy", "rl", "files=files/a"];
        run(&[&args[..], more].concat()).1
    };
    let line = "\nnodes     4 count on their own: a window admits at most 9 above the limit\n";
    assert!(explain(&[]).contains(line), "{}", explain(&[]));
    let json = serde_json::from_str::<Value>(&explain(&["--output", "json"])).unwrap();
    let said = &json["rule"]["approximate"];
    assert_eq!([&said["max_over"], &said["nodes"], &said["share"]], [9, 4, 3]);
}

#[test]
fn explain_says_it_to_programs_too() {
    let folder = folder();
    let (_, out, _) = explain(folder.path(), &["rl", "ip=10.1.2.3", "--output", "json"]);
    let expected = json!({
        "domain": "rl",
        "domain_found": true,
        "entries": [{ "key": "ip", "value": "10.1.2.3", "matches": "ip_cidr:10.0.0.0/8", "how": "pattern" }],
        "rule": {
            "path": "rl.ip_cidr:10.0.0.0/8", "name": "", "unlimited": false, "requests_per_unit": 7,
            "unit": "day", "unit_multiplier": 2, "algorithm": "fixed_window, counting rejected requests",
            "approximate": null, "shadow_mode": false, "quota_mode": false, "replaces": [], "shared": [false],
        },
    });
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
    let (_, out, _) = explain(folder.path(), &["rl", "nope=1", "--output", "json"]);
    let none = serde_json::from_str::<Value>(&out).unwrap();
    assert_eq!((&none["rule"], &none["entries"][0]["matches"]), (&Value::Null, &Value::Null));
    let (code, _, errors) = run(&["explain", "--envoy", "rl", "a=b"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("--envoy-config DIR"), "{errors}");
}

/// What is printed is a configuration, and it limits what the files limit.
#[test]
fn what_is_imported_is_accepted_and_means_the_same() {
    let folder = folder();
    let (code, out, lost) = run(&["import-envoy", folder.path().to_str().unwrap()]);
    assert_eq!(code, Some(0));
    let expected = "\
not expressed: rl.foo.baz_shady: shadow_mode; it denies here
not expressed: rl.foo.baz_shady: no pattern of resources finds it, because a value before the last may vary: callers name the strategy
not expressed: rl.foo.bay: unlimited; do not ask for it
not expressed: rl.plan_gold: replaces; decide in the caller which one to ask for
not expressed: rl.ip_cidr:10.0.0.0/8: no pattern of resources finds it, because it is for networks: callers name the strategy
";
    assert_eq!(lost, expected);
    let printed = out.split_once("strategies:\n").unwrap().1;
    let expected = r#"  # rl.foo
  "rl/foo":
    limits:
      - { name: minute, per: [resource], fixed_window: { limit: 2, window: 1m } }
  # rl.foo.baz_shady
  # not expressed: shadow_mode; it denies here
  # not expressed: no pattern of resources finds it, because a value before the last may vary: callers name the strategy
  # attribute foo is the value of foo
  "rl/foo/baz_shady":
    limits:
      - { name: minute, per: [foo], fixed_window: { limit: 3, window: 1m } }
  # rl.foo.bay
  # not expressed: unlimited; do not ask for it
  # rl.files_files/*
  "rl/files_files/-":
    limits:
      - { name: hour, per: [], fixed_window: { limit: 10, window: 1h } }
    on_store_failure: deny
  # rl.plan_gold
  # not expressed: replaces; decide in the caller which one to ask for
  "rl/plan_gold":
    limits:
      - { name: month, per: [], token_bucket: { rate: 5/30d, burst: 2 } }
  # rl.ip_cidr:10.0.0.0/8
  # not expressed: no pattern of resources finds it, because it is for networks: callers name the strategy
  # attribute ip is the value of ip
  "rl/ip_cidr-10.0.0.0/8":
    limits:
      - { name: day, per: [ip], fixed_window: { limit: 7, window: 2d, count_denied: true } }

resources:
  - { match: "rl/foo=*", strategy: "rl/foo" }
  - { match: "rl/files=files/*", strategy: "rl/files_files/-" }
  - { match: "rl/plan=gold", strategy: "rl/plan_gold" }
"#;
    assert_eq!(printed, expected);
    let config = Config::parse(&out, "imported", &ConfigOverrides::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.rules.resolve("rl/files=files/a", "").unwrap().strategy.name(), "rl/files_files/-");
    let file = folder.path().join("weir.yaml");
    std::fs::write(&file, &out).unwrap();
    assert_eq!(run(&["check", file.to_str().unwrap()]).0, Some(0));
}

/// Names may be anything in these files, and look the same once they are made plain.
#[test]
fn names_of_any_sort_are_imported() {
    let folder = scratch::dir("envoy-tools-");
    let long = "k".repeat(500);
    let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
    let lines =
        ["'ä'", "'ö'", "'a\"b'", "\"a\\x7f\\n\"", "Resource", "resource", "'*'", "'1'", long.as_str()];
    let mut descriptors = String::new();
    for key in lines {
        let below = format!("{{ key: x, {limit} }}, {{ key: {key}, {limit} }}");
        descriptors.push_str(&format!("  - {{ key: {key}, {limit}, descriptors: [{below}] }}\n"));
    }
    std::fs::write(folder.path().join("a.yaml"), format!("domain: 'Δ 1'\ndescriptors:\n{descriptors}"))
        .unwrap();
    let (code, out, _) = run(&["import-envoy", folder.path().to_str().unwrap()]);
    assert_eq!(code, Some(0));
    let config = Config::parse(&out, "imported", &ConfigOverrides::default());
    let config = config.unwrap_or_else(|errors| panic!("{errors}\n{out}"));
    assert_eq!(config.rules.strategies().len(), 27);
}

#[test]
fn nothing_to_import_and_mistakes_exit_1() {
    let folder = scratch::dir("envoy-tools-");
    let path = folder.path().to_str().unwrap();
    let empty = format!("warning: {path}: there are no files in it, so nothing is limited\n");
    let none = format!("{empty}error: there is no limit in {path}\n");
    assert_eq!(run(&["import-envoy", path]), (Some(1), String::new(), none));
    let none = format!("{path}: there is no configuration in this directory\n");
    assert_eq!(run(&["check", path]), (Some(1), String::new(), none));
    // A long key makes a long resource pattern, and no file may have more than 4 MiB.
    let long = "k".repeat(400);
    for file in 0..5 {
        let mut many = format!("domain: d{file}\ndescriptors:\n");
        for index in 0..8_500 {
            many.push_str(&format!(
                "  - {{ key: k{index}{long}, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}\n"
            ));
        }
        std::fs::write(folder.path().join(format!("{file}.yaml")), many).unwrap();
    }
    let (code, out, errors) = run(&["import-envoy", path]);
    let expected = format!(
        "error: that is {} bytes, and a configuration has at most 16777216; import file by file\n",
        out.len()
    );
    assert_eq!((code, errors), (Some(1), expected));
    for file in 0..5 {
        std::fs::remove_file(folder.path().join(format!("{file}.yaml"))).unwrap();
    }
    std::fs::write(folder.path().join("a.yaml"), "domain:").unwrap();
    let expected = format!("{path}/a.yaml: config file cannot have empty domain (line 1, column 1)\n");
    assert_eq!(run(&["import-envoy", path]), (Some(1), String::new(), expected));
}

#[test]
fn the_examples_are_right() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/envoy/ratelimit");
    assert_eq!(run(&["check", folder]).1, format!("{folder}: ok, 3 files, 3 domains, 16 limits\n"));
    let (code, out, _) = explain(Path::new(folder), &["example", "path=/login,remote_address=10.0.0.1"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("\nlimit     3 per minute, by fixed_window"), "{out}");
    let (code, out, _) = run(&["import-envoy", folder]);
    assert_eq!(code, Some(0));
    assert!(Config::parse(&out, "imported", &ConfigOverrides::default()).is_ok());
    for command in ["check", "explain", "import-envoy"] {
        assert!(run(&[command, "--help"]).1.starts_with("Examples:\n  weir "), "{command}");
    }
}
