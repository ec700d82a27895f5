//! The meaning of every limit, in pure integer arithmetic.
//!
//! No clock, no lock, no I/O, no float, nothing of the project but `weir-units`. An engine is three small
//! functions over its own state; everything that all limits share is said once, in [`decide()`]:
//!
//! * `read`: what the stored state means now (its *level*, and where it stands in time);
//! * `wait`: how long until a given part of that level has gone;
//! * `write`: what to store after the level changed.
//!
//! Each engine has a twin of the same stem in `lua/`, and rows in `tests/vectors/`.

mod abilities;
mod advice;
mod bucket;
pub mod budget;
mod cells;
mod decide;
mod held_parts;
mod hold_record;
mod interval;
mod judge;
mod log;
mod near;
mod new;
mod once;
mod once_record;
mod portable;
mod share;
mod sliding;
mod slots;
mod state;
mod stored;
mod verdict;
mod warm_up;
mod window;

pub use advice::NextUnit;
pub use bucket::Bucket;
pub use cells::{Cells, Kept, VerdictSink};
pub use decide::decide;
pub use interval::Interval;
pub use log::{DEFAULT_MAX_HELD, Log, MAX_ENTRIES, MOST_MAX_HELD};
pub use new::{Calendar, Invalid, MAX_COLD_FACTOR, Rate};
pub use once::{NotOnce, RecordCells, decide_once};
pub use once_record::{DEBIT_LASTS, OnceDetail, OnceRecord, RECORD_LASTS};
pub use share::{MAX_SHARE, NoShare, Share};
pub use sliding::Sliding;
pub use slots::{MAX_BUCKETS, Slots};
pub use state::State;
pub use verdict::{Cause, LimitVerdict, MAX_LIMITS, Op, Summary, Verdict};
pub use warm_up::WarmUp;
pub use window::{Grid, Window};

/// Debt bounded by the ceiling only.
const UNLIMITED_DEBT: u64 = u64::MAX;

/// One limit's algorithm with its numbers. Made by the constructors, which cannot make one whose
/// arithmetic would leave the exact range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// The largest cost that is ever admitted.
    limit: u64,
    /// Level that one unit of cost takes (a bucket counts in ticks, the others in units).
    weight: u64,
    /// Level of a unit that must fit before it is charged: the weight, or 0 where calls pay afterwards.
    upfront: u64,
    /// The level above which nothing is admitted.
    capacity: u64,
    ceiling: u64,
    /// The level up to which forced debits charge; `u64::MAX` where only the ceiling bounds them.
    debt_level: u64,
    /// True if denied attempts are charged too.
    count_denied: bool,
    /// True without special features: shortest gap, held starts, counted denials, paced waits, costs paid afterwards.
    /// Saves nearly all decisions a check for each.
    is_plain: bool,
    /// True in shadow mode: never denies; it is judged, and charged only where it would admit.
    is_shadow: bool,
    engine: Engine,
}

/// The engine that keeps a limit's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Token bucket, leaky bucket, GCRA, uniform gate.
    Bucket(Bucket),
    /// Fixed window.
    Window(Window),
    /// Interval refill.
    Interval(Interval),
    /// Sliding log.
    Log(Log),
    /// Sliding window of two counters.
    Sliding(Sliding),
    /// Bucketed window.
    Slots(Slots),
    /// Warm-up.
    WarmUp(WarmUp),
}

/// The one list of engines, with their numbers and names.
macro_rules! engine_kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)+) => {
        /// Kind of engine, without a limit's parameters. Its number stands for it in requests to the Redis script, so
        /// it must never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EngineKind {
            $($(#[$doc])* $kind = $number,)+
        }

        impl EngineKind {
            /// All engines, in the order of their numbers, which begin at 1.
            pub const ALL: [Self; [$($number),+].len()] = [$(Self::$kind),+];

            /// Returns the name of the engine: the stem of its files, and a part of every key.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

engine_kinds! {
    /// [`Engine::Bucket`].
    Bucket = 1, "bucket";
    /// [`Engine::Window`].
    Window = 2, "window";
    /// [`Engine::Interval`].
    Interval = 3, "interval";
    /// [`Engine::Log`].
    Log = 4, "log";
    /// [`Engine::Sliding`].
    Sliding = 5, "sliding";
    /// [`Engine::Slots`] of at most 361 parts.
    Slots = 6, "slots";
    /// [`Engine::WarmUp`].
    WarmUp = 7, "warm_up";
    /// [`Engine::Slots`] of more, which Redis stores in another layout.
    Sparse = 8, "sparse";
}

// An engine's position in the list follows from its number.
const _: () = {
    let mut place = 0;
    while place < EngineKind::ALL.len() {
        assert!(EngineKind::ALL[place].number() == place + 1);
        place += 1;
    }
};

impl EngineKind {
    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> usize {
        self as usize
    }

    /// The engine of this number.
    pub fn of_number(number: usize) -> Option<Self> {
        Self::ALL.get(number.wrapping_sub(1)).copied()
    }
}

/// A stored state as of now, as plain numbers that the driver carries from reading to writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    /// The level, in the engine's own units.
    level: u64,
    /// The time at which the level is true: now, or the stored time if the clock stepped back.
    at: u64,
    /// The state's reference time: window start, last refill, newest entry.
    origin: u64,
    /// An additional number of the engine.
    extra: u64,
    /// By how much the state was moved back because it was too far ahead; 0 if it was not.
    shift: u64,
    /// The span that the state was written under, for engines that use `extra` otherwise.
    span: u64,
}

impl Reading {
    /// The reading of an absent state, and of one that has expired.
    const fn fresh(at: u64, origin: u64) -> Self {
        Self { level: 0, at, origin, extra: 0, shift: 0, span: 0 }
    }
}

impl Engine {
    /// The kind of engine.
    pub const fn kind(&self) -> EngineKind {
        match self {
            Self::Bucket(_) => EngineKind::Bucket,
            Self::Window(_) => EngineKind::Window,
            Self::Interval(_) => EngineKind::Interval,
            Self::Log(_) => EngineKind::Log,
            Self::Sliding(_) => EngineKind::Sliding,
            Self::Slots(slots) if slots.is_many() => EngineKind::Sparse,
            Self::Slots(_) => EngineKind::Slots,
            Self::WarmUp(_) => EngineKind::WarmUp,
        }
    }

    /// The engine's name: the stem of its files, and its part of every key.
    pub const fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// True if its states allocate memory beyond their own size, which a key's slot does not include.
    pub const fn is_boxed(&self) -> bool {
        match self {
            Self::Log(_) | Self::Sliding(_) | Self::Slots(_) | Self::WarmUp(_) => true,
            Self::Bucket(_) | Self::Window(_) | Self::Interval(_) => false,
        }
    }
}

impl Algorithm {
    /// The largest cost that is ever admitted.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Level that one unit of cost takes.
    pub const fn weight(&self) -> u64 {
        self.weight
    }

    /// The largest level.
    pub const fn ceiling(&self) -> u64 {
        self.ceiling
    }

    /// True if denied attempts are charged too.
    pub const fn counts_denied(&self) -> bool {
        self.count_denied
    }

    /// The engine and its parameters.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// True if each key's windows start at a time of its own, see [`Cells::phase`].
    pub const fn is_spread(&self) -> bool {
        matches!(self.engine, Engine::Window(Window { grid: Grid::Spread, .. }))
    }

    /// The level above which nothing is admitted: the capacity, or the burst where calls pay afterwards.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The level up to which forced debits charge, if not only the ceiling bounds them.
    pub const fn debt_level(&self) -> Option<u64> {
        if self.debt_level == UNLIMITED_DEBT { None } else { Some(self.debt_level) }
    }

    fn read(&self, state: Option<&State>, now: u64, phase: u64) -> Reading {
        match (&self.engine, state) {
            (Engine::Bucket(bucket), Some(State::Bucket(state))) => bucket.read(Some(state), now),
            (Engine::Bucket(bucket), _) => bucket.read(None, now),
            (Engine::Window(window), Some(State::Window(state))) => window.read(Some(state), now, phase),
            (Engine::Window(window), _) => window.read(None, now, phase),
            (Engine::Interval(interval), Some(State::Interval(state))) => {
                interval.read(Some(state), now, self.ceiling)
            }
            (Engine::Interval(interval), _) => interval.read(None, now, self.ceiling),
            (Engine::Log(log), Some(State::Log(state))) => log.read(Some(state), now),
            (Engine::Log(log), _) => log.read(None, now),
            (Engine::Sliding(sliding), Some(State::Sliding(state))) => sliding.read(Some(state), now),
            (Engine::Sliding(sliding), _) => sliding.read(None, now),
            (Engine::Slots(slots), Some(State::Slots(state))) => slots.read(Some(state), now),
            (Engine::Slots(slots), _) => slots.read(None, now),
            (Engine::WarmUp(warm_up), Some(State::WarmUp(state))) => warm_up.read(Some(state), now),
            (Engine::WarmUp(warm_up), _) => warm_up.read(None, now),
        }
    }

    fn wait(&self, state: Option<&State>, reading: &Reading, excess: u64) -> u64 {
        match (&self.engine, state) {
            (Engine::Bucket(bucket), _) => bucket.wait(excess),
            (Engine::Window(_), _) => Window::wait(reading),
            (Engine::Interval(interval), _) => interval.wait(reading, excess),
            (Engine::Log(log), Some(State::Log(state))) => log.wait(Some(state), reading, excess),
            (Engine::Log(log), _) => log.wait(None, reading, excess),
            (Engine::Sliding(sliding), _) => sliding.wait(reading, excess),
            (Engine::Slots(slots), Some(State::Slots(state))) => slots.wait(Some(state), reading, excess),
            (Engine::Slots(slots), _) => slots.wait(None, reading, excess),
            (Engine::WarmUp(_), _) => excess,
        }
    }

    /// The level after `cost` was given back.
    fn refund(&self, reading: &mut Reading, cost: u64) -> u64 {
        match &self.engine {
            Engine::Sliding(sliding) => sliding.refund(reading, cost),
            _ => reading.level.saturating_sub(cost.saturating_mul(self.weight)),
        }
    }

    /// Sets the stored level; a level of 0 is the absent state.
    fn write(&self, state: &mut Option<State>, reading: &mut Reading, level: u64) {
        match &self.engine {
            Engine::Log(log) if log.holds() => {
                let mut entries = match state.take() {
                    Some(State::Log(entries)) => entries,
                    _ => Box::default(),
                };
                *state = log.write_held(&mut entries, reading, level).then_some(State::Log(entries));
            }
            _ if level == 0 => *state = None,
            // An overwritten plain state needs no drop.
            Engine::Bucket(bucket) => match state {
                Some(State::Bucket(state)) => *state = bucket.write(reading, level),
                _ => *state = Some(State::Bucket(bucket.write(reading, level))),
            },
            Engine::Window(_) => match state {
                Some(State::Window(state)) => *state = Window::write(reading, level),
                _ => *state = Some(State::Window(Window::write(reading, level))),
            },
            Engine::Interval(_) => *state = Some(State::Interval(Interval::write(reading, level))),
            Engine::Log(log) => {
                if !matches!(state, Some(State::Log(_))) {
                    *state = Some(State::Log(Box::default()));
                }
                if let Some(State::Log(entries)) = state {
                    log.write(entries, reading, level);
                }
            }
            Engine::Sliding(sliding) => {
                let written = sliding.write(reading, level);
                match state {
                    Some(State::Sliding(state)) => **state = written,
                    _ => *state = Some(State::Sliding(Box::new(written))),
                }
            }
            Engine::Slots(slots) => {
                if reading.level == 0 || !matches!(state, Some(State::Slots(_))) {
                    *state = Some(State::Slots(Box::new(slots.empty())));
                }
                if let Some(State::Slots(state)) = state {
                    slots.write(state, reading, level);
                }
            }
            Engine::WarmUp(warm_up) => *state = Some(State::WarmUp(Box::new(warm_up.write(reading)))),
        }
        reading.level = level;
    }
}
