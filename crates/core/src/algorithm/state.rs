//! The stored state of one key, for any engine.

use super::held_parts::HeldParts;
use super::hold_record::{CallRecord, HoldRecord};
use super::{Algorithm, Engine, OnceRecord, bucket, interval, log, sliding, slots, warm_up, window};
use weir_units::Micros;

/// The stored state of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// State of a [`Bucket`](super::Bucket).
    Bucket(bucket::State),
    /// State of a [`Window`](super::Window).
    Window(window::State),
    /// State of an [`Interval`](super::Interval).
    Interval(interval::State),
    /// State of a [`Log`](super::Log); boxed, so that the others stay small.
    Log(Box<log::State>),
    /// State of a [`Sliding`](super::Sliding); boxed.
    Sliding(Box<sliding::State>),
    /// State of [`Slots`](super::Slots); boxed.
    Slots(Box<slots::State>),
    /// State of a [`WarmUp`](super::WarmUp); boxed.
    WarmUp(Box<warm_up::State>),
    /// Not a limit's state: a marker of an idempotent operation. To limits it is absent.
    Marker {
        /// Time of the expiry.
        until: Micros,
    },
    /// Not a limit's state: the record of an idempotent decision. To limits it is absent. Boxed, so that limits'
    /// states stay small.
    Record(Box<OnceRecord>),
    /// Parts of a limit in open holds. To limits this state is absent, and so are the two below.
    Parts(Box<HeldParts>),
    /// The record of a hold.
    Hold(Box<HoldRecord>),
    /// The record of a call with costs by name.
    Call(Box<CallRecord>),
}

impl State {
    /// Returns the bytes on the heap.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Log(log) => size_of::<log::State>() + log.heap_bytes(),
            Self::Sliding(_) => size_of::<sliding::State>(),
            Self::Slots(slots) => size_of::<slots::State>() + slots.heap_bytes(),
            Self::WarmUp(_) => size_of::<warm_up::State>(),
            Self::Record(_) => size_of::<OnceRecord>(),
            Self::Parts(parts) => size_of::<HeldParts>() + parts.heap_bytes(),
            Self::Hold(record) => size_of::<HoldRecord>() + record.heap_bytes(),
            Self::Call(_) => size_of::<CallRecord>(),
            Self::Bucket(_) | Self::Window(_) | Self::Interval(_) | Self::Marker { .. } => 0,
        }
    }

    /// The time that its arithmetic begins at, which lies ahead of a clock that was set back, and how many times as long
    /// as the state lasts from then it may last once the clock is further behind: then reading it moves it back. `None`
    /// for what does not follow the wall clock.
    pub fn begins(&self) -> Option<(Micros, u64)> {
        let (at, times) = match self {
            Self::Bucket(state) => (state.at, 1),
            Self::Window(state) => (state.start, 1),
            Self::Interval(state) => (state.last, 1),
            Self::Log(state) => state.begins()?,
            Self::Sliding(state) => (state.start, 1),
            Self::Slots(state) => (state.begins()?, 1),
            Self::WarmUp(state) => (state.at, 1),
            Self::Marker { .. } | Self::Record(_) | Self::Parts(_) | Self::Hold(_) | Self::Call(_) => {
                return None;
            }
        };
        Some((Micros(at), times))
    }

    /// Bytes by which its heap bytes may grow with a charge by `limit` at `now`.
    pub fn growth(&self, limit: &Algorithm, now: Micros) -> usize {
        match (self, &limit.engine) {
            (Self::Log(state), Engine::Log(log)) => state.growth(log, now.0),
            (Self::Slots(state), Engine::Slots(slots)) => state.growth(slots, now.0),
            _ => 0,
        }
    }
}
