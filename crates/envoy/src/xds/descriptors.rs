//! Messages of descriptors as the limits that they say. Mistakes have the texts of the reference, where it has one.

use std::collections::HashSet;
use std::sync::Arc;

use crate::files::MAX_ENVOY_LEVELS;
use crate::overlay::MAX_ENVOY_TEXT;
use crate::rules::{Descriptor, Draft, Glob, Kind, Matcher, Metadata, RateLimit, SharedParts, Unit};
use prost_types::Struct;
use prost_types::value::Kind as ValueKind;
use weir_core::strategy::FailurePolicy;
use weir_proto::ratelimit::config::ratelimit::v3::{RateLimitDescriptor, RateLimitPolicy};

/// The most mistakes of a set that are kept.
pub(super) const MAX_MISTAKES: usize = 100;

/// Mistakes of one set, a line each.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    pub(super) lines: Vec<String>,
    pub(super) count: usize,
}

/// The siblings of a level: keys with the texts of their values.
pub(super) type Siblings = HashSet<(Arc<str>, String)>;

/// Reads the descriptors of one resource.
pub(super) struct LevelReader<'r> {
    /// The name of the resource.
    pub(super) resource: &'r str,
    pub(super) mistakes: &'r mut Mistakes,
    /// Parts that the rules of the set share.
    pub(super) parts: &'r mut SharedParts,
}

impl Mistakes {
    /// Adds a line about a resource.
    pub(super) fn add(&mut self, resource: &str, reason: &str) {
        self.count += 1;
        if self.lines.len() < MAX_MISTAKES {
            let resource = shortened(resource);
            self.lines.push(format!("{}: {reason}", resource.escape_debug()));
        }
    }
}

impl LevelReader<'_> {
    /// Reads a level. `path` leads to it, and `seen` are its siblings in other resources.
    pub(super) fn level(
        &mut self,
        messages: Vec<RateLimitDescriptor>,
        path: &str,
        depth: usize,
        seen: &mut Siblings,
    ) -> Vec<Descriptor> {
        if depth >= MAX_ENVOY_LEVELS && !messages.is_empty() {
            self.wrong(&format!("descriptors nest at most {MAX_ENVOY_LEVELS} levels deep"));
            return Vec::new();
        }
        // Collected in place, they would keep the room of the messages.
        let mut descriptors = Vec::with_capacity(messages.len());
        for message in messages {
            descriptors.push(self.one(message, path, depth, seen));
        }
        descriptors
    }

    fn one(
        &mut self,
        message: RateLimitDescriptor,
        path: &str,
        depth: usize,
        seen: &mut Siblings,
    ) -> Descriptor {
        let RateLimitDescriptor { key, value, rate_limit, descriptors, .. } = message;
        for text in [&key, &value] {
            self.check_length(text);
        }
        let matcher = match Glob::new(&value) {
            Some(glob) => Matcher::Glob(Box::new(glob)),
            None if value.is_empty() => Matcher::Any,
            None => Matcher::Exact(self.parts.text(&value)),
        };
        let mut descriptor = Descriptor {
            key: self.parts.text(&key),
            matcher,
            share_threshold: false,
            value_to_metric: false,
            rule: None,
            descriptors: Vec::new(),
        };
        let path = format!("{path}.{}", descriptor.path());
        if descriptor.key.is_empty() {
            self.wrong("descriptor has empty key");
        } else if !seen.insert((Arc::clone(&descriptor.key), descriptor.matcher.text())) {
            self.wrong(&format!("duplicate descriptor composite key '{}'", shortened(&path)));
        }
        let rule = rate_limit.and_then(|policy| self.rule(policy));
        descriptor.rule = rule.map(|draft| {
            Box::new(Draft {
                shadow_mode: message.shadow_mode,
                quota_mode: message.quota_mode,
                detailed_metric: message.detailed_metric,
                metadata: message.metadata.map(map),
                ..draft
            })
        });
        descriptor.descriptors = self.level(descriptors, &path, depth + 1, &mut Siblings::new());
        descriptor
    }

    fn rule(&mut self, policy: RateLimitPolicy) -> Option<Draft> {
        let RateLimitPolicy { unit, requests_per_unit, unlimited, name, replaces } = policy;
        self.check_length(&name);
        for replaced in &replaces {
            self.check_length(&replaced.name);
            match &replaced.name {
                replaced if replaced.is_empty() => self.wrong("should not have an empty replaces entry"),
                replaced if *replaced == name => {
                    self.wrong("replaces should not contain name of same descriptor");
                }
                _ => {}
            }
        }
        let replaces = replaces.into_iter().map(|replaced| replaced.name).collect();
        if unlimited {
            if unit != 0 {
                self.wrong("should not specify rate limit unit when unlimited");
            }
            return Some(Draft { name, replaces, ..Draft::default() });
        }
        let Some(unit) = Unit::of_wire(unit) else {
            let shown = if unit == 0 { "UNKNOWN".to_owned() } else { unit.to_string() };
            self.wrong(&format!("invalid rate limit unit '{shown}'"));
            return None;
        };
        let kind = Kind::FixedWindow { count_rejected: false };
        match RateLimit::new(requests_per_unit, unit, 1, kind, FailurePolicy::default()) {
            Ok(limit) => {
                let limit = Some(self.parts.share(limit));
                Some(Draft { name, replaces, limit, ..Draft::default() })
            }
            Err(invalid) => {
                self.wrong(&format!("{} is out of bounds: {}", invalid.field, invalid.bound));
                None
            }
        }
    }

    fn check_length(&mut self, text: &str) {
        if text.len() > MAX_ENVOY_TEXT {
            let (shown, length) = (shortened(text), text.len());
            self.wrong(&format!("{shown:?} is {length} bytes long: at most {MAX_ENVOY_TEXT}"));
        }
    }

    fn wrong(&mut self, reason: &str) {
        self.mistakes.add(self.resource, reason);
    }
}

/// Metadata as files have it. The decoder bounds how deep it nests.
fn map(message: Struct) -> Metadata {
    Metadata::Map(
        message.fields.into_iter().map(|(name, value)| (name.into(), converted(value.kind))).collect(),
    )
}

fn converted(value: Option<ValueKind>) -> Metadata {
    match value {
        None | Some(ValueKind::NullValue(_)) => Metadata::Null,
        Some(ValueKind::BoolValue(value)) => Metadata::Bool(value),
        Some(ValueKind::NumberValue(value)) => Metadata::Number(value),
        Some(ValueKind::StringValue(value)) => Metadata::Text(value.into()),
        Some(ValueKind::ListValue(list)) => {
            Metadata::List(list.values.into_iter().map(|value| converted(value.kind)).collect())
        }
        Some(ValueKind::StructValue(value)) => map(value),
    }
}

/// A text as errors show it.
pub(super) fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
