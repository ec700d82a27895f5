//! Whatever the lists, overrides and patterns: what the rules choose is what going through all of them
//! one by one chooses.

use proptest::prelude::*;
use weir_core::algorithm::Algorithm;
use weir_core::strategy::{
    Access, FailurePolicy, Field, Limit, Listed, Override, Patterns, Resource, Resources, Rules, Scope,
    Strategy as Limits,
};
use weir_units::Micros;

use crate::properties::random::config;

/// Returns how particular `pattern` is about `name`, if it matches.
fn rank(pattern: &str, name: &str) -> Option<usize> {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix).then_some(prefix.len()),
        None => (pattern == name).then_some(usize::MAX),
    }
}

/// The place of the best of `patterns`, the first of equals.
fn best(patterns: &[String], name: &str) -> Option<usize> {
    let ranked = patterns.iter().enumerate().filter_map(|(index, one)| Some((rank(one, name)?, index)));
    ranked.max_by_key(|&(rank, index)| (rank, std::cmp::Reverse(index))).map(|(_, index)| index)
}

fn listed(deny: [&[String]; 2], allow: [&[String]; 2], name: &str) -> Option<Listed> {
    let on = |lists: [&[String]; 2]| lists.into_iter().flatten().any(|one| rank(one, name).is_some());
    if on(deny) {
        return Some(Listed::Deny);
    }
    on(allow).then_some(Listed::Allow)
}

/// One limit by consumer, of so many calls.
fn limits(limit: u64) -> Limits {
    let algorithm = Algorithm::fixed_window(limit, Micros::from_secs(1), false, false).unwrap();
    let limit = Limit { name: "each".into(), scope: Scope::new(&[Field::Consumer]), algorithm };
    Limits::new("strategy", vec![limit], false, FailurePolicy::Error).unwrap()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn patterns_find_the_most_particular(patterns in list(12), names in prop::collection::vec(name(), 1..8)) {
        let numbered = patterns.iter().cloned().enumerate().map(|(index, one)| (one, index));
        let table = Patterns::new(numbered);
        for name in &names {
            let found = table.find(name).map(|(pattern, index)| (pattern.to_string(), *index));
            let wanted = best(&patterns, name).map(|index| (patterns[index].clone(), index));
            prop_assert_eq!(found, wanted, "{}", name);
            let mut all: Vec<&String> = patterns.iter().filter(|one| rank(one, name).is_some()).collect();
            all.sort_by_key(|one| std::cmp::Reverse(rank(one, name)));
            all.dedup();
            let matches: Vec<String> = table.matches(name).map(|(pattern, _)| pattern.to_string()).collect();
            prop_assert_eq!(matches.iter().collect::<Vec<_>>(), all, "{}", name);
        }
    }

    #[test]
    fn rules_choose_what_a_naive_search_chooses(
        lists in [list(4), list(4), list(4), list(4)],
        overrides in prop::collection::vec((pattern(), pattern()), 0..10),
        resources in list(4),
        asked in prop::collection::vec((name(), name()), 1..8),
    ) {
        let [deny, allow, own_deny, own_allow] = &lists;
        let patterns = resources.iter().cloned().map(|one| (one, Resource { strategy: 0, group: None }));
        let made = overrides.iter().enumerate().map(|(index, (consumer, resource))| Override {
            consumer: consumer.clone(),
            resource: resource.clone(),
            strategy: limits(1 + index as u64),
        });
        let rules = Rules::new(vec![limits(0)], Resources::new(patterns))
            .with_access(
                Access::new(deny.clone(), allow.clone()),
                [Access::new(own_deny.clone(), own_allow.clone())],
            )
            .with_overrides(made);
        for (consumer, resource) in &asked {
            let by_default = rules.resolve_for(resource, consumer, "");
            prop_assert_eq!(by_default.is_ok(), best(&resources, resource).is_some());
            let resolved = rules.resolve_for(resource, consumer, "strategy").unwrap();
            let wanted = listed([deny, own_deny], [allow, own_allow], consumer);
            prop_assert_eq!(resolved.listing.map(|listing| listing.listed), wanted, "{}", consumer);
            let matching = overrides.iter().enumerate().filter_map(|(index, (who, what))| {
                Some((rank(who, consumer)?, rank(what, resource)?, std::cmp::Reverse(index)))
            });
            let number = matching.max().map_or(0, |(_, _, index)| 1 + index.0 as u64);
            prop_assert_eq!(resolved.strategy.algorithms()[0].limit(), number, "{} on {}", consumer, resource);
            prop_assert_eq!(resolved.applied.is_some(), number > 0);
        }
    }
}

fn list(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(pattern(), 0..most)
}

fn pattern() -> impl Strategy<Value = String> {
    (name(), any::<bool>()).prop_map(|(name, is_prefix)| name + if is_prefix { "*" } else { "" })
}

/// Few letters, so that prefixes of prefixes meet; some of more than a byte.
fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "-", "é", "ê"]), 0..5)
        .prop_map(|all| all.concat())
}
