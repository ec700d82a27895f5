//! A moment on the node, and the window of the store's in which it lies.

use weir_core::approximate::LocalWindow;
use weir_units::Micros;

use super::clocks::StoreClocks;
use super::places::PlaceSet;

/// The node's time, and what it knows of the store's.
pub(super) struct NodeMoment<'c> {
    pub(super) now: Micros,
    pub(super) clocks: &'c StoreClocks,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NodeWindow {
    pub(super) local: LocalWindow,
    /// The store's time, at least.
    pub(super) now: Micros,
    /// Time at which it ends, by the store's time.
    pub(super) ends: Micros,
}

impl NodeMoment<'_> {
    /// The window in which the node counts keys of this server; `None` if it may not, or the window is not certain.
    pub(super) fn window(&self, set: &PlaceSet, server: u64) -> Option<NodeWindow> {
        let clock = self.clocks.of(server)?;
        let local = set.window(clock, self.now)?;
        let ends = Micros((local.window + 1).saturating_mul(set.bound.window().0));
        Some(NodeWindow { local, now: clock.at(self.now).0, ends })
    }

    pub(super) fn is_past(&self, window: u64, set: &PlaceSet, server: u64) -> bool {
        let least = self.clocks.of(server).map(|clock| clock.at(self.now).0);
        least.is_some_and(|least| least.0 / set.bound.window().0.max(1) > window)
    }
}
