//! Parts of a snapshot that features make of the configuration.

use std::any::Any;
use std::sync::Arc;

use weir_core::strategy::{Owner, Strategy};
use weir_store::scripts::Uses;

/// A feature's part of a snapshot. Clones share it.
#[derive(Clone)]
pub struct FeaturePart {
    data: Arc<dyn Any + Send + Sync>,
    has_connections: bool,
    limits: Option<Arc<FeatureLimits>>,
    /// True if the feature set it while the node ran.
    is_set: bool,
}

/// Limits of a feature besides those of strategies.
#[derive(Debug, Default)]
pub struct FeatureLimits {
    /// Uses of the store by features.
    pub uses: Uses,
    /// The owners of their states, who share the memory of states with strategies.
    pub owners: Vec<Arc<Owner>>,
    /// Strategies of them that nodes count on their own. They are looked up every second, and there may be many limits.
    pub approximate: Vec<Arc<Strategy>>,
    /// Name for those strategies in messages.
    pub called: &'static str,
}

/// The parts of all features, by their names. Clones share them.
#[derive(Clone, Default)]
pub struct FeatureParts(Arc<[(&'static str, FeaturePart)]>);

impl FeaturePart {
    /// Creates a part.
    pub fn new<T: Send + Sync + 'static>(data: Arc<T>) -> Self {
        Self { data, has_connections: false, limits: None, is_set: false }
    }

    /// Adds the limits of the feature.
    #[must_use]
    pub fn with_limits(self, limits: FeatureLimits) -> Self {
        Self { limits: Some(Arc::new(limits)), ..self }
    }

    /// Says whether the feature has connections of its own to the store: for each worker, and for one more.
    #[must_use]
    pub fn with_connections(self, has_connections: bool) -> Self {
        Self { has_connections, ..self }
    }

    /// Returns the data, if it is of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.data).downcast().ok()
    }
}

impl FeatureParts {
    /// Returns the part of a feature.
    pub fn part(&self, feature: &str) -> Option<&FeaturePart> {
        self.0.iter().find(|(name, _)| *name == feature).map(|(_, part)| part)
    }

    /// Returns the data of a feature's part, if it is of this type.
    pub fn get<T: Send + Sync + 'static>(&self, feature: &str) -> Option<Arc<T>> {
        self.part(feature)?.get()
    }

    /// Returns the parts with another one of a feature that runs. It stays until the feature sets the next one.
    pub fn with(&self, feature: &'static str, part: FeaturePart) -> Self {
        let others = self.0.iter().filter(|(name, _)| *name != feature).cloned();
        others.chain([(feature, FeaturePart { is_set: true, ..part })]).collect()
    }

    /// Returns the parts with those of `before` that features set while the node ran.
    pub(crate) fn after(self, before: &Self) -> Self {
        let set = before.0.iter().filter(|(_, part)| part.is_set);
        set.fold(self, |parts, (name, part)| parts.with(name, part.clone()))
    }

    /// Returns the limits of all features.
    pub fn limits(&self) -> impl Iterator<Item = &FeatureLimits> {
        self.0.iter().filter_map(|(_, part)| part.limits.as_deref())
    }

    /// Returns what messages call a strategy of a feature that nodes count on their own.
    pub(crate) fn called(&self, strategy: &str) -> Option<&'static str> {
        let counts = |limits: &&FeatureLimits| limits.approximate.iter().any(|one| one.name() == strategy);
        self.limits().find(counts).map(|limits| limits.called)
    }

    /// Returns the number of features that have connections of their own to the store.
    pub(crate) fn connected(&self) -> usize {
        self.0.iter().filter(|(_, part)| part.has_connections).count()
    }
}

impl FromIterator<(&'static str, FeaturePart)> for FeatureParts {
    fn from_iter<I: IntoIterator<Item = (&'static str, FeaturePart)>>(parts: I) -> Self {
        Self(parts.into_iter().collect())
    }
}
