//! `groups`: which routing groups must lie apart, and what is wrong with a wish that cannot be met.

use weir_config::{Config, StoreConfig};
use weir_core::key::{KeySecret, Placements};

use super::{STRATEGIES, accepted, refused, refused_rows};

/// A file with three groups, and `text` in line 1.
fn file(text: &str) -> String {
    with_store("{ redis: { nodes: [\"redis://a\"], topology: cluster, shards: 2 } }", text)
}

fn with_store(store: &str, text: &str) -> String {
    let resource = |group: &str| format!("{{ match: {group}, strategy: a, group: {group} }}");
    let resources = ["ducks", "geese", "swans"].map(resource).join(", ");
    format!("{text}\nstore: {store}\nresources: [{resources}]\n{STRATEGIES}")
}

#[test]
fn mistakes() {
    refused_rows(
        file,
        r#"
groups: 5 => 1:9: groups: must be a mapping of keys, not a single value
groups: { ducks: } => 1:11: groups.ducks.apart_from: is missing; list the groups that it must lie apart from
groups: { ducks: { apart_from: [] } } => 1:32: groups.ducks.apart_from: must name at least one group
groups: { ducks: { apart_from: geese } }
    1:32: groups.ducks.apart_from: must be a list, such as [a, b], not a single value
groups: { ducks: { apart: [geese] } }
    1:18: groups.ducks.apart_from: is missing; list the groups that it must lie apart from
    1:20: groups.ducks.apart: unknown key; did you mean `apart_from`?
groups: { dukcs: { apart_from: [geese] } }
    1:11: groups.dukcs: no resource has the group "dukcs"; did you mean "ducks"?
groups: { ducks: { apart_from: [zebras] } } => 1:33: groups.ducks.apart_from[0]: no resource has the group "zebras"
groups: { ducks: { apart_from: [ducks] } } => 1:33: groups.ducks.apart_from[0]: a group cannot lie apart from itself
groups: { ducks: { apart_from: [geese, geese] } } => 1:40: groups.ducks.apart_from[1]: "geese" is listed twice
groups: { ducks: { apart_from: [geese, swans] }, geese: { apart_from: [swans] } }
    1:9: groups: every one of the 2 shards has a group that `swans` must be apart from
"#,
    );
    let unknown =
        "1:9: groups: the number of shards is not known; give `store.redis.shards`, with `topology: cluster`";
    for store in ["{ memory: {} }", "{ redis: { nodes: [\"redis://a\"] } }"] {
        let file = |text: &str| with_store(store, text);
        refused(&[("groups: { ducks: { apart_from: [geese] } }", unknown)], file);
    }
}

fn placements(config: &Config) -> &Placements {
    match &config.store {
        StoreConfig::Redis(redis) => &redis.placements,
        StoreConfig::Memory(_) => panic!("on Redis"),
    }
}

/// The same placement results whichever of two groups names the other, and in any order of the file.
#[test]
fn groups_are_placed_by_their_names_alone() {
    let one = accepted(&file("groups: { ducks: { apart_from: [geese] }, swans: { apart_from: [ducks] } }"));
    let other = accepted(&file("groups: { ducks: { apart_from: [swans, geese] } }"));
    assert_eq!(placements(&one), placements(&other));
    let part = |group| placements(&one).part_of_group(group).unwrap();
    assert_ne!(part("ducks"), part("geese"));
    assert_eq!(part("geese"), part("swans"), "one part of two is all that is not taken");
    let of_key = KeySecret::BUILT_IN;
    let apart = [
        ("geese".to_owned(), ["ducks".to_owned()].into()),
        ("swans".to_owned(), ["ducks".to_owned()].into()),
    ];
    assert_eq!(*placements(&one), Placements::new(&of_key, 2, &apart.into()).unwrap());
}
