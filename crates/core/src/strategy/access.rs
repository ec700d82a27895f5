//! Consumers that no limit is asked about: deny lists and allow lists.
//!
//! Every deny list goes before every allow list. So a consumer on both is denied, whichever of the lists is the
//! strategy's own and whichever is for all strategies.

use super::{Pattern, Patterns};

/// A deny list and an allow list, of consumers and patterns of consumers.
#[derive(Debug, Clone, Default)]
pub struct Access {
    deny: Patterns<()>,
    allow: Patterns<()>,
}

/// Effect of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Nothing passes.
    Deny,
    /// Everything passes, and nothing is charged.
    Allow,
}

/// Why a consumer is said to be on a list.
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
        }
    }

    /// True if both lists are empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.allow.is_empty()
    }
}

/// The list that answers for `consumer`, if one does.
pub(super) fn listing<'a>(all: &'a Access, own: Option<&'a Access>, consumer: &str) -> Option<Listing<'a>> {
    let find = |listed, list: &'a Patterns<()>, own| {
        list.find(consumer).map(|(pattern, ())| Listing { listed, pattern, own })
    };
    find(Listed::Deny, &all.deny, false)
        .or_else(|| find(Listed::Deny, &own?.deny, true))
        .or_else(|| find(Listed::Allow, &all.allow, false))
        .or_else(|| find(Listed::Allow, &own?.allow, true))
}
