//! Times for people, in at most two units.

use std::fmt;

use super::Micros;

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

/// Longest wait that is written in seconds.
const FEW_SECONDS: u64 = 2 * MINUTE;

/// A number of seconds: `59 s`, `1m 1s`, `9d 12h`. What is less than the smaller unit is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastedFor(pub u64);

/// A wait as people write it: `4 seconds`, `18m`, `9d 13h`, `1h 1s`. It is rounded up, so that a retry after it does
/// not come too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitFor(pub Micros);

/// The larger and the smaller unit of a number of seconds, with their names.
fn units(seconds: u64) -> Option<[(u64, &'static str); 2]> {
    match seconds {
        DAY.. => Some([(DAY, "d"), (HOUR, "h")]),
        HOUR.. => Some([(HOUR, "h"), (MINUTE, "m")]),
        MINUTE.. => Some([(MINUTE, "m"), (1, "s")]),
        _ => None,
    }
}

impl fmt::Display for LastedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(seconds) = *self;
        match units(seconds) {
            None => write!(f, "{seconds} s"),
            Some([(large, name), (small, less)]) => {
                write!(f, "{}{name} {}{less}", seconds / large, seconds % large / small)
            }
        }
    }
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl WaitFor {
    /// Writes it, at half the cost of [`fmt::Display`]: each denial of a service has the wait in its message.
    #[inline]
    pub fn write(self, out: &mut impl fmt::Write) -> fmt::Result {
        let seconds = self.0.secs_ceil();
        if seconds == 1 {
            return out.write_str("1 second");
        }
        // Little more than an hour is not told as a minute more.
        let is_just_over = (HOUR..DAY).contains(&seconds) && seconds % HOUR < MINUTE;
        // Rounding up may reach the next larger unit.
        let rounded = match units(seconds) {
            Some([_, (small, _)]) if !is_just_over => seconds.div_ceil(small).saturating_mul(small),
            _ => seconds,
        };
        let Some([(large, name), smaller]) = units(rounded).filter(|_| rounded >= FEW_SECONDS) else {
            return write!(out, "{rounded} seconds");
        };
        let (small, less) = if is_just_over { (1, "s") } else { smaller };
        write!(out, "{}", rounded / large)?;
        out.write_str(name)?;
        let rest = rounded % large / small;
        if rest == 0 {
            return Ok(());
        }
        write!(out, " {rest}")?;
        out.write_str(less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_has_days_and_hours() {
        let shown = [0, 59, 61, 3_600, 90_000, 822_224].map(|seconds| LastedFor(seconds).to_string());
        assert_eq!(shown, ["0 s", "59 s", "1m 1s", "1h 0m", "1d 1h", "9d 12h"]);
    }

    #[test]
    fn a_wait_is_never_told_too_short() {
        let shown = |micros| WaitFor(Micros(micros)).to_string();
        for (seconds, expected) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2m"),
            (121, "2m 1s"),
            (3_599, "59m 59s"),
            (3_600, "1h"),
            (3_601, "1h 1s"),
            (3_660, "1h 1m"),
            (3_661, "1h 2m"),
            (7_230, "2h 30s"),
            (86_399, "1d"),
            (822_224, "9d 13h"),
            (864_000, "10d"),
        ] {
            assert_eq!(shown(seconds * 1_000_000), expected, "{seconds}");
        }
        assert_eq!(shown(1), "1 second");
        assert_eq!(shown(119_000_001), "2m");
        assert_eq!(shown(u64::MAX), "213503982d 9h");
    }
}
