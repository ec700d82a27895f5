//! A set of resources as domains. What is wrong with one domain leaves the others alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{DomainSet, GoodDomains, RuleCount};
use crate::overlay::{ENVOY_RULES, EnvoyOverlay, MAX_ENVOY_TEXT};
use crate::rules::{Descriptor, SharedParts};
use prost::Message as _;
use prost_types::Any;
use weir_proto::ratelimit::config::ratelimit::v3::RateLimitConfig;

use super::descriptors::{LevelReader, Mistakes, Siblings, shortened};
use super::outline::ResourceOutline;

/// A set, read.
#[derive(Debug, Default)]
pub(super) struct ReadSet {
    pub(super) set: DomainSet,
    /// Every mistake, a line each.
    pub(super) mistakes: Vec<String>,
    /// A line for each entry of the overlay that matches no rule.
    pub(super) unmatched: Vec<String>,
}

/// The first level of a domain, as far as it was read.
#[derive(Default)]
struct ReadDomain {
    descriptors: Vec<Descriptor>,
    siblings: Siblings,
    resources: usize,
}

/// Rules for all sets.
#[derive(Debug, Clone)]
pub(super) struct SetRules {
    /// True if resources may share a domain.
    pub(super) merge_domains: bool,
    /// The most rules in a set.
    pub(super) max_rules: usize,
    pub(super) overlay: EnvoyOverlay,
}

/// Reads all resources. Domains of resources that cannot be decoded are not known: then those of `before` that are not
/// in the set go on.
pub(super) fn read(resources: &[Any], rules: &SetRules, before: &GoodDomains) -> ReadSet {
    let mut reader = SetReader { merge_domains: rules.merge_domains, ..SetReader::default() };
    let mut outlines: Vec<ResourceOutline<'_>> = Vec::new();
    for resource in resources {
        match ResourceOutline::new(resource) {
            Ok(outline) => outlines.push(outline),
            Err(reason) => {
                reader.is_blind = true;
                reader.mistakes.add("a resource that cannot be decoded", &reason);
            }
        }
    }
    // Servers send them in any order; the same set always means the same.
    outlines.sort_by_key(|outline| (outline.domain, outline.name));
    let mut total = RuleCount::default();
    for domain in outlines.chunk_by(|one, other| one.domain == other.domain) {
        let mut with = total;
        domain.iter().for_each(|outline| with.add_all(outline.count));
        match with.excess(rules.max_rules) {
            None => {
                total = with;
                domain.iter().for_each(|outline| reader.decode(outline));
            }
            Some(excess) => reader.refuse(domain, &excess),
        }
    }
    reader.finish(&rules.overlay, before)
}

#[derive(Default)]
struct SetReader {
    merge_domains: bool,
    domains: BTreeMap<String, ReadDomain>,
    refused: BTreeSet<String>,
    is_blind: bool,
    mistakes: Mistakes,
    parts: SharedParts,
}

impl SetReader {
    fn decode(&mut self, outline: &ResourceOutline<'_>) {
        match RateLimitConfig::decode(outline.bytes) {
            Ok(config) => self.add(config),
            Err(error) => {
                self.mistakes.add("a resource that cannot be decoded", &error.to_string());
                self.refused.insert(outline.domain.to_owned());
            }
        }
    }

    /// Refuses a domain with which there are too many rules.
    fn refuse(&mut self, resources: &[ResourceOutline<'_>], excess: &str) {
        let Some(ResourceOutline { domain, name, .. }) = resources.first() else { return };
        let shown = shortened(domain);
        self.mistakes.add(name, &format!("with domain '{}' there are {excess}", shown.escape_debug()));
        self.refused.insert((*domain).to_owned());
    }

    fn add(&mut self, config: RateLimitConfig) {
        let RateLimitConfig { name, domain, descriptors } = config;
        let before = self.mistakes.count;
        if domain.is_empty() {
            return self.mistakes.add(&name, "config file cannot have empty domain");
        }
        if domain.len() > MAX_ENVOY_TEXT {
            let reason = format!("the domain is {} bytes long: at most {MAX_ENVOY_TEXT}", domain.len());
            return self.mistakes.add(&name, &reason);
        }
        let known = self.domains.entry(domain.clone()).or_default();
        known.resources += 1;
        if known.resources > 1 && !self.merge_domains {
            let reason = format!("duplicate domain '{}' in config file", domain.escape_debug());
            self.mistakes.add(&name, &reason);
        }
        let mut reader =
            LevelReader { resource: &name, mistakes: &mut self.mistakes, parts: &mut self.parts };
        let more = reader.level(descriptors, &domain, 0, &mut known.siblings);
        known.descriptors.extend(more);
        if self.mistakes.count > before {
            self.refused.insert(domain);
        }
    }

    fn finish(self, overlay: &EnvoyOverlay, before: &GoodDomains) -> ReadSet {
        let Self { domains, mut refused, is_blind, mut mistakes, .. } = self;
        if is_blind {
            let gone = before.names().filter(|name| !domains.contains_key(*name));
            refused.extend(gone.map(str::to_owned));
        }
        let domains = domains.into_iter().map(|(name, domain)| (name, domain.descriptors));
        let mut domains: Vec<_> = domains.collect();
        let report = overlay.apply(&mut domains);
        for (domain, reason) in report.mistakes {
            mistakes.add(ENVOY_RULES, &reason);
            refused.insert(domain);
        }
        let Mistakes { mut lines, count } = mistakes;
        if count > lines.len() {
            lines.push(format!("{} more mistakes are not shown", count - lines.len()));
        }
        ReadSet {
            set: DomainSet { domains, refused, is_blind },
            mistakes: lines,
            unmatched: report.unmatched,
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ratelimit::config::ratelimit::v3::{RateLimitDescriptor, RateLimitPolicy, RateLimitUnit};

    use super::*;
    use crate::xds::TYPE_URL;

    fn leaf(key: &str, value: &str) -> RateLimitDescriptor {
        let policy = RateLimitPolicy {
            unit: RateLimitUnit::Hour.into(),
            requests_per_unit: 3,
            ..RateLimitPolicy::default()
        };
        RateLimitDescriptor {
            key: key.to_owned(),
            value: value.to_owned(),
            rate_limit: Some(policy),
            ..RateLimitDescriptor::default()
        }
    }

    fn resource(domain: &str, descriptors: Vec<RateLimitDescriptor>) -> Any {
        let config = RateLimitConfig { name: format!("r-{domain}"), domain: domain.to_owned(), descriptors };
        Any { type_url: TYPE_URL.to_owned(), value: config.encode_to_vec() }
    }

    fn read_alone(resources: &[Any], merge_domains: bool, before: &GoodDomains) -> ReadSet {
        read_bounded(resources, merge_domains, 100_000, before)
    }

    fn read_bounded(
        resources: &[Any],
        merge_domains: bool,
        max_rules: usize,
        before: &GoodDomains,
    ) -> ReadSet {
        let rules = SetRules { merge_domains, max_rules, overlay: EnvoyOverlay::default() };
        read(resources, &rules, before)
    }

    fn mistakes(resources: &[Any]) -> Vec<String> {
        read_alone(resources, false, &GoodDomains::default()).mistakes
    }

    #[test]
    fn mistakes_have_the_texts_of_the_reference() {
        let policy = |change: fn(&mut RateLimitPolicy)| {
            let mut one = leaf("k", "v");
            change(one.rate_limit.as_mut().unwrap());
            one
        };
        for (descriptors, text) in [
            (vec![leaf("", "v")], "descriptor has empty key"),
            (vec![leaf("k", "v"), leaf("k", "v")], "duplicate descriptor composite key 'd.k_v'"),
            (vec![policy(|policy| policy.unit = 0)], "invalid rate limit unit 'UNKNOWN'"),
            (vec![policy(|policy| policy.unit = 9)], "invalid rate limit unit '9'"),
            (
                vec![policy(|policy| policy.unlimited = true)],
                "should not specify rate limit unit when unlimited",
            ),
            (
                vec![policy(|policy| policy.replaces = vec![Default::default()])],
                "should not have an empty replaces entry",
            ),
        ] {
            assert_eq!(mistakes(&[resource("d", descriptors)]), [format!("r-d: {text}")]);
        }
        assert_eq!(mistakes(&[resource("", Vec::new())]), ["r-: config file cannot have empty domain"]);
        let twice = [resource("d", vec![leaf("a", "")]), resource("d", vec![leaf("b", "")])];
        assert_eq!(mistakes(&twice), ["r-d: duplicate domain 'd' in config file"]);
        let merged = read_alone(&twice, true, &GoodDomains::default());
        assert_eq!((merged.mistakes.len(), merged.set.domains.len()), (0, 1));
        assert_eq!(merged.set.domains[0].1.len(), 2);
    }

    #[test]
    fn one_domain_leaves_the_others_alone() {
        let mut good = GoodDomains::default();
        let first =
            read_alone(&[resource("a", vec![leaf("k", "")]), resource("b", Vec::new())], false, &good);
        assert_eq!(good.take(first.set).0.len(), 2);
        let second =
            read_alone(&[resource("a", vec![leaf("", "")]), resource("c", Vec::new())], false, &good);
        let (domains, refused) = good.take(second.set);
        assert_eq!((domains.len(), refused.len(), refused[0].goes_on), (2, 1, true));
        assert!(domains.find("a").is_some() && domains.find("b").is_none() && domains.find("c").is_some());
        let rubbish = Any { type_url: TYPE_URL.to_owned(), value: vec![0xff] };
        let blind = read_alone(&[resource("c", Vec::new()), rubbish], false, &good);
        assert_eq!(blind.mistakes.len(), 1);
        let (domains, refused) = good.take(blind.set);
        assert_eq!((domains.len(), refused.len(), refused[0].name.as_str()), (2, 1, "a"));
        assert!(domains.is_missing("b"), "nobody knows what the resource says");
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let nested = |levels: usize| {
            let mut one = leaf("k", "");
            for _ in 1..levels {
                one = RateLimitDescriptor { descriptors: vec![one], ..leaf("k", "") };
            }
            resource("d", vec![one])
        };
        assert_eq!(mistakes(&[nested(32)]).len(), 0);
        assert_eq!(mistakes(&[nested(33)]), ["r-d: descriptors nest at most 32 levels deep"]);
        assert_eq!(mistakes(&[nested(5_000)]).len(), 1);
        let many = resource("d", vec![RateLimitDescriptor::default(); 1_000_001]);
        let most = "r-d: with domain 'd' there are more than 1000000 descriptors in all domains, with and without a limit: raise `envoy.max_rules`";
        assert_eq!(mistakes(&[many]), [most]);
    }

    /// In any order the same domain is refused, and those after it that fit are not.
    #[test]
    fn the_domain_with_too_many_rules_is_named() {
        let good = GoodDomains::default();
        let leaves = |count: usize| (0..count).map(|index| leaf("k", &index.to_string())).collect::<Vec<_>>();
        let inner = RateLimitDescriptor { rate_limit: None, descriptors: leaves(3), ..leaf("inner", "") };
        let mut set = [
            resource("a", vec![inner]),
            resource("b", leaves(3)),
            resource("c", leaves(2)),
            resource("b", leaves(0)),
        ];
        for _ in 0..4 {
            set.rotate_left(1);
            let read = read_bounded(&set, true, 5, &good);
            let line =
                "r-b: with domain 'b' there are more than 5 rules in all domains: raise `envoy.max_rules`";
            assert_eq!(read.mistakes, [line]);
            let names: Vec<&str> = read.set.domains.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!((names, read.set.is_blind), (vec!["a", "c"], false));
            assert!(read.set.refused.contains("b"));
            assert!(read_bounded(&set, true, 8, &good).mistakes.is_empty());
        }
    }
}
