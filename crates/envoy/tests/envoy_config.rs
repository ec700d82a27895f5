//! Envoy's descriptors: how files are read, and which rule a descriptor matches.

mod bounds;
mod cost;
mod files;
mod globs;
mod isolation;
mod matching;
mod mistakes;
mod overlay;
mod parser;
mod reference;
mod reload;
mod section;

use weir_core::strategy::FailurePolicy;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::{Descriptor, Domains, Draft, Glob, Kind, Matcher, RateLimit, Unit};

/// A descriptor with a limit of `requests` a minute; `value` as files write it, empty for any.
fn limited(key: &str, value: &str, requests: u32) -> Descriptor {
    let kind = Kind::FixedWindow { count_rejected: false };
    let limit = RateLimit::new(requests, Unit::Minute, 1, kind, FailurePolicy::Error).unwrap();
    let rule = Draft { limit: Some(limit), ..Draft::default() };
    Descriptor { rule: Some(Box::new(rule)), ..bare(key, value) }
}

/// A descriptor that only leads on.
fn bare(key: &str, value: &str) -> Descriptor {
    let matcher = match (value, Glob::new(value)) {
        ("", _) => Matcher::Any,
        (_, Some(glob)) => Matcher::Glob(Box::new(glob)),
        (value, None) => Matcher::Exact(value.into()),
    };
    Descriptor {
        key: key.into(),
        matcher,
        share_threshold: false,
        value_to_metric: false,
        rule: None,
        descriptors: Vec::new(),
    }
}

/// Parses one file.
fn parse(text: &str) -> Result<EnvoyFiles, String> {
    EnvoyFiles::parse([("f.yaml", text)], false).map_err(|errors| errors.to_string())
}

fn accepted(text: &str) -> EnvoyFiles {
    parse(text).unwrap_or_else(|errors| panic!("{text}\nis refused:\n{errors}"))
}

/// One domain, named `d`.
fn domain(descriptors: Vec<Descriptor>) -> Domains {
    Domains::new([("d".to_owned(), descriptors)])
}

/// The limit that a descriptor of domain `d` matches. `k=v,k=v` are its entries.
fn limit_of(domains: &Domains, entries: &str) -> Option<u32> {
    let entries = entries.split(',').filter_map(|entry| entry.split_once('='));
    let matched = domains.find("d")?.find(entries)?;
    Some(matched.limit.as_ref()?.requests_per_unit())
}
