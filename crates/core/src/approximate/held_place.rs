//! Place of a node, as it knows it. Times are of the node's own clock, which stands still never (`CLOCK_BOOTTIME`).

use weir_units::Micros;

use super::store_clock::DRIFT_PPM;
use super::{ApproximateBound, StoreClock};

/// The place of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldPlace {
    /// The number.
    pub place: u64,
    /// The incarnation under which the node holds it.
    pub incarnation: u64,
    /// The window in which the node got it, by the store's clock.
    pub got_in: u64,
    /// Until when the node may count, if no further heartbeat is answered.
    until: Micros,
}

/// A window in which a node may count by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalWindow {
    /// The number of the window.
    pub window: u64,
    /// The place of the node.
    pub place: u64,
    /// The incarnation.
    pub incarnation: u64,
    /// True if each key begins at the store: the node got its place in this window (R2).
    pub begins_at_store: bool,
}

impl HeldPlace {
    /// A place that the node was given at the store's time `got`, by the answer to what it sent at `sent`.
    pub fn new(
        bound: &ApproximateBound,
        (place, incarnation): (u64, u64),
        got: Micros,
        sent: Micros,
        error: Micros,
    ) -> Self {
        let got_in = got.0 / bound.window().0.max(1);
        let mut held = Self { place, incarnation, got_in, until: Micros(0) };
        held.keep(bound, sent, error);
        held
    }

    /// A heartbeat that was sent at `sent` has been answered. `error`: that of the store's time.
    pub fn keep(&mut self, bound: &ApproximateBound, sent: Micros, error: Micros) {
        let window = bound.window().0;
        let drift = (window / 1_000_000 + 1) * DRIFT_PPM;
        let until = (sent.0 + window).saturating_sub(error.0 + drift);
        self.until = self.until.max(Micros(until));
    }

    /// True if the node may count at its time `now`: a heartbeat was answered within a window, less the error.
    pub fn may_count(&self, now: Micros) -> bool {
        now < self.until
    }

    /// The window in which the node may count at its time `now`. None if it may not: its heartbeats were not answered, or
    /// the store's window is not certain.
    pub fn window(&self, bound: &ApproximateBound, store: StoreClock, now: Micros) -> Option<LocalWindow> {
        if !self.may_count(now) {
            return None;
        }
        let window = store.window(now, bound.window())?;
        let Self { place, incarnation, got_in, .. } = *self;
        // Before `got_in` only if the store's clock has stepped back.
        Some(LocalWindow { window, place, incarnation, begins_at_store: window <= got_in })
    }
}
