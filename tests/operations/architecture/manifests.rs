//! The dependencies of the crates. The compiler allows a crate what its manifest lists, so the manifests are checked.

use super::none;
use super::source::{Source, read_all};

/// The crates, and which of them each may use. `weir` is the root.
pub(super) const MAY_USE: [(&str, &[&str]); 19] = [
    ("units", &[]),
    ("proto", &[]),
    ("time", &["units"]),
    ("core", &["units"]),
    ("config", &["core", "units"]),
    ("store", &["config", "core", "time", "units"]),
    ("grpc", &["time"]),
    ("node", &["config", "store", "grpc", "proto", "core", "time", "units"]),
    ("load", &["grpc", "proto", "time"]),
    ("control", &["node", "config", "store", "grpc", "proto", "core", "time", "units"]),
    ("envoy", &["node", "config", "store", "grpc", "proto", "core", "time", "units"]),
    ("http", &["node", "config", "grpc", "proto", "time", "units"]),
    ("leases", &["node", "config", "store", "grpc", "proto", "core", "time", "units"]),
    ("queues", &["node", "config", "store", "grpc", "proto", "core", "time", "units"]),
    ("usage", &["node", "config", "store", "proto", "core", "time", "units"]),
    (
        "weir",
        &[
            "control", "envoy", "http", "leases", "queues", "usage", "node", "config", "load", "store",
            "core", "proto", "time", "units",
        ],
    ),
    ("testing", &["config", "core", "store", "time", "units"]),
    ("simulator", &["units"]),
    ("scripted", &["proto"]),
];

/// Libraries (and those whose names begin with theirs and a dash) that only some crates may use.
const LIBRARIES: [(&str, &[&str]); 9] = [
    ("redis", &["store", "testing"]),
    ("rustls", &["store", "load", "node", "envoy"]),
    ("tonic", &["proto", "grpc", "load", "node", "control", "envoy", "leases", "queues", "usage"]),
    (
        "prost",
        &[
            "proto", "http", "load", "scripted", "testing", "node", "control", "envoy", "leases", "queues",
            "usage", "weir",
        ],
    ),
    (
        "tokio",
        &[
            "time", "store", "grpc", "http", "load", "scripted", "testing", "node", "control", "envoy",
            "queues", "usage", "weir",
        ],
    ),
    ("axum", &["node", "envoy"]),
    ("tracing-subscriber", &["node"]),
    ("clap", &["weir"]),
    // It compiles Lua: no part of the program needs it.
    ("mlua", &["simulator"]),
];

#[test]
fn crates_use_only_what_is_below_them() {
    let mut manifests = read_all("crates", "toml");
    manifests.retain(|manifest| manifest.path.split('/').count() == 3);
    manifests.push(Source::new("Cargo.toml", include_str!("../../../Cargo.toml")));
    assert!(manifests.len() > 5);
    none(offences(&manifests));
}

#[test]
fn the_check_can_fail() {
    for (name, line) in [
        ("core", "weir-time.workspace = true"),
        ("core", "tokio = \"1\""),
        ("grpc", "redis = \"1\""),
        ("config", "weir-store.workspace = true"),
        ("config", "rustls.workspace = true"),
        ("store", "weir-node.workspace = true"),
        ("node", "weir-simulator.workspace = true"),
        ("testing", "mlua.workspace = true"),
    ] {
        let manifest =
            Source::new(&format!("crates/{name}/Cargo.toml"), &format!("[dependencies]\n{line}\n"));
        assert!(!offences(&[manifest]).is_empty(), "{name}: {line}");
    }
    let testing = "[dependencies]\nweir-testing = { workspace = true }\n[dev-dependencies]\nredis = \"1\"\n";
    assert_eq!(offences(&[Source::new("Cargo.toml", testing)]), ["weir uses weir-testing"]);
}

fn offences(manifests: &[Source]) -> Vec<String> {
    let of_one = |manifest: &Source| {
        let name = manifest.path.split('/').nth(1).unwrap_or("weir").to_owned();
        let refused = dependencies(&manifest.text).filter(|used| !may_use(&name, used));
        refused.map(|used| format!("{name} uses {used}")).collect::<Vec<_>>()
    };
    manifests.iter().flat_map(of_one).collect()
}

/// The names in the section of what is compiled into the program.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    names.filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|name| !name.is_empty())
}

fn may_use(name: &str, used: &str) -> bool {
    if let Some(own) = used.strip_prefix("weir-") {
        return MAY_USE.iter().any(|(one, below)| *one == name && below.contains(&own));
    }
    let is_of = |library: &str| {
        used.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    LIBRARIES.iter().all(|(library, users)| !is_of(library) || users.contains(&name))
}
