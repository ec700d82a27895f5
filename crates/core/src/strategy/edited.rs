//! Rules in force after a change of single overrides and entries of lists by live control. Everything that did not change is
//! shared with the rules before, so the cost does not grow with the number of entries.

use std::sync::Arc;

use super::rules::engines_of;
use super::tiers::mixes;
use super::{AccessEntry, Field, Override, Rules, Strategy};

/// A change of live control on top of rules that have the others.
#[derive(Debug, Clone)]
pub enum RuleEdit {
    /// Adds an override, or replaces the one for the same consumers and resources.
    SetOverride(Box<Override>),
    /// Removes an override.
    RemoveOverride {
        /// The strategy.
        strategy: Box<str>,
        /// The consumer, or the pattern of consumers.
        consumer: Box<str>,
        /// The resource, or the pattern of resources.
        resource: Box<str>,
    },
    /// Adds an entry of an access list.
    SetAccess(AccessEntry),
    /// Removes an entry of an access list.
    RemoveAccess(AccessEntry),
}

impl Rules {
    /// Returns the rules with `edits`. `None`: an edit changes more than single entries, and the rules must be made anew:
    /// it is the first or the last override for some resources of a counter that resources share.
    pub fn edited(&self, edits: &[RuleEdit]) -> Option<Self> {
        let mut rules = self.clone();
        for edit in edits {
            match edit {
                RuleEdit::SetAccess(entry) => rules.set_live_access(entry, true),
                RuleEdit::RemoveAccess(entry) => rules.set_live_access(entry, false),
                RuleEdit::SetOverride(one) => rules.set_live_override(one)?,
                RuleEdit::RemoveOverride { strategy, consumer, resource } => {
                    rules.remove_live_override(strategy, consumer, resource)?;
                }
            }
        }
        Some(rules)
    }

    /// Adds or removes an entry of live control's lists. One of an unknown strategy has no effect.
    pub(super) fn set_live_access(&mut self, entry: &AccessEntry, is_there: bool) {
        let AccessEntry { strategy, listed, consumer } = entry;
        let access = match strategy {
            None => Some(&mut self.access),
            Some(name) => {
                let place = self.by_name.get(name).copied();
                place.and_then(|place| self.exceptions.get_mut(place)).map(|own| &mut own.access)
            }
        };
        if let Some(access) = access {
            access.set_live(*listed, consumer, is_there);
        }
    }

    fn set_live_override(&mut self, one: &Override) -> Option<()> {
        let Some(&place) = self.by_name.get(one.strategy.name()) else { return Some(()) };
        let base = self.strategies.get(place)?;
        if !base.mixes_numbers() && mixes(base, std::iter::once(one)) {
            return None;
        }
        let strategy = one.strategy.rebased(base);
        self.engines.extend(engines_of(&strategy));
        self.apply(place, (&one.consumer, &one.resource), Some(Arc::new(strategy)));
        Some(())
    }

    fn remove_live_override(&mut self, name: &str, consumer: &str, resource: &str) -> Option<()> {
        let Some(&place) = self.by_name.get(name) else { return Some(()) };
        self.apply(place, (consumer, resource), None);
        let (base, own) = (self.strategies.get(place)?, self.exceptions.get(place)?);
        let may_mix = base.limits().iter().any(|limit| !limit.scope.has(Field::Resource));
        let has_partial = own.overrides.first().is_some_and(|first| first.has_partial());
        let may_be_last = resource != "*" && base.mixes_numbers() && may_mix && !has_partial;
        (!may_be_last).then_some(())
    }

    /// Sets an override of the strategy at `place`, and in all shadows that decide by it.
    fn apply(&mut self, place: usize, names: (&str, &str), strategy: Option<Arc<Strategy>>) {
        for (live, shadows) in self.strategies.iter().zip(&mut self.shadows) {
            for shadow in shadows.iter_mut().filter(|shadow| shadow.index == place) {
                shadow.set_live(live, names, strategy.as_deref());
            }
        }
        if let Some(own) = self.exceptions.get_mut(place) {
            own.overrides.set_live(names.0, names.1, strategy);
        }
    }
}

#[cfg(test)]
mod tests;
