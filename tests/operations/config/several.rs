//! Several files of one configuration: what they own, and what they cannot share.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_config::{Config, MAX_CONFIG_FILES, StoreConfig};

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn load(paths: &[PathBuf]) -> Result<Config, String> {
    Config::load_all(paths, &weir::features::overrides()).map_err(|errors| errors.to_string())
}

/// The mistakes of a folder, without its name.
fn mistakes(folder: &Path) -> String {
    load(&[folder.to_owned()]).unwrap_err().replace(&format!("{}/", folder.display()), "")
}

fn strategy(name: &str) -> String {
    format!(
        "strategies:\n  {name}: {{ limits: [{{ name: l, per: [consumer], uniform: {{ interval: 1s }} }}] }}\n"
    )
}

#[test]
fn each_file_owns_some_strategies_resources_overrides_and_settings() {
    let of = |name: &str, more: &str| format!("{}{more}", strategy(name));
    let folder = folder(&[
        ("10-base.yaml", "server: { workers: 2, limits: { max_streams: 7 } }\naccess: { deny: [eve] }\n"),
        (
            "20-a.yml",
            &of("a", "resources: [{ match: a, strategy: a }]\nserver: { limits: { max_connections: 9 } }\n"),
        ),
        (
            "30-b.json",
            r#"{ "resources": [{ "match": "b", "strategy": "a", "group": "g" }], "access": { "deny": ["mallory"] } }"#,
        ),
        (
            "40-b.yaml",
            &of(
                "b",
                "overrides: [{ consumer: bob, strategy: a, limits: { l: { uniform: { interval: 2s } } } }]\n",
            ),
        ),
        ("50-empty.yaml", "# nothing yet\n"),
        (".hidden.yaml", "nonsense: 1\n"),
        ("README.md", "nonsense: 1\n"),
    ]);
    let config = load(&[folder.path().to_owned()]).unwrap();
    let names: Vec<&str> = config.rules.strategies().iter().map(|strategy| strategy.name()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(config.rules.resources().len(), 2);
    assert_eq!(config.server.workers, 2);
    let limits = &config.server.limits;
    assert_eq!((limits.max_streams, limits.max_connections), (7, 9));
    for consumer in ["eve", "mallory"] {
        assert!(config.rules.resolve_for("a", consumer, "").unwrap().listing.is_some(), "{consumer}");
    }
    let files = ["10-base.yaml", "20-a.yml", "30-b.json", "40-b.yaml"].map(|name| folder.path().join(name));
    assert_eq!(load(&files).unwrap().rules.strategies().len(), 2, "the same by name");
}

#[test]
fn a_name_in_two_files_is_a_mistake_with_both_places() {
    let of = |more: &str| format!("{}{more}", strategy("s"));
    let folder = folder(&[
        (
            "a.yaml",
            &of(
                "resources: [{ match: x, strategy: s }]\nserver: { workers: 2 }\nqueues: { q: { capacity: 1 } }\n",
            ),
        ),
        (
            "b.yaml",
            &of(
                "resources: [{ match: x, strategy: s }]\nserver: { workers: 2 }\nqueues: { q: { capacity: 1 } }\n",
            ),
        ),
    ]);
    let place = folder.path().join("a.yaml").display().to_string();
    let place = place.replace(&format!("{}/", folder.path().display()), "");
    let expected = format!(
        "b.yaml:2:3: strategies.s: is given twice; the first is at {place}:2:3\n\
         b.yaml:3:22: resources[1].match: \"x\" is given twice; the first is at {place}:3:22\n\
         b.yaml:4:11: server.workers: is given twice; the first is at {place}:4:11\n\
         b.yaml:5:11: queues.q: is given twice; the first is at {place}:5:11"
    );
    assert_eq!(mistakes(folder.path()), expected);
}

#[test]
fn every_mistake_names_its_file() {
    let folder = folder(&[
        ("a.yaml", &format!("{}resources: [{{ match: x, strategy: t }}]\n", strategy("s"))),
        ("b.yaml", "strategies:\n  u: { limits: [] }\n"),
        ("c.yaml", "- a list\n"),
        ("d.yaml", "server: }\n"),
        ("e.yaml", "domain: envoys\n"),
        ("f.yaml", "key: \u{7}\n"),
    ]);
    let found = mistakes(folder.path());
    let starts = [
        "a.yaml:3:",
        "b.yaml:2:",
        "c.yaml:1:1: must be a mapping of keys, not a list",
        "d.yaml:1:9: not valid YAML",
        "e.yaml:1:1: domain: unknown key",
        "f.yaml:1:6: a control character",
    ];
    assert_eq!(found.lines().count(), starts.len(), "{found}");
    for (line, start) in found.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn a_directory_without_files_a_missing_file_and_too_much_are_mistakes() {
    let empty = folder(&[("notes.txt", "")]);
    let reason = "there is no configuration in this directory: no *.yaml, *.yml or *.json";
    let shown = empty.path().display();
    assert_eq!(load(&[empty.path().to_owned()]).unwrap_err(), format!("{shown}: {reason}"));
    let (good, missing) = (folder(&[("a.yaml", &strategy("a"))]), empty.path().join("b.yaml"));
    let errors = load(&[good.path().to_owned(), missing.clone()]).unwrap_err();
    assert!(errors.starts_with(&format!("{}: cannot be read: ", missing.display())), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");

    let half = format!("{}{}", strategy("a"), "\n".repeat(8 << 20));
    let large = folder(&[("a.yaml", &half), ("b.yaml", &half)]);
    let found = mistakes(large.path());
    assert_eq!(
        found,
        "b.yaml: with the files before it is larger than 16777216 bytes (16 MiB), which is the most a configuration has"
    );

    let many = folder(&[]);
    for index in 0..=MAX_CONFIG_FILES {
        fs::write(many.path().join(format!("{index}.yaml")), "").unwrap();
    }
    assert!(load(&[many.path().to_owned()]).unwrap_err().ends_with(": has more than 1000 files"));
}

#[test]
fn paths_are_relative_to_their_own_file() {
    let (one, other) = (folder(&[("redis", "secret\n")]), folder(&[("a.yaml", &strategy("a"))]));
    let store = "store: { redis: { nodes: ['redis://127.0.0.1:6379'], password_file: redis } }\n";
    fs::write(one.path().join("store.yaml"), store).unwrap();
    let config = load(&[other.path().join("a.yaml"), one.path().join("store.yaml")]).unwrap();
    let StoreConfig::Redis(redis) = &config.store else { panic!("not Redis") };
    assert_eq!(redis.login.as_ref().unwrap().password.read().unwrap(), "secret");
}
