//! Edits one by one make the rules that all changes together make.

use std::collections::BTreeMap;

use super::*;
use crate::algorithm::Algorithm;
use crate::strategy::{Access, FailurePolicy, Limit, Listed, Resource, Resources, RuleChanges, Scope};
use weir_units::Micros;

fn window(limit: u64) -> Algorithm {
    Algorithm::fixed_window(limit, Micros::from_secs(60), false, false).unwrap()
}

fn strategy(name: &str, fields: &[Field]) -> Strategy {
    let limit =
        |name: &str, limit| Limit { name: name.into(), scope: Scope::new(fields), algorithm: window(limit) };
    Strategy::new(name, vec![limit("a", 10), limit("b", 20)], false, FailurePolicy::Error).unwrap()
}

fn files() -> Rules {
    let each = strategy("each", &[Field::Consumer, Field::Resource]);
    let shared = strategy("shared", &[Field::Consumer]);
    let resources = [("x", 0), ("y/*", 1)];
    let resources = resources.map(|(name, strategy)| (name.to_owned(), Resource { strategy, group: None }));
    let gold = override_of(&each, "gold-*", "*", 100);
    Rules::new(vec![each, shared], Resources::new(resources))
        .with_access(Access::new(["bad".to_owned()], ["good".to_owned()]), [])
        .with_shadows(&[vec![1], vec![]], std::slice::from_ref(&gold))
        .with_overrides([gold])
}

fn override_of(base: &Strategy, consumer: &str, resource: &str, number: u64) -> Override {
    let mut strategy = base.clone();
    strategy.override_limit("a", window(number)).unwrap();
    Override { consumer: consumer.into(), resource: resource.into(), strategy }
}

/// Limits of every caller.
fn seen(rules: &Rules) -> Vec<String> {
    let mut seen = Vec::new();
    for resource in ["x", "y/1", "y/2"] {
        for consumer in ["bad", "good", "gold-1", "me", "you", ""] {
            let found = rules.resolve_for(resource, consumer, "").unwrap();
            let limits: Vec<u64> = found.strategy.algorithms().iter().map(Algorithm::limit).collect();
            let applied = found.applied.map(|one| (one.consumer.to_string(), one.resource.to_string()));
            let listed = found.listing.map(|one| (one.listed, one.pattern.to_string(), one.own));
            let mixes = found.strategy.mixes_numbers();
            seen.push(format!("{resource} {consumer}: {limits:?} {applied:?} {listed:?} {mixes}"));
            for shadow in rules.shadows(found.index) {
                let strategy = rules.shadow_for(shadow, resource, consumer).strategy;
                let limits: Vec<u64> = strategy.algorithms().iter().map(Algorithm::limit).collect();
                seen.push(format!("  {} {limits:?}", strategy.name()));
            }
        }
    }
    seen
}

#[derive(Default)]
struct LiveChanges {
    overrides: BTreeMap<(usize, &'static str, &'static str), u64>,
    access: BTreeMap<(Option<&'static str>, bool, &'static str), ()>,
}

impl LiveChanges {
    fn whole(&self, files: &Rules) -> Rules {
        let overrides = self.overrides.iter().map(|((at, consumer, resource), number)| {
            override_of(&files.strategies()[*at], consumer, resource, *number)
        });
        let access =
            self.access.keys().map(|(strategy, denies, consumer)| entry(*strategy, *denies, consumer));
        let changes = RuleChanges {
            overrides: overrides.collect(),
            access: access.collect(),
            ..RuleChanges::default()
        };
        files.amended(changes)
    }
}

fn entry(strategy: Option<&str>, denies: bool, consumer: &str) -> AccessEntry {
    let listed = if denies { Listed::Deny } else { Listed::Allow };
    AccessEntry { strategy: strategy.map(Into::into), listed, consumer: consumer.into() }
}

#[test]
fn random_edits_make_what_all_changes_together_make() {
    let (files, mut live) = (files(), LiveChanges::default());
    let (mut rules, mut anew, mut number) = (files.amended(RuleChanges::default()), 0, 7_u64);
    let mut random = |bound: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % bound
    };
    for step in 0..3_000 {
        let consumer = ["me", "gold-1", "go*", "*", "bad"][random(5) as usize];
        let before = (step % 97 == 0).then(|| (rules.clone(), seen(&rules)));
        let edit = if random(2) == 0 {
            let (at, resource) = (random(2) as usize, ["*", "x", "y/*", "y/1"][random(4) as usize]);
            let name = ["each", "shared"][at];
            if random(2) == 0 {
                live.overrides.remove(&(at, consumer, resource));
                RuleEdit::RemoveOverride {
                    strategy: name.into(),
                    consumer: consumer.into(),
                    resource: resource.into(),
                }
            } else {
                let number = 1 + random(5);
                live.overrides.insert((at, consumer, resource), number);
                let one = override_of(&files.strategies()[at], consumer, resource, number);
                RuleEdit::SetOverride(Box::new(one))
            }
        } else {
            let key = ([None, Some("each")][random(2) as usize], random(2) == 0, consumer);
            let one = entry(key.0, key.1, consumer);
            if random(2) == 0 {
                live.access.remove(&key);
                RuleEdit::RemoveAccess(one)
            } else {
                live.access.insert(key, ());
                RuleEdit::SetAccess(one)
            }
        };
        let edited = rules.edited(std::slice::from_ref(&edit));
        anew += usize::from(edited.is_none());
        rules = edited.unwrap_or_else(|| live.whole(&files));
        assert_eq!(seen(&rules), seen(&live.whole(&files)), "step {step}: {edit:?}");
        if let Some((rules, was)) = before {
            assert_eq!(seen(&rules), was, "rules in use have changed");
        }
    }
    assert!((1..600).contains(&anew), "{anew} of 3000 were made anew");
}

/// Unchanged strategies keep their identity, and with it the known denials.
#[test]
fn an_edit_leaves_the_ids_of_everything_else() {
    let files = files();
    let one =
        |consumer| RuleEdit::SetOverride(Box::new(override_of(&files.strategies()[0], consumer, "*", 3)));
    let rules = files.edited(&[one("me")]).unwrap();
    let next = rules.edited(&[one("you")]).unwrap();
    let id = |rules: &Rules, consumer| rules.resolve_for("x", consumer, "").unwrap().strategy.id();
    assert_eq!(id(&rules, "me"), id(&next, "me"));
    assert_eq!(id(&files, "gold-1"), id(&next, "gold-1"));
    assert_eq!(files.strategies()[0].id(), next.strategies()[0].id());
    assert_ne!(id(&rules, "you"), id(&next, "you"));
}
