//! The two clocks of the store, and how it handles steps of the wall clock.
//!
//! Windows and the times inside states follow the wall clock. Leases, queues, ids and every expiry follow the monotonic
//! clock. A second clock would cost each decision as much again as the first, so a decision reads the wall clock alone:
//!
//! ```text
//!   ahead          how far the wall clock is ahead of where it would stand without steps, in whole seconds
//!   table time   = wall clock − ahead           within about a second of the monotonic clock
//! ```
//!
//! The wall clock is compared with the monotonic one once a second, and whenever its reading is implausible. Every
//! table has the `ahead` of its expiry times; if it differs from a decision's, the wall clock has stepped, and the
//! expiry times are adjusted (`table/redate.rs`) before anything is decided in the table.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Instant;

use parking_lot::Mutex;

use weir_time::clock::{Clock, Monotonic};
use weir_units::Micros;

const SECOND: i64 = 1_000_000;

/// Time for which the wall clock is trusted after a comparison.
const TRUSTED: u64 = 1_000_000;

/// Tolerated step back: a thread may use a comparison that another made after it read the clock itself.
const BACK: u64 = 100_000;

/// Longest time between the two readings of the monotonic clock around one of the wall clock.
const APART: i64 = 100_000;

/// Bound in seconds on the drift of table time against the monotonic clock.
const APART_SECONDS: u64 = 3;

/// Retries of a reading that an interruption of the thread made too slow.
const TRIES: usize = 5;

/// Table time begins so long before the start, because a small step back lowers it.
const HEADROOM: i64 = 5 * SECOND;

/// Both clocks. Aligned to cache lines: every decision reads them, and they are hardly ever written.
#[repr(align(128))]
pub(super) struct StoreTime {
    clock: Clock,
    monotonic: Monotonic,
    /// The wall clock at the start.
    begin: Micros,
    /// The monotonic clock at the start.
    origin: Instant,
    /// Steps of the wall clock, as in [`WallReading`].
    ahead: AtomicI32,
    /// The wall clock is trusted from this reading on,
    from: AtomicU64,
    /// and before this one.
    to: AtomicU64,
    comparing: Mutex<()>,
}

/// A reading of the wall clock, and its steps until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WallReading {
    pub(super) now: Micros,
    /// In whole seconds.
    pub(super) ahead: i32,
}

impl StoreTime {
    pub(super) fn new(clock: Clock) -> Self {
        let monotonic = Monotonic::from_clock(&clock);
        let (begin, origin) = (clock.now(), monotonic.now());
        let (from, to) = (AtomicU64::new(begin.0), AtomicU64::new(begin.0));
        let (ahead, comparing) = (AtomicI32::new(0), Mutex::new(()));
        Self { clock, monotonic, begin, origin, ahead, from, to, comparing }
    }

    #[inline]
    pub(super) fn stamp(&self) -> WallReading {
        let ahead = self.ahead.load(Acquire);
        let now = self.clock.now();
        let trusted = self.from.load(Acquire) <= now.0 && now.0 < self.to.load(Acquire);
        // Read before and after: otherwise a step between them could combine one reading with the other's steps.
        if trusted && self.ahead.load(Acquire) == ahead { WallReading { now, ahead } } else { self.compare() }
    }

    /// A reading after a comparison of the clocks.
    #[cold]
    pub(super) fn compare(&self) -> WallReading {
        let comparing = self.comparing.lock();
        let (now, steady) = self.both();
        let before = self.ahead.load(Acquire);
        let apart = now.0.cast_signed().saturating_sub(steady);
        let stepped = apart.saturating_sub(i64::from(before) * SECOND).abs() >= SECOND;
        let seconds = apart.div_euclid(SECOND).clamp(i32::MIN.into(), i32::MAX.into());
        let ahead = if stepped { i32::try_from(seconds).unwrap_or(before) } else { before };
        if ahead != before {
            // Other threads compare for themselves meanwhile.
            self.to.store(0, Release);
            self.ahead.store(ahead, Release);
        }
        self.from.store(now.0.saturating_sub(BACK), Release);
        self.to.store(now.0.saturating_add(TRUSTED), Release);
        drop(comparing);
        WallReading { now, ahead }
    }

    /// The clock of leases, queues and ids: the wall clock at the start, plus the monotonic time since.
    pub(super) fn steady(&self) -> Micros {
        Micros(self.elapsed().max(0).cast_unsigned())
    }

    /// The current second of table time: states due by then have expired.
    pub(super) fn second_begun(&self, stamp: WallReading) -> u64 {
        self.micros(stamp.now, stamp.ahead).max(0).cast_unsigned() / SECOND.cast_unsigned()
    }

    /// The first second of table time that begins at or after `time` of the wall clock.
    #[inline]
    pub(super) fn second_due(&self, time: Micros, ahead: i32) -> u64 {
        self.micros(time, ahead).max(0).cast_unsigned().div_ceil(SECOND.cast_unsigned())
    }

    /// The first second of table time that begins at or after `stamp` plus `lasts` by the monotonic clock. Table time
    /// may be off by a second from it now and then.
    pub(super) fn second_after(&self, stamp: WallReading, lasts: Micros) -> u64 {
        self.second_due(Micros(stamp.now.0.saturating_add(lasts.0)), stamp.ahead)
            .saturating_add(APART_SECONDS)
    }

    /// Table time in microseconds at a time of the wall clock; negative before the first table.
    #[inline]
    pub(super) fn micros(&self, time: Micros, ahead: i32) -> i64 {
        let zero = self.begin.0.cast_signed().saturating_add(i64::from(ahead) * SECOND - HEADROOM);
        i64::try_from(time.0).unwrap_or(i64::MAX).saturating_sub(zero)
    }

    /// Reads both clocks at about the same time.
    fn both(&self) -> (Micros, i64) {
        let mut before = self.elapsed();
        let mut now = self.clock.now();
        for _ in 0..TRIES {
            let after = self.elapsed();
            if after - before < APART {
                break;
            }
            (before, now) = (after, self.clock.now());
        }
        (now, before)
    }

    /// Monotonic time since the start, as [`StoreTime::steady`] counts; negative if a test moved the clock back.
    fn elapsed(&self) -> i64 {
        let (now, begin) = (self.monotonic.now(), self.begin.0.cast_signed());
        let micros = |since: std::time::Duration| i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let forward = micros(now.saturating_duration_since(self.origin));
        begin.saturating_add(forward).saturating_sub(micros(self.origin.saturating_duration_since(now)))
    }
}
