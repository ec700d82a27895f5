//! The examples themselves, and what docs/envoy.md says is there.

use std::path::Path;
use std::process::Command;

use crate::support::command::Serve;
use crate::support::envoy::program;

use super::{after, shipped, weir};

#[test]
fn envoy_takes_every_example() {
    let Some(program) = program() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/envoy");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let examples: Vec<_> = files.filter(|file| file.extension().is_some_and(|kind| kind == "yaml")).collect();
    assert_eq!(examples.len(), 3, "{examples:?}");
    for file in examples {
        let checked =
            Command::new(&program).args(["--mode", "validate", "--config-path"]).arg(&file).output();
        let checked = checked.unwrap();
        let log = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{}: {log}", file.display());
        // What Envoy will refuse one day is not for new users.
        assert!(!log.contains("eprecated"), "{}: {log}", file.display());
    }
}

#[tokio::test]
async fn what_the_documentation_names_is_there() {
    let docs = include_str!("../../../docs/envoy.md");
    let weir = weir(shipped());
    // The series of a rule appear with its first hit.
    after(&weir, "remote_address", 1).await;
    let metrics = weir.get("/metrics").1;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let names: Vec<_> =
        docs.split(|letter| !is_name(letter)).filter(|name| name.starts_with("weir_")).collect();
    assert!(names.len() > 8, "{names:?}");
    // The first has rows only where a domain is bad, the others only with a control plane, or where nodes count; their tests
    // see them.
    let elsewhere = ["weir_envoy_domain_refused", "weir_xds_", "weir_approximate_"];
    let is_here = |name: &&str| !elsewhere.iter().any(|other| name.starts_with(other));
    for name in names.into_iter().filter(is_here) {
        assert!(metrics.contains(&format!("# TYPE {name} ")), "{name}");
    }
    let linked = docs.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    for file in linked.filter(|link| !link.starts_with("https:")) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file);
        assert!(file.exists(), "{}", file.display());
    }
}

#[test]
fn serving_says_whose_files_envoy_is_answered_by() {
    let folder = shipped();
    let serve = Serve::start(&["--envoy-config", folder.to_str().unwrap()]);
    let line = format!("\n  envoy   {}\n", folder.display());
    assert!(serve.announced.contains(&line), "{}", serve.announced);
}
