//! Access lists: consumers that are denied or allowed without asking any limit.
//!
//! Deny lists take precedence over allow lists: a consumer on both is denied, whether the lists are the strategy's
//! own or for all strategies.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::shared_patterns::SharedPatterns;
use super::{Pattern, Patterns};

/// A deny list and an allow list, of consumers and patterns of consumers.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The lists of the files; `None` if both are empty. Snapshots share them: there may be many entries.
    files: Option<Arc<Lists<Patterns<()>>>>,
    /// The lists of live control, which are looked at before all of these; `None` if both are empty.
    first: Option<Arc<Lists<SharedPatterns<()>>>>,
}

#[derive(Debug, Clone, Default)]
struct Lists<T> {
    deny: T,
    allow: T,
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
    pub fn new(deny: impl IntoIterator<Item = String>, allow: impl IntoIterator<Item = String>) -> Self {
        let list = |entry: String| (entry, ());
        let deny = Patterns::new(deny.into_iter().map(list));
        let allow = Patterns::new(allow.into_iter().map(list));
        let is_empty = deny.is_empty() && allow.is_empty();
        Self { files: (!is_empty).then(|| Arc::new(Lists { deny, allow })), first: None }
    }

    /// True if the files' lists of `other` have the same entries.
    pub fn has_the_same(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }

    /// Returns the entries that stand on both lists, sorted.
    pub fn on_both_lists(&self) -> Vec<String> {
        let [deny, allow] = self.sorted();
        deny.intersection(&allow).cloned().collect()
    }

    /// The files' lists without those of live control. It shares their tables.
    pub(super) fn rest(&self) -> Self {
        Self { files: self.files.clone(), first: None }
    }

    /// Adds an entry of live control's lists, or removes it.
    pub(super) fn set_live(&mut self, listed: Listed, consumer: &str, is_there: bool) {
        let mut lists = self.first.as_deref().cloned().unwrap_or_default();
        let list = match listed {
            Listed::Deny => &mut lists.deny,
            Listed::Allow => &mut lists.allow,
        };
        if is_there {
            list.insert(consumer, ());
        } else {
            list.remove(consumer);
        }
        let is_empty = lists.deny.is_empty() && lists.allow.is_empty();
        self.first = (!is_empty).then(|| Arc::new(lists));
    }

    /// The entries of the files' deny list and allow list.
    fn sorted(&self) -> [BTreeSet<String>; 2] {
        let sorted = |list: &Patterns<()>| list.iter().map(|(pattern, ())| pattern.to_string()).collect();
        self.files.as_ref().map_or_else(Default::default, |files| [sorted(&files.deny), sorted(&files.allow)])
    }

    /// True if both lists are empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.files.is_none() && self.first.is_none()
    }
}

/// The list that applies to `consumer`, if any: of live control's, or else of the files'.
pub(super) fn listing<'a>(all: &'a Access, own: Option<&'a Access>, consumer: &str) -> Option<Listing<'a>> {
    let live = (all.first.as_deref(), own.and_then(|own| own.first.as_deref()));
    let files = (all.files.as_deref(), own.and_then(|own| own.files.as_deref()));
    let of_live = listing_of(live, |list| Some(list.find(consumer)?.0));
    of_live.or_else(|| listing_of(files, |list| Some(list.find(consumer)?.0)))
}

/// The list that applies of those of all strategies and of one strategy.
fn listing_of<'a, T>(
    (all, own): (Option<&'a Lists<T>>, Option<&'a Lists<T>>),
    find: impl Fn(&'a T) -> Option<Pattern<'a>>,
) -> Option<Listing<'a>> {
    if all.is_none() && own.is_none() {
        return None;
    }
    let deny = |lists: Option<&'a Lists<T>>, own| {
        Some(Listing { listed: Listed::Deny, pattern: find(&lists?.deny)?, own })
    };
    let allow = |lists: Option<&'a Lists<T>>, own| {
        Some(Listing { listed: Listed::Allow, pattern: find(&lists?.allow)?, own })
    };
    deny(all, false).or_else(|| deny(own, true)).or_else(|| allow(all, false)).or_else(|| allow(own, true))
}
