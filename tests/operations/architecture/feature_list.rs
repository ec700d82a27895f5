//! Features are listed in several places, which no compiler compares: the manifest, the list of the program, the crates.

use std::collections::BTreeSet;
use std::path::Path;

use super::manifests::MAY_USE;
use super::none;
use super::source::read_all;

/// A feature that is missing in a list would be built and never run, or run and never be described.
#[test]
fn every_feature_is_in_every_list() {
    let manifest = include_str!("../../../Cargo.toml");
    let default = manifest.lines().find(|line| line.starts_with("default = [")).unwrap();
    let listed = include_str!("../../../src/features.rs");
    let optional =
        manifest.lines().filter_map(|line| line.split_once(" = [\"dep:weir-")).map(|(name, _)| name);
    let features: BTreeSet<&str> = optional.collect();
    assert!(features.len() > 2, "{features:?}");
    let mut missing = Vec::new();
    for name in features {
        let mut needs = |holds: bool, place: &str| {
            if !holds {
                missing.push(format!("{place} lacks {name}"));
            }
        };
        needs(default.contains(&format!("\"{name}\"")), "`default` in Cargo.toml");
        needs(
            listed.contains(&format!("#[cfg(feature = \"{name}\")]\n    &weir_{name}::")),
            "src/features.rs",
        );
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("crates/{name}/README.md"));
        needs(page.exists(), "the README of the crate");
        needs(include_str!("../../../ARCHITECTURE.md").contains(&format!("weir-{name}")), "ARCHITECTURE.md");
    }
    none(missing);
}

/// A crate without a row would be checked by no rule of the architecture.
#[test]
fn every_crate_has_its_row() {
    let manifests = read_all("crates", "toml").into_iter();
    let crates = manifests.filter_map(|manifest| {
        let mut path = manifest.path.split('/').skip(1).map(str::to_owned);
        path.next().filter(|_| path.next().as_deref() == Some("Cargo.toml"))
    });
    none(crates.filter(|name| !MAY_USE.iter().any(|(known, _)| known == name)).collect());
}
