//! What features make of the configuration: their parts of a snapshot.

use std::any::Any;
use std::sync::Arc;

/// A feature's part of a snapshot. Clones share it.
#[derive(Clone)]
pub struct FeaturePart {
    data: Arc<dyn Any + Send + Sync>,
    has_connections: bool,
}

/// The parts of all features, by their names. Clones share them.
#[derive(Clone, Default)]
pub struct FeatureParts(Arc<[(&'static str, FeaturePart)]>);

impl FeaturePart {
    /// Creates a part.
    pub fn new<T: Send + Sync + 'static>(data: Arc<T>) -> Self {
        Self { data, has_connections: false }
    }

    /// Says whether the feature has connections of its own to the store: for each worker, and for one more.
    #[must_use]
    pub fn with_connections(self, has_connections: bool) -> Self {
        Self { has_connections, ..self }
    }

    /// Returns the data, if it is of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.data).downcast().ok()
    }
}

impl FeatureParts {
    /// Returns the part of a feature.
    #[must_use]
    pub fn part(&self, feature: &str) -> Option<&FeaturePart> {
        self.0.iter().find(|(name, _)| *name == feature).map(|(_, part)| part)
    }

    /// Returns the data of a feature's part, if it is of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self, feature: &str) -> Option<Arc<T>> {
        self.part(feature)?.get()
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
