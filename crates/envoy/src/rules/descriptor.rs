//! A domain as written: the source from which [`super::Domains`] are compiled.

use std::sync::Arc;

use super::{Cidr, Glob, Metadata, RateLimit};

/// A descriptor of a file, with what is below it.
#[derive(Debug, Clone)]
pub struct Descriptor {
    /// The key; with `*` in it, a pattern of keys.
    pub key: Arc<str>,
    /// Values that it matches.
    pub matcher: Matcher,
    /// True if all values that it matches share a counter.
    pub share_threshold: bool,
    /// True if the reference would show the value in its metrics.
    pub value_to_metric: bool,
    /// The node's own rule; without one it only leads to the next level.
    pub rule: Option<Box<Draft>>,
    /// The next level.
    pub descriptors: Vec<Descriptor>,
}

/// Values that a descriptor matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    /// All values that no other descriptor of the same key matches.
    Any,
    /// One value.
    Exact(Arc<str>),
    /// A pattern with `*`.
    Glob(Box<Glob>),
    /// Addresses in one of these networks.
    Cidr(Vec<Cidr>),
    /// A regular expression for the whole value.
    Regex(String),
}

/// A rule before its path is known.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// See [`super::Rule::name`].
    pub name: String,
    /// See [`super::Rule::replaces`].
    pub replaces: Vec<String>,
    /// See [`super::Rule::shadow_mode`].
    pub shadow_mode: bool,
    /// See [`super::Rule::quota_mode`].
    pub quota_mode: bool,
    /// See [`super::Rule::detailed_metric`].
    pub detailed_metric: bool,
    /// See [`super::Rule::metadata`].
    pub metadata: Option<Metadata>,
    /// See [`super::Rule::limit`].
    pub limit: Option<RateLimit>,
    /// The keys of Weir's own that its file sets: an overlay may not set them too.
    pub given: Vec<&'static str>,
}

impl Matcher {
    /// Text of the matcher; empty for any value.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Any => String::new(),
            Self::Exact(text) => text.to_string(),
            Self::Glob(glob) => glob.to_string(),
            Self::Cidr(networks) => {
                let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
                format!("cidr:{}", networks.join(","))
            }
            Self::Regex(text) => format!("regex:{text}"),
        }
    }
}

impl Descriptor {
    /// `key` or `key_value`.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.matcher {
            Matcher::Any => self.key.to_string(),
            matcher => format!("{}_{}", self.key, matcher.text()),
        }
    }

    /// True if it matches more than one value or key. Of several patterns the first in the file applies.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.key.contains('*')
            || matches!(self.matcher, Matcher::Glob(_) | Matcher::Cidr(_) | Matcher::Regex(_))
    }
}
