//! A layer in front of the store that decides exactly.

use crate::Store;

/// Decides a part of the decisions in front of the store that decides exactly. Each worker has its own.
///
/// Only counting on the nodes is one so far. It is a trait because a backend must not name what a node puts in front of it.
pub trait StoreLayer<S, C>: Clone + Send + Sync + 'static {
    /// The store with the layer in front of it.
    type Store: Store;

    /// Puts the layer in front of `exact`. The layer's own states are in `states`.
    fn layered(&self, exact: S, states: C) -> Self::Store;
}
