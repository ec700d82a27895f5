//! `weir check`: every mistake in one run, and nothing that is none.

mod diff;
mod remarks;

use std::fmt::Write as _;
use std::path::Path;

use tempfile::TempDir;
use weir_config::{Config, MAX_FILE};

use crate::support::command::{Serve, text, weir};

const GOOD: &str =
    "strategies: { a: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/s } }] } }\n";

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = directory.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    directory
}

fn shown(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

/// Exit code, stdout and stderr.
fn check(path: &str) -> (Option<i32>, String, String) {
    let out = weir(&["check", path]);
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

/// The mistakes of a configuration, without the name of its file.
fn mistakes(text: &str) -> Vec<String> {
    let errors = Config::parse(text, "weir.yaml", &weir::features::overrides()).unwrap_err().to_string();
    errors.lines().map(|line| line.strip_prefix("weir.yaml:").unwrap().to_owned()).collect()
}

#[test]
fn the_overrides_of_a_faulty_strategy_are_checked() {
    let found = mistakes(
        "\
strategies:
  faulty:
    limits:
      - { name: all, per: [resource], token_bucket: { rate: 0/s } }
      - { name: each, per: [resource, consumer], token_bucket: { rate: 1/s } }
overrides:
  - { consumer: a, strategy: faulty, limits: { every: { token_bucket: { rate: 1/s } } } }
  - { consumer: b, strategy: faulty, limits: { all: { token_bucket: { rate: 1/s } } } }
  - { consumer: c, strategy: faulty, limits: { each: { token_bucket: { rate: 0/s } } } }
",
    );
    let starts = [
        "4:61: strategies.faulty.limits[0].token_bucket.rate: ",
        "7:48: overrides[0].limits.every: strategy `faulty` has no limit of this name; it has `all`, `each`",
        "8:48: overrides[1].limits.all: limit `all` of strategy `faulty` counts by [resource], ",
        "9:78: overrides[2].limits.each.token_bucket.rate: ",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (line, start) in found.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
}

/// Unknown parts of a faulty strategy make no further mistakes.
#[test]
fn what_a_faulty_strategy_may_have_is_no_mistake() {
    let found = mistakes(
        "\
strategies:
  nameless:
    limits:
      - { per: [resource, consumer], token_bucket: { rate: 1/s } }
  scopeless:
    limits:
      - { name: each, token_bucket: { rate: 1/s } }
overrides:
  - { consumer: a, strategy: nameless, limits: { each: { token_bucket: { rate: 1/s } } } }
  - { consumer: a, strategy: scopeless, limits: { each: { token_bucket: { rate: 1/s } } } }
",
    );
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn too_many_limits_hide_no_other_mistake() {
    let store = "store: { redis: { topology: cluster, nodes: [\"redis://a\"] } }\n";
    let mut text = format!("{store}strategies:\n  many:\n    limits:\n");
    for index in 0..9 {
        let scope = if index % 2 == 0 { "resource" } else { "consumer" };
        writeln!(text, "      - {{ name: l{index}, per: [{scope}], uniform: {{ interval: 1s }} }}").unwrap();
    }
    let found = mistakes(&text);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("have no field in common"), "{found:#?}");
    assert!(found[1].contains("at most 8 limits"), "{found:#?}");
}

#[test]
fn mistakes_of_the_file_and_of_envoys_files_are_reported_together() {
    let config = "envoy: { config: ratelimit }\nresources: [{ match: x, strategy: nothing }]\n";
    let directory =
        directory(&[("weir.yaml", config), ("ratelimit/edge.yaml", "domain: edge\nnonsense: 1\n")]);
    let (code, _, errors) = check(&shown(&directory, "weir.yaml"));
    assert_eq!(code, Some(1));
    assert!(errors.contains("there is no strategy \"nothing\""), "{errors}");
    assert!(errors.contains(&shown(&directory, "ratelimit/edge.yaml")), "{errors}");
}

/// Secrets exist only on the machines that need them. `check` passes without them, and still reports all other mistakes.
#[test]
fn a_missing_secret_is_a_note_for_check_and_an_error_for_serve() {
    let redis = "store:\n  redis:\n    nodes: [\"rediss://localhost:6379\"]\n    password_file: secrets/redis\n    \
                 tls: { ca_file: secrets/ca.pem, cert_file: secrets/cert.pem, key_file: secrets/key.pem }\n";
    let directory = directory(&[("weir.yaml", &format!("{redis}{GOOD}"))]);
    let file = shown(&directory, "weir.yaml");
    let (code, summary, notes) = check(&file);
    assert_eq!(
        (code, summary),
        (Some(0), format!("{file}: ok, 1 strategy, 0 resource patterns\n")),
        "{notes}"
    );
    for name in ["password_file", "tls.ca_file", "tls.cert_file", "tls.key_file"] {
        let note =
            notes.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {notes}"));
        assert!(note.starts_with(&format!("note: {file}:")), "{note}");
        assert!(note.contains(&shown(&directory, "secrets/")), "{note}");
    }
    let serve = weir(&["serve", "--config", &file]);
    assert_eq!(serve.status.code(), Some(1));
    assert_eq!(
        text(&serve.stderr).matches("cannot be read: No such file").count(),
        4,
        "{}",
        text(&serve.stderr)
    );

    // A file that is there is looked at.
    std::fs::create_dir(directory.path().join("secrets")).unwrap();
    std::fs::write(directory.path().join("secrets/redis"), "\n").unwrap();
    let (code, _, errors) = check(&file);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("must not be empty"), "{errors}");
}

#[test]
fn paths_are_relative_to_the_configuration() {
    let envoy =
        "domain: edge\ndescriptors: [{ key: a, rate_limit: { unit: minute, requests_per_unit: 2 } }]\n";
    let config = format!("envoy: {{ config: ratelimit }}\n{GOOD}");
    let directory = directory(&[("weir.yaml", &config), ("ratelimit/edge.yaml", envoy)]);
    let file = shown(&directory, "weir.yaml");
    let (code, summary, errors) = check(&file);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(summary.ends_with("and for Envoy 1 file, 1 domain, 1 limit\n"), "{summary}");
    let serve = Serve::start(&["--config", &file]);
    assert!(serve.announced.contains(&shown(&directory, "ratelimit")), "{}", serve.announced);
}

/// The reader of the configuration names the files only; each command hands it what looks into them.
#[test]
fn every_command_looks_into_certificates() {
    let redis = "store: { redis: { nodes: [\"rediss://localhost\"], tls: { ca_file: /dev/null } } }\n";
    let directory = directory(&[("weir.yaml", &format!("{redis}{GOOD}"))]);
    let file = shown(&directory, "weir.yaml");
    for command in [
        &["check", &file][..],
        &["serve", "--config", &file],
        &["explain", "--config", &file, "r", "c", "--strategy", "a"],
        &["simulate", "--config", &file, "--pattern", "constant:1/s", "--for", "1s"],
    ] {
        let out = weir(command);
        let errors = text(&out.stderr);
        assert_ne!(out.status.code(), Some(0), "{command:?}");
        assert!(errors.contains("\"/dev/null\" holds no certificate"), "{command:?}: {errors}");
    }
}

/// A path in a flag is relative to where the program was started, as all programs have it.
#[cfg(feature = "envoy")]
#[test]
fn paths_in_flags_are_relative_to_the_working_directory() {
    let directory = directory(&[
        ("etc/weir.yaml", GOOD),
        ("etc/ratelimit/edge.yaml", "domain: a\n"),
        ("ratelimit/edge.yaml", "domain: b\n"),
    ]);
    let overrides = weir::features::overrides().with("envoy_config", "ratelimit");
    let config = Config::load(directory.path().join("etc/weir.yaml"), &overrides).unwrap();
    assert_eq!(
        weir_envoy::settings::EnvoyConfig::from_config(&config).config.as_deref(),
        Some(Path::new("ratelimit"))
    );
}

#[test]
fn a_directory_of_configurations_is_checked_as_such() {
    let directory = directory(&[
        ("a.yaml", GOOD),
        ("b.yml", "strategies: { b: { limits: [] } }\n"),
        ("c.yaml", "resources: [{ match: x, strategy: none }]\n"),
        ("readme.txt", "nothing"),
    ]);
    let (code, summary, errors) = check(directory.path().to_str().unwrap());
    assert_eq!(code, Some(1));
    assert_eq!(summary, format!("{}: ok, 1 strategy, 0 resource patterns\n", shown(&directory, "a.yaml")));
    for name in ["b.yml", "c.yaml"] {
        assert!(errors.contains(&format!("{}:", shown(&directory, name))), "{errors}");
    }
    assert!(!errors.contains("unknown key"), "{errors}");
}

/// Files that were skipped passed, whatever was in them.
#[test]
fn every_file_of_a_directory_is_checked() {
    let directory = directory(&[
        ("a.yaml", GOOD),
        ("edge.yaml", "domain: edge\n"),
        ("broken-edge.yaml", "domain: edge\ndescriptors: [{ key: a, nonsense: 1 }]\n"),
        ("misspelt.yaml", "strategys: {}\n"),
        ("empty.yaml", "# nothing\n"),
        ("queues.yaml", "queues: { q: { capacity: 0 } }\n"),
        ("weir.json", "{ \"strategies\": { \"b\": { \"limits\": [] } } }"),
        ("other.json", "{ \"name\": \"x\" }"),
        ("readme.txt", "nothing"),
        (".hidden.yaml", "nothing"),
    ]);
    let (code, summary, errors) = check(directory.path().to_str().unwrap());
    assert_eq!(code, Some(1));
    let passed: Vec<&str> = summary.lines().map(|line| line.split_once(": ok").unwrap().0).collect();
    assert_eq!(passed, [shown(&directory, "a.yaml"), shown(&directory, "edge.yaml")]);
    for name in ["broken-edge.yaml", "queues.yaml", "weir.json"] {
        assert!(errors.contains(&format!("{}:", shown(&directory, name))), "{name}: {errors}");
    }
    for (name, key) in [("misspelt.yaml", "`strategys`"), ("other.json", "`name`")] {
        let start = format!(
            "{}: is neither a configuration of Weir nor a file of Envoy's: {key} is no key of either; they have ",
            shown(&directory, name)
        );
        assert!(errors.contains(&start), "{name}: {errors}");
    }
    assert!(
        errors.contains(&format!("{}: has no top-level keys", shown(&directory, "empty.yaml"))),
        "{errors}"
    );
    assert!(!errors.contains("readme") && !errors.contains("hidden"), "{errors}");
}

#[test]
fn a_directory_without_configurations_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (code, summary, errors) = check(directory.path().to_str().unwrap());
    assert_eq!((code, summary.as_str()), (Some(1), ""));
    assert!(errors.contains("there is no configuration in this directory"), "{errors}");
}

#[test]
fn ten_thousand_strategies_with_their_resources_fit() {
    let mut text = "strategies:\n".to_owned();
    for index in 0..10_000 {
        writeln!(text, "  tenant-{index}:\n    limits:").unwrap();
        writeln!(
            text,
            "      - {{ name: everyone, per: [resource], sliding_log: {{ limit: 100, window: 10s }} }}"
        )
        .unwrap();
        writeln!(
            text,
            "      - {{ name: each, per: [resource, consumer], token_bucket: {{ rate: 30/1m, burst: 30 }} }}"
        )
        .unwrap();
        writeln!(text, "    on_store_failure: deny").unwrap();
    }
    text.push_str("resources:\n");
    for index in 0..10_000 {
        writeln!(text, "  - {{ match: \"api/tenant-{index}/*\", strategy: tenant-{index} }}").unwrap();
    }
    text.push_str("overrides:\n");
    for index in 0..10_000 {
        let numbers = "limits: { each: { token_bucket: { rate: 300/1m, burst: 300 } } }";
        writeln!(text, "  - {{ consumer: \"gold-*\", strategy: tenant-{index}, {numbers} }}").unwrap();
    }
    assert!(text.len() < MAX_FILE);
    let directory = directory(&[("weir.yaml", &text)]);
    let (code, summary, errors) = check(&shown(&directory, "weir.yaml"));
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(summary.ends_with(": ok, 10000 strategies, 10000 resource patterns\n"), "{summary}");
}

#[test]
fn several_files_of_one_configuration_are_checked_together() {
    let directory = directory(&[
        ("conf.d/a.yaml", GOOD),
        ("conf.d/b.yaml", "resources: [{ match: x, strategy: a }]\n"),
        ("more.yaml", "access: { deny: [eve] }\n"),
    ]);
    let (folder, more) = (shown(&directory, "conf.d"), shown(&directory, "more.yaml"));
    let out = weir(&["check", "--config", &folder, "--config", &more]);
    let summary = format!("{folder}, {more}: ok, 1 strategy, 1 resource pattern\n");
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), summary), "{}", text(&out.stderr));
    // By themselves they are incomplete.
    let (code, _, errors) = check(&folder);
    assert_eq!(code, Some(1));
    assert!(errors.contains("b.yaml:1:1: no strategy is configured"), "{errors}");
    assert!(errors.ends_with("note: each file was checked by itself; `weir check --config DIR` checks them as one configuration\n"), "{errors}");
    std::fs::write(directory.path().join("conf.d/c.yaml"), GOOD).unwrap();
    let out = weir(&["check", "--config", &folder]);
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1));
    assert!(errors.contains("c.yaml:1:15: strategies.a: is given twice; the first is at "), "{errors}");
    assert_eq!(weir(&["check"]).status.code(), Some(2));
    // Variables are those of the command's own environment.
    std::fs::write(directory.path().join("more.yaml"), "access: { deny: ['${WEIRD_CONSUMER}'] }\n").unwrap();
    let out = weir(&["check", &more]);
    assert!(text(&out.stderr).contains("access.deny[0]: the variable WEIRD_CONSUMER is not set"));
}
