//! Access lists: consumers that are denied or allowed without asking any limit.
//!
//! Deny lists take precedence over allow lists: a consumer on both is denied, whether the lists are the strategy's
//! own or for all strategies.

use std::collections::BTreeSet;

use super::{Pattern, Patterns};

/// A deny list and an allow list, of consumers and patterns of consumers.
#[derive(Debug, Clone, Default)]
pub struct Access {
    deny: Patterns<()>,
    allow: Patterns<()>,
    /// The lists of live control, which are looked at before all of these.
    first: Option<Box<Self>>,
}

/// Effect of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Nothing passes.
    Deny,
    /// Everything passes, and nothing is charged.
    Allow,
}

/// The entry of a list that matched a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The kind of list.
    pub listed: Listed,
    /// The entry that matches.
    pub pattern: Pattern<'a>,
    /// True if the list is the strategy's own, not that of all strategies.
    pub own: bool,
}

impl Access {
    /// The lists of these consumers and patterns.
    #[must_use]
    pub fn new(deny: impl IntoIterator<Item = String>, allow: impl IntoIterator<Item = String>) -> Self {
        let list = |entry: String| (entry, ());
        Self {
            deny: Patterns::new(deny.into_iter().map(list)),
            allow: Patterns::new(allow.into_iter().map(list)),
            first: None,
        }
    }

    /// True if `other` has the same entries.
    #[must_use]
    pub fn has_the_same(&self, other: &Self) -> bool {
        let sorted = |list: &Patterns<()>| {
            let mut entries: Vec<String> = list.iter().map(|(pattern, ())| pattern.to_string()).collect();
            entries.sort_unstable();
            entries
        };
        sorted(&self.deny) == sorted(&other.deny) && sorted(&self.allow) == sorted(&other.allow)
    }

    /// Returns the entries that stand on both lists, sorted.
    #[must_use]
    pub fn on_both_lists(&self) -> Vec<String> {
        let entries = |list: &Patterns<()>| list.iter().map(|(pattern, ())| pattern.to_string()).collect();
        let (deny, allow): (BTreeSet<String>, BTreeSet<String>) = (entries(&self.deny), entries(&self.allow));
        deny.intersection(&allow).cloned().collect()
    }

    /// Adds lists that are looked at before all of these.
    #[must_use]
    pub fn after(self, first: Self) -> Self {
        Self { first: (!first.is_empty()).then(|| Box::new(first)), ..self }
    }

    /// True if both lists are empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.allow.is_empty() && self.first.is_none()
    }
}

/// The list that applies to `consumer`, if any: of live control's, or else of the files'.
pub(super) fn listing<'a>(all: &'a Access, own: Option<&'a Access>, consumer: &str) -> Option<Listing<'a>> {
    let (first_all, first_own) = (all.first.as_deref(), own.and_then(|own| own.first.as_deref()));
    let first = match (first_all, first_own) {
        (None, None) => None,
        (all, own) => listing_of(all, own, consumer),
    };
    first.or_else(|| listing_of(Some(all), own, consumer))
}

fn listing_of<'a>(all: Option<&'a Access>, own: Option<&'a Access>, consumer: &str) -> Option<Listing<'a>> {
    let find = |listed, list: &'a Patterns<()>, own| {
        list.find(consumer).map(|(pattern, ())| Listing { listed, pattern, own })
    };
    None.or_else(|| find(Listed::Deny, &all?.deny, false))
        .or_else(|| find(Listed::Deny, &own?.deny, true))
        .or_else(|| find(Listed::Allow, &all?.allow, false))
        .or_else(|| find(Listed::Allow, &own?.allow, true))
}
