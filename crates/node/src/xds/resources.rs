//! A set of resources as domains. What is wrong with one domain leaves the others alone.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_types::Any;
use weir_config::{DomainSet, ENVOY_RULES, EnvoyOverlay, GoodDomains, MAX_DESCRIPTORS, MAX_ENVOY_TEXT};
use weir_core::envoy::Descriptor;
use weir_proto::ratelimit::config::ratelimit::v3::RateLimitConfig;

use super::TYPE_URL;
use super::descriptors::{LevelReader, Mistakes, Siblings};

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

/// Reads all resources. Domains of resources that cannot be decoded are not known: then those of `before` that are not
/// in the set go on.
pub(super) fn read(
    resources: &[Any],
    merge_domains: bool,
    overlay: &EnvoyOverlay,
    before: &GoodDomains,
) -> ReadSet {
    let mut reader = SetReader { merge_domains, ..SetReader::default() };
    let mut configs: Vec<RateLimitConfig> = Vec::new();
    for resource in resources {
        match reader.decode(resource) {
            Ok(config) => configs.push(config),
            Err(reason) => {
                reader.is_blind = true;
                reader.mistakes.add("a resource that cannot be decoded", &reason);
            }
        }
    }
    // Servers send them in any order; the same set always means the same.
    configs.sort_by(|one, other| (&one.domain, &one.name).cmp(&(&other.domain, &other.name)));
    for config in configs {
        reader.add(config);
    }
    reader.finish(overlay, before)
}

#[derive(Default)]
struct SetReader {
    merge_domains: bool,
    domains: BTreeMap<String, ReadDomain>,
    refused: BTreeSet<String>,
    is_blind: bool,
    descriptors: usize,
    mistakes: Mistakes,
}

impl SetReader {
    fn decode(&mut self, resource: &Any) -> Result<RateLimitConfig, String> {
        if resource.type_url != TYPE_URL {
            return Err(format!("its type is {:?}", super::descriptors::shortened(&resource.type_url)));
        }
        // They are counted first: a message of two bytes each becomes hundreds in memory.
        let count = descriptors_in(&resource.value, CONFIG, 0).ok_or("it is not Protobuf")?;
        self.descriptors += count;
        if self.descriptors > MAX_DESCRIPTORS {
            return Err(format!("all resources together have at most {MAX_DESCRIPTORS} descriptors"));
        }
        RateLimitConfig::decode(&*resource.value).map_err(|error| error.to_string())
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
        let mut reader = LevelReader { resource: &name, mistakes: &mut self.mistakes };
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

/// The field of descriptors in a resource, and in a descriptor.
const CONFIG: u32 = 3;
const DESCRIPTOR: u32 = 4;

/// Counts the descriptors in a message; `None` if it is not Protobuf, or nests too deep for its decoder.
fn descriptors_in(mut message: &[u8], field: u32, depth: usize) -> Option<usize> {
    const DECODED: usize = 100;
    if depth > DECODED {
        return None;
    }
    let mut count = 0;
    while !message.is_empty() {
        let (tag, wire) = decode_key(&mut message).ok()?;
        if tag == field && wire == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut message).ok()?).ok()?;
            let (inner, rest) = message.split_at_checked(length)?;
            count += 1 + descriptors_in(inner, DESCRIPTOR, depth + 1)?;
            message = rest;
        } else {
            skip_field(wire, tag, &mut message, DecodeContext::default()).ok()?;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use weir_proto::ratelimit::config::ratelimit::v3::{RateLimitDescriptor, RateLimitPolicy, RateLimitUnit};

    use super::*;

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
        read(resources, merge_domains, &EnvoyOverlay::default(), before)
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
        let many = resource("d", vec![RateLimitDescriptor::default(); MAX_DESCRIPTORS + 1]);
        assert!(mistakes(&[many])[0].ends_with("have at most 100000 descriptors"));
    }
}
