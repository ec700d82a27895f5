//! Uses of a backend, which its nodes must support: the engines of its decisions, and the scripts of
//! features.

use std::sync::Arc;

use parking_lot::Mutex;
use weir_core::algorithm::EngineKind;

use super::ScriptSpec;

/// Engines, and scripts of features.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Uses {
    /// A bit for each engine.
    engines: u32,
    pub(crate) features: Vec<&'static ScriptSpec>,
}

/// Uses of all current strategies and features. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct UsesInForce(Arc<Mutex<Uses>>);

impl FromIterator<EngineKind> for Uses {
    fn from_iter<I: IntoIterator<Item = EngineKind>>(engines: I) -> Self {
        let engines = engines.into_iter().fold(0, |all, engine| all | bit(engine));
        Self { engines, features: Vec::new() }
    }
}

impl Uses {
    /// Adds the scripts of a feature if `is_used` is true.
    #[must_use]
    pub fn with(mut self, feature: &'static ScriptSpec, is_used: bool) -> Self {
        if is_used && !self.features.contains(&feature) {
            self.features.push(feature);
        }
        self
    }

    /// Adds what others use.
    #[must_use]
    pub fn and(self, others: &Self) -> Self {
        let engines = self.engines | others.engines;
        others.features.iter().fold(Self { engines, ..self }, |all, feature| all.with(feature, true))
    }

    /// Adds the window, which limits in requests use, if callers have nothing else to ask for.
    #[must_use]
    pub fn or_window(self) -> Self {
        let is_empty = self.engines == 0 && self.features.iter().all(|feature| feature.slot.is_some());
        Self { engines: self.engines | if is_empty { bit(EngineKind::Window) } else { 0 }, ..self }
    }

    pub(crate) fn has(&self, engine: EngineKind) -> bool {
        self.engines & bit(engine) != 0
    }

    pub(crate) fn decides(&self) -> bool {
        self.engines != 0
    }
}

impl UsesInForce {
    /// Sets what the configured strategies use, and features beside them.
    pub fn set(&self, uses: Uses) {
        *self.0.lock() = uses;
    }

    pub(crate) fn all(&self) -> Uses {
        self.0.lock().clone().or_window()
    }
}

const fn bit(engine: EngineKind) -> u32 {
    1 << engine.number()
}

#[cfg(test)]
mod tests {
    use super::*;

    static SERVED: ScriptSpec = feature(None);
    static SHARED: ScriptSpec = feature(Some(|| 0));

    const fn feature(slot: Option<fn() -> u16>) -> ScriptSpec {
        ScriptSpec { name: "feature", does: "serve it", scripts: &[], rights: &[], slot, probe: None }
    }

    #[test]
    fn those_of_strategies_and_of_features() {
        use EngineKind::{Bucket, Log, Window};
        let in_use = UsesInForce::default();
        let used = || [Bucket, Window, Log].map(|engine| in_use.all().has(engine));
        assert_eq!(used(), [false, true, false]);
        let strategies: Uses = [Bucket].into_iter().collect();
        in_use.set(strategies.clone());
        assert_eq!(used(), [true, false, false]);
        in_use.set(strategies.and(&[Log, Window].into_iter().collect()));
        assert_eq!(used(), [true, true, true]);
        in_use.set(Uses::default().with(&SERVED, false));
        assert_eq!(used(), [false, true, false]);
        in_use.set(Uses::default().with(&SERVED, true));
        assert_eq!((used(), in_use.all().features.len()), ([false; 3], 1), "a feature needs no engine");
        in_use.set(Uses::default().with(&SHARED, true));
        assert_eq!(used(), [false, true, false], "shared data decides nothing");
    }
}
