//! The first ten minutes of a new user: commands that can be pasted, and errors that name the mistake.

use std::path::Path;
use std::process::Command;
use weir_testing::metrics;

use serde_json::Value;

use crate::support::command::{Serve, text, weir, weir_command};
use crate::support::{SOON, eventually};

const BY_ATTRIBUTES: &str = r#"
strategies:
  regional:
    limits:
      - { name: region, per: [resource, region], fixed_window: { limit: 3, window: 1m } }
      - { name: each, per: [resource, region, tier, consumer], fixed_window: { limit: 3, window: 1m } }
"#;

const BY_RESOURCE: &str = r#"
strategies:
  pool: { concurrency: { limit: 2, per: [resource], ttl: 30s } }
  orders: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 3, window: 1m } }] }
resources:
  - { match: database, strategy: pool }
  - { match: "api/orders/*", strategy: orders }
  - { match: "api/*", strategy: orders }
"#;

const ENVOY: &str = r#"
domain: the edge
descriptors:
  - key: path
    value_regex: "/v[12]"
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: tenant
    value: it's ours
    descriptors:
      - key: remote_address
        rate_limit: { unit: minute, requests_per_unit: 2 }
"#;

fn written(directory: &Path, name: &str, text: &str) -> String {
    let file = directory.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The lines that `weir serve` prints to be pasted.
fn lines(serve: &Serve) -> Vec<&str> {
    serve.announced.lines().filter(|line| line.contains("weir allow ")).collect()
}

/// A person without `weir` at hand asks with curl.
#[test]
fn the_line_for_curl_can_be_pasted() {
    let directory = tempfile::tempdir().unwrap();
    let native = written(directory.path(), "weir.yaml", BY_ATTRIBUTES);
    for args in [&["--http", "127.0.0.1:0"][..], &["--http", "127.0.0.1:0", "--config", &native]] {
        let serve = Serve::start(args);
        let line = serve.announced.lines().find(|line| line.contains("curl ")).expect(&serve.announced);
        let pasted = Command::new("sh").args(["-c", line]).output().unwrap();
        assert!(text(&pasted.stdout).starts_with("{\"allowed\":true,"), "{line}: {pasted:?}");
        assert!(serve.announced.contains("\n  http    http://127.0.0.1:"), "{}", serve.announced);
    }
    // A server that was moved is one of several: only one of them could have the port of the example.
    let moved = Serve::start(&[]);
    assert!(!moved.announced.contains("curl "), "{}", moved.announced);
}

#[test]
fn what_serve_prints_can_be_pasted_with_every_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let native = written(directory.path(), "weir.yaml", BY_ATTRIBUTES);
    let file = written(directory.path(), "envoy/edge.yaml", ENVOY);
    let folder = Path::new(&file).parent().unwrap().to_str().unwrap();
    let only_envoy = written(directory.path(), "only.yaml", &format!("envoy: {{ config: '{folder}' }}\n"));
    let pools = written(directory.path(), "pools.yaml", BY_RESOURCE);
    let no_rule = written(directory.path(), "none/edge.yaml", "domain: bare\ndescriptors: []\n");
    let no_rule = Path::new(&no_rule).parent().unwrap().to_str().unwrap();
    for (args, shown) in [
        (&["--config", native.as_str()][..], &["--attribute region="][..]),
        (&["--config", only_envoy.as_str()], &["--envoy 'the edge'"]),
        (
            &["--config", native.as_str(), "--envoy-config", folder],
            &["--attribute tier=", "--envoy 'the edge'"],
        ),
        // It named a resource of the documentation, which this configuration gives no strategy.
        (&["--config", pools.as_str()], &["weir allow api/orders/example bob --server"]),
        (&["--envoy-config", no_rule], &["zewtopia.com/tigerfeeding bob", "--envoy bare"]),
    ] {
        let serve = Serve::start(args);
        let lines = lines(&serve);
        assert_eq!(lines.len(), shown.len(), "{}", serve.announced);
        for (line, shown) in lines.iter().zip(shown) {
            assert!(line.contains(shown), "{line}");
            let pasted = Command::new("sh").args(["-c", line]).output().unwrap();
            assert_eq!(pasted.status.code(), Some(0), "{line}\n{}", text(&pasted.stderr));
            assert!(text(&pasted.stdout).starts_with("allowed"), "{line}\n{}", text(&pasted.stdout));
        }
    }
}

#[test]
fn envoys_question_has_the_exit_code_of_its_answer() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), "envoy/edge.yaml", ENVOY);
    let serve = Serve::start(&["--envoy-config", Path::new(&file).parent().unwrap().to_str().unwrap()]);
    let ask = |entry: &str| serve.allow(&["--envoy", "the edge", "--entry", entry, "--cost", "2"]);
    let first = ask("path=/v1");
    assert_eq!((first.status.code(), text(&first.stderr)), (Some(0), String::new()));
    assert!(text(&first.stdout).contains("0 of 2 per minute remaining"), "{}", text(&first.stdout));
    let second = ask("path=/v1");
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stdout).starts_with("denied: OVER_LIMIT"), "{}", text(&second.stdout));
    let unmatched = ask("path=/v3");
    assert_eq!(unmatched.status.code(), Some(0));
    assert!(text(&unmatched.stdout).contains("nothing was charged"), "{}", text(&unmatched.stdout));
    let json = serve.allow(&["--envoy", "the edge", "path=/v1", "--output", "json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["overallCode"], "OVER_LIMIT");
    assert_eq!(serve.allow(&["--envoy", "the edge", "path"]).status.code(), Some(2));
}

/// The text was once `full again in 86399s`.
#[test]
fn waits_of_envoys_rules_are_for_people() {
    let directory = tempfile::tempdir().unwrap();
    let daily = "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 2 } }]\n";
    let file = written(directory.path(), "envoy/daily.yaml", daily);
    let serve = Serve::start(&["--envoy-config", Path::new(&file).parent().unwrap().to_str().unwrap()]);
    let shown = text(&serve.allow(&["--envoy", "d", "user=bob"]).stdout);
    let (_, wait) = shown.split_once("full again in ").unwrap_or_else(|| panic!("{shown}"));
    let number: String = wait.chars().take_while(char::is_ascii_digit).collect();
    assert!((1..=2).contains(&number.len()), "{shown}");
}

#[test]
fn a_load_that_is_denied_says_how_much_and_what_to_change() {
    let serve = Serve::start(&[]);
    let load = |args: &[&str]| {
        let always = ["load", "--server", &serve.server, "--requests", "20000", "--warm-up", "0s", "--quiet"];
        let out = weir(&[&always, args].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let denied = load(&["--resource", "zewtopia.com/tigerfeeding"]);
    assert!(denied.contains("\n  denied   19900 (99.50 %)\n"), "{denied}");
    let advice =
        "spread them over more resources (--resource 'zewtopia.com/tigerfeeding/{key}' --strategy NAME)";
    assert!(denied.contains(advice), "{denied}");
    let spread = load(&[
        "--resource",
        "zewtopia.com/tigerfeeding/{key}",
        "--strategy",
        "tiger-feeding",
        "--keys",
        "20000",
    ]);
    assert!(!spread.contains("nearly all calls were denied"), "{spread}");
}

/// A load once asked for one resource of which 100 calls pass in ten seconds, and so measured denials.
#[test]
fn a_load_without_options_reaches_each_strategy_of_the_example() {
    let serve = Serve::start(&[]);
    let out = weir(&["load", "--server", &serve.server, "--requests", "30000", "--warm-up", "0s", "--quiet"]);
    let report = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{report}{}", text(&out.stderr));
    assert!(!report.contains("nearly all calls were denied"), "{report}");
    let page = serve.get("/metrics");
    let allowed = |strategy: &str| -> u64 {
        metrics::value(&page, &format!("weir_decisions_total{{strategy=\"{strategy}\",outcome=\"allowed\"}}"))
    };
    assert!(allowed("tiger-feeding") == 100 && allowed("api") > 5_000 && allowed("search") > 5_000, "{page}");
    // It shows whole seconds.
    let top = || text(&weir(&["top", "--once", "--server", &serve.server]).stdout);
    eventually(SOON, "all strategies are on the page", || {
        let (page, names) = (top(), ["  tiger-feeding", "  api", "  search"]);
        names.iter().all(|name| page.lines().any(|line| line.starts_with(name)))
    });
}

/// To the measure of likeness `aip` was nothing like `api`.
#[test]
fn a_strategy_with_two_letters_in_other_places_is_similar() {
    let serve = Serve::start(&[]);
    let error = text(&serve.allow(&["api/x", "bob", "--strategy", "aip"]).stderr);
    assert!(error.contains("there is no strategy `aip` (similar: api)"), "{error}");
}

/// A secret keeps callers from aiming at a slot of a cluster; a single Redis has none to aim at.
#[test]
fn only_a_cluster_warns_of_the_built_in_secret() {
    for (topology, warns) in [("single", false), ("cluster", true)] {
        let serve = Serve::start(&["--store", "redis://127.0.0.1:1", "--topology", topology]);
        let (_, log) = serve.stop("INT");
        assert_eq!(log.contains("store.key_secret"), warns, "{log}");
    }
}

#[test]
fn json_logs_have_values_as_they_are() {
    let serve = Serve::start(&["--log", "debug"]);
    serve.allow(&["zewtopia.com/tigerfeeding", "bob \"the builder\""]);
    let (_, log) = serve.stop("INT");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decided: Vec<Value> = events.filter(|event| event["message"] == "decided").collect();
    assert_eq!(decided.len(), 1, "{log}");
    assert_eq!(decided[0]["resource"], "zewtopia.com/tigerfeeding");
    assert_eq!(decided[0]["consumer"], "bob \"the builder\"");
}

#[test]
fn a_level_that_does_not_exist_is_an_error() {
    for args in [&["serve", "--log", "debgu"][..], &["check", "--log", "info,debgu", "weir.yaml"]] {
        let out = weir(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains("`debgu` is not a level"), "{}", text(&out.stderr));
    }
    let out = weir_command(&["serve"]).env("WEIR_LOG", "debgu").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn a_misspelled_variable_is_an_error_that_names_it() {
    for command in [&["serve"][..], &["check", "weir.yaml"]] {
        let out = weir_command(command).env("WEIR_BUDGTE", "1GiB").output().unwrap();
        assert_eq!(out.status.code(), Some(2));
        let error = text(&out.stderr);
        assert!(error.contains("WEIR_BUDGTE") && error.contains("did you mean WEIR_BUDGET?"), "{error}");
    }
}

#[test]
fn an_unknown_variable_is_a_warning_at_most() {
    let injected = ["WEIR_SERVICE_HOST", "WEIR_SERVICE_PORT", "WEIR_SERVICE_PORT_GRPC", "WEIR_PORT"];
    let variables: Vec<(&str, &str)> =
        injected.iter().chain(&["WEIR_COLOUR_OF_LOGS"]).map(|name| (*name, "1")).collect();
    let serve = Serve::start_with(&[], &variables);
    let (code, log) = serve.stop("INT");
    assert_eq!(code, Some(0));
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let warns = |name| events.iter().any(|event| event["level"] == "WARN" && event["variable"] == name);
    assert!(warns("WEIR_COLOUR_OF_LOGS"), "{log}");
    assert!(events.iter().all(|event| event["level"] != "ERROR"), "{log}");
}

/// `allow` and `load` take the address that `serve` prints, with and without `http://`.
#[test]
fn all_commands_take_addresses_in_one_form() {
    let serve = Serve::start(&[]);
    let bare = serve.server.strip_prefix("http://").unwrap();
    for server in [bare, &format!("http://{bare}"), &format!("http://{bare}/")] {
        let ask = weir(&["allow", "zewtopia.com/tigerfeeding", "bob", "--peek", "--server", server]);
        assert_eq!(ask.status.code(), Some(0), "{server}: {}", text(&ask.stderr));
        let load = weir(&["load", "--requests", "10", "--warm-up", "0s", "--quiet", "--server", server]);
        assert_eq!(load.status.code(), Some(0), "{server}: {}", text(&load.stderr));
    }
}
