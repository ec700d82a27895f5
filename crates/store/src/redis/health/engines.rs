//! The capabilities in use, which a node must be able to run: engines, leases, queues, usage and live control.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use weir_core::algorithm::EngineKind;

/// A bit set of engines, with flags for leases, queues, usage and live control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineSet(u32);

/// The engines of all current strategies and rules. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct EnginesInUse(Arc<InUse>);

#[derive(Debug, Default)]
struct InUse {
    strategies: AtomicU32,
    rules: AtomicU32,
}

impl FromIterator<EngineKind> for EngineSet {
    fn from_iter<I: IntoIterator<Item = EngineKind>>(engines: I) -> Self {
        Self(engines.into_iter().fold(0, |all, engine| all | bit(engine)))
    }
}

impl EngineSet {
    /// Adds leases if `leases` is true.
    #[must_use]
    pub const fn with_leases(self, leases: bool) -> Self {
        Self(self.0 | if leases { LEASES } else { 0 })
    }

    /// Adds queues if `queues` is true.
    #[must_use]
    pub const fn with_queues(self, queues: bool) -> Self {
        Self(self.0 | if queues { QUEUES } else { 0 })
    }

    /// Adds queues that ask how far they are read, if `groups` is true: those that drop or outdate items.
    #[must_use]
    pub const fn with_queue_groups(self, groups: bool) -> Self {
        Self(self.0 | if groups { GROUPS } else { 0 })
    }

    /// True if such queues are in the set.
    pub(super) const fn has_queue_groups(self) -> bool {
        self.0 & GROUPS != 0
    }

    /// Adds shared usage if `usage` is true.
    #[must_use]
    pub const fn with_usage(self, usage: bool) -> Self {
        Self(self.0 | if usage { USAGE } else { 0 })
    }

    /// Adds live control if `control` is true.
    #[must_use]
    pub const fn with_control(self, control: bool) -> Self {
        Self(self.0 | if control { CONTROL } else { 0 })
    }

    /// Adds strategies that nodes count on their own if `approximate` is true.
    #[must_use]
    pub const fn with_approximate(self, approximate: bool) -> Self {
        Self(self.0 | if approximate { APPROXIMATE } else { 0 })
    }

    /// True if strategies that nodes count on their own are in the set.
    pub(super) const fn has_approximate(self) -> bool {
        self.0 & APPROXIMATE != 0
    }

    /// True if live control is in the set.
    pub(super) const fn has_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// True if queues are in the set.
    pub(super) const fn has_queues(self) -> bool {
        self.0 & QUEUES != 0
    }

    /// True if usage is in the set.
    pub(super) const fn has_usage(self) -> bool {
        self.0 & USAGE != 0
    }

    /// True if leases are in the set.
    pub(super) const fn has_leases(self) -> bool {
        self.0 & LEASES != 0
    }

    /// True if `engine` is in the set.
    pub(super) fn has(self, engine: EngineKind) -> bool {
        self.0 & bit(engine) != 0
    }
}

impl EnginesInUse {
    /// Sets the engines of the configured strategies.
    pub fn set_strategies(&self, engines: EngineSet) {
        self.0.strategies.store(engines.0, Relaxed);
    }

    /// Sets the engines of the rules in Envoy's files, after every reload.
    pub fn set_rules(&self, engines: EngineSet) {
        self.0.rules.store(engines.0, Relaxed);
    }

    /// Returns all of them. Without any but usage and live control it adds the window, which limits in Envoy's requests use.
    pub(super) fn all(&self) -> EngineSet {
        let used = self.0.strategies.load(Relaxed) | self.0.rules.load(Relaxed);
        EngineSet(if used & !(USAGE | CONTROL) == 0 { used | bit(EngineKind::Window) } else { used })
    }
}

/// Flag bits of leases, queues, usage and live control, above those of engines.
const LEASES: u32 = 1 << 15;
const QUEUES: u32 = 1 << 14;
const USAGE: u32 = 1 << 13;
const CONTROL: u32 = 1 << 12;
/// Queues that ask how far they are read.
const GROUPS: u32 = 1 << 16;
/// Strategies that nodes count on their own.
const APPROXIMATE: u32 = 1 << 17;

const fn bit(engine: EngineKind) -> u32 {
    1 << engine.number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_strategies_and_of_rules() {
        use EngineKind::{Bucket, Log, Window};
        let in_use = EnginesInUse::default();
        let used = || [Bucket, Window, Log].map(|engine| in_use.all().has(engine));
        assert_eq!(used(), [false, true, false]);
        in_use.set_strategies([Bucket].into_iter().collect());
        assert_eq!(used(), [true, false, false]);
        in_use.set_rules([Log, Window].into_iter().collect());
        assert_eq!(used(), [true, true, true]);
        in_use.set_rules(EngineSet::default());
        assert_eq!(used(), [true, false, false]);
        assert!(!in_use.all().has_leases());
        in_use.set_strategies(EngineSet::default().with_leases(true));
        assert_eq!((used(), in_use.all().has_leases()), ([false; 3], true), "leases need no engine");
        in_use.set_strategies(EngineSet::default().with_usage(true));
        assert_eq!((used(), in_use.all().has_usage()), ([false, true, false], true), "usage decides nothing");
        in_use.set_strategies(EngineSet::default().with_control(true));
        assert_eq!(
            (used(), in_use.all().has_control()),
            ([false, true, false], true),
            "nor does live control"
        );
    }
}
