//! Integer time and cost: the only numbers a decision is made of.
//!
//! Every quantity stays below 2^53, so that Rust and Lua (whose numbers are doubles) agree bit for
//! bit. Time is counted in microseconds: nanoseconds since the epoch would not fit.
//!
//! No clock is read here, or named: that is up to `weir-time`.

mod people;

use std::fmt;
use std::time::Duration;

pub use self::people::{LastedFor, WaitFor};

/// The most that any level, cost or debt may reach (2^52). The sum of two such numbers is still an
/// exact double, which is what lets the Lua twins add before they compare.
pub const CEILING: u64 = 1 << 52;

/// The last time that is counted exactly (in the year 2255); a clock beyond it reads as this.
pub const LATEST: Micros = Micros((1 << 53) - 1);

/// The longest period, window or interval a limit may have: a hundred years of 365.25 days.
pub const LONGEST_SPAN: Micros = Micros(3_155_760_000_000_000);

/// Microseconds: a span of time, or a time since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl Micros {
    /// Duration zero.
    pub const ZERO: Self = Self(0);

    /// `seconds` as microseconds, saturating.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// `millis` as microseconds, saturating.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Whole seconds, rounded up: the wait in sentences for people.
    #[must_use]
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }
}

impl fmt::Display for Micros {
    /// The shortest exact form in one unit: `10s`, `1500ms`, `7us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us % 1_000_000 == 0 => write!(f, "{}s", us / 1_000_000),
            us if us % 1_000 == 0 => write!(f, "{}ms", us / 1_000),
            us => write!(f, "{us}us"),
        }
    }
}

impl From<Micros> for Duration {
    fn from(micros: Micros) -> Self {
        Self::from_micros(micros.0)
    }
}

impl From<Duration> for Micros {
    /// Rounds down to the microsecond and saturates.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Time until a cost would pass, if ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The cost passes now.
    Now,
    /// The cost passes after exactly this wait, without other traffic; one microsecond earlier it is denied.
    After(Micros),
    /// The wait is not known, because it depends on other callers: on when they release what they hold.
    Unknown,
    /// The cost never passes: it is above the limit.
    Never,
}

impl Retry {
    /// The longer of two waits. "Never" is the longest; a wait that is not known may be longer than any that is.
    #[must_use]
    #[inline]
    pub fn max(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::After(a), Self::After(b)) => Self::After(a.max(b)),
            (Self::Now, wait) | (wait, Self::Now) => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_never_and_then_one_that_is_not_known() {
        let after = |us| Retry::After(Micros(us));
        let rising = [Retry::Now, after(1), after(2), Retry::Unknown, Retry::Never];
        for (index, shorter) in rising.iter().enumerate() {
            for longer in rising.iter().skip(index) {
                assert_eq!((shorter.max(*longer), longer.max(*shorter)), (*longer, *longer));
            }
        }
    }
}
