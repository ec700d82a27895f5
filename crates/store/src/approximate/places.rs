//! Places of one strategy as this node knows them, and what it owes under its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use weir_core::approximate::{ApproximateBound, HeldPlace, LocalWindow, StoreClock};
use weir_time::clock::monotonic;
use weir_units::Micros;

/// The places of one strategy, and of its overrides with windows of the same length.
pub(super) struct PlaceSet {
    /// A number that no other set of the process has.
    pub(super) number: u64,
    /// The strategy's name, for people.
    pub(super) strategy: Arc<str>,
    pub(super) key_name: Arc<str>,
    pub(super) bound: ApproximateBound,
    /// Interval of pushes, in microseconds.
    pub(super) sync: AtomicU64,
    held: ArcSwapOption<HeldPlace>,
    /// True from the moment that the node gives its place back: it counts no more.
    is_ending: AtomicBool,
    /// Keys of which the node owes something.
    owing: Mutex<Vec<u128>>,
    /// The most units above the limit that nodes have pushed of one key in one window.
    pub(super) over: AtomicU64,
    pub(super) pushed: AtomicU64,
    /// Since when the store says that no place is free.
    without_since: Mutex<Option<Instant>>,
}

impl PlaceSet {
    pub(super) fn new(number: u64, strategy: Arc<str>, key_name: Arc<str>, bound: ApproximateBound) -> Self {
        Self {
            number,
            strategy,
            key_name,
            bound,
            sync: AtomicU64::new(0),
            held: ArcSwapOption::empty(),
            is_ending: AtomicBool::new(false),
            owing: Mutex::default(),
            over: AtomicU64::new(0),
            pushed: AtomicU64::new(0),
            without_since: Mutex::default(),
        }
    }

    /// The window in which the node may count at its time `now`, by a server's clock.
    pub(super) fn window(&self, clock: StoreClock, now: Micros) -> Option<LocalWindow> {
        if self.is_ending.load(Relaxed) {
            return None;
        }
        self.held.load().as_ref()?.window(&self.bound, clock, now)
    }

    /// The place of the node, whether or not it may count now.
    pub(super) fn held(&self) -> Option<HeldPlace> {
        self.held.load().as_deref().copied()
    }

    pub(super) fn hold(&self, held: Option<HeldPlace>) {
        if held.is_some() {
            *self.without_since.lock() = None;
        }
        self.held.store(held.map(Arc::new));
    }

    pub(super) fn has_none(&self) {
        self.without_since.lock().get_or_insert_with(monotonic);
    }

    /// Since when the store says that no place is free.
    pub(super) fn without_since(&self) -> Option<Instant> {
        *self.without_since.lock()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Relaxed)
    }

    pub(super) fn end(&self) {
        self.is_ending.store(true, Relaxed);
    }

    /// Notes that the node owes something of a key.
    pub(super) fn owe(&self, digest: u128) {
        self.owing.lock().push(digest);
    }

    /// Takes the keys of which it owes something.
    pub(super) fn take_owing(&self) -> Vec<u128> {
        std::mem::take(&mut *self.owing.lock())
    }
}
