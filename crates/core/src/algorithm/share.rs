//! A part of a limit, for nodes that decide by themselves while the store is away.
//!
//! ```text
//!   window, log, slots, stock     ⌊limit · part / of⌋, of a refill ⌊refill · part / of⌋, in the same time
//!   bucket                        rate · part / of exactly, ⌊burst · part / of⌋
//!   uniform (a bucket of 1)       interval · of / part
//! ```
//!
//! A limit of 0 stays 0. Any other number that becomes 0, or a rate that cannot be counted exactly, is an error.

use super::new::{Rate, gcd};
use super::{Algorithm, Bucket, Engine, Interval, Log, UNLIMITED_DEBT};
use weir_units::{CEILING, LONGEST_SPAN, Micros};

/// A part of a limit: more than 0, at most 1, with numbers of at most [`MAX_SHARE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u16,
    of: u16,
}

/// The largest number of a [`Share`].
pub const MAX_SHARE: u16 = 1000;

/// Reason that a limit has no such part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoShare {
    /// A number would become 0: its name and its value.
    Zero(&'static str, u64),
    /// The rate cannot be counted exactly.
    Inexact,
    /// The algorithm has no parts.
    WarmUp,
}

impl Share {
    /// All of a limit.
    pub const ALL: Self = Self { part: 1, of: 1 };

    /// `part` of `of`, if 0 < `part` ≤ `of` ≤ [`MAX_SHARE`].
    pub const fn new(part: u16, of: u16) -> Option<Self> {
        if part > 0 && part <= of && of <= MAX_SHARE { Some(Self { part, of }) } else { None }
    }

    /// ⌊units · part / of⌋.
    #[must_use]
    pub const fn of_units(self, units: u64) -> u64 {
        // At most `units`.
        (units as u128 * self.part as u128 / self.of as u128) as u64
    }

    /// ⌈units · part / of⌉: what was used counts in full.
    #[must_use]
    pub const fn of_used(self, units: u64) -> u64 {
        (units as u128 * self.part as u128).div_ceil(self.of as u128) as u64
    }

    /// The share nearest to this one that `works`. Of two as near the one with the smaller numbers. [`Share::ALL`] if
    /// no other works.
    #[must_use]
    pub fn nearest(self, works: impl Fn(Self) -> bool) -> Self {
        let mut best = Self::ALL;
        for of in 1..=MAX_SHARE {
            let ideal = u32::from(self.part) * u32::from(of) / u32::from(self.of);
            // Both directions, nearest first, until they are further away than the best one so far.
            let below = (1..=ideal).rev();
            let above = ideal + 1..=u32::from(of);
            let share = |part: u32| Self { part: u16::try_from(part).unwrap_or(of), of };
            for side in [&mut below.map(share) as &mut dyn Iterator<Item = Self>, &mut above.map(share)] {
                let found = side.take_while(|one| self.is_nearer(*one, best)).find(|one| works(*one));
                best = found.unwrap_or(best);
            }
        }
        best
    }

    fn is_nearer(self, one: Self, other: Self) -> bool {
        // |part/of − self| times all three denominators.
        let distance = |share: Self, third: u16| {
            let (own, theirs) =
                (u64::from(self.part) * u64::from(share.of), u64::from(share.part) * u64::from(self.of));
            own.abs_diff(theirs) * u64::from(third)
        };
        distance(one, other.of) < distance(other, one.of)
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl Algorithm {
    /// True if it is a bucket of one unit, which has a part at any share.
    pub const fn is_uniform(&self) -> bool {
        let Engine::Bucket(Bucket { undelayed: None, .. }) = self.engine else { return false };
        self.limit == 1 && !self.charges_after()
    }

    /// The limit with `share` of its units.
    pub fn at_share(&self, share: Share) -> Result<Self, NoShare> {
        let part = |name, units| match share.of_units(units) {
            0 if units > 0 => Err(NoShare::Zero(name, units)),
            part => Ok(part),
        };
        let limit = |name| {
            let limit = part(name, self.limit)?;
            Ok(Self { limit, capacity: limit, debt_level: UNLIMITED_DEBT, ..*self })
        };
        let made = match self.engine {
            Engine::WarmUp(_) => return Err(NoShare::WarmUp),
            Engine::Bucket(bucket) => self.bucket_at(bucket, share, part)?,
            Engine::Interval(Interval { refill, period, aligned }) => {
                let (capacity, refill) = (part("capacity", self.limit)?, part("refill", refill)?);
                let made = Self::interval_refill(capacity, refill, Micros(period), aligned);
                made.map_err(|_| NoShare::Inexact)?
            }
            Engine::Log(log) => {
                let made = limit("limit")?;
                let keep = if self.count_denied { made.limit + 1 } else { log.keep };
                Self { engine: Engine::Log(Log { keep, ..log }), ..made }
            }
            Engine::Window(_) | Engine::Sliding(_) | Engine::Slots(_) => limit("limit")?,
        };
        Ok(if self.is_shadow { made.in_shadow() } else { made })
    }

    fn bucket_at(
        &self,
        bucket: Bucket,
        share: Share,
        part: impl Fn(&'static str, u64) -> Result<u64, NoShare>,
    ) -> Result<Self, NoShare> {
        let Bucket { drain, per_token, undelayed } = bucket;
        let (count, period) = (drain * u64::from(share.part), per_token * u64::from(share.of));
        let divisor = gcd(count, period);
        let (drain, per_token) = (count / divisor, period / divisor);
        if drain >= CEILING || per_token > LONGEST_SPAN.0 {
            return Err(NoShare::Inexact);
        }
        let rate = Rate { count: drain, period: Micros(per_token) };
        let made = match undelayed {
            Some(undelayed) => {
                let (burst, delay) = (self.limit.saturating_sub(1), undelayed / self.weight);
                Self::leaky_queue(share.of_units(burst), rate, share.of_units(delay))
            }
            None if self.charges_after() => {
                let burst = part("burst", self.capacity / self.weight)?;
                Self::charge_after(burst, rate, part("max_cost", self.limit)?)
            }
            None if self.is_uniform() => Self::bucket(1, rate),
            None => Self::bucket(part("burst", self.limit)?, rate),
        };
        // A bucket that cannot count its rate drains somewhat slower, see `Algorithm::bucket`.
        let exact = |made: &Self| match made.engine {
            Engine::Bucket(own) => (own.drain, own.per_token) == (drain, per_token),
            _ => false,
        };
        made.ok().filter(exact).ok_or(NoShare::Inexact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = Micros::from_secs(1);

    fn share(part: u16, of: u16) -> Share {
        Share::new(part, of).unwrap()
    }

    #[test]
    fn a_share_is_above_0_and_at_most_1() {
        for (part, of) in [(0, 1), (2, 1), (1, 1001), (1001, 1001), (0, 0), (1, 0)] {
            assert_eq!(Share::new(part, of), None, "{part}/{of}");
        }
        assert!(Share::new(1000, 1000).is_some() && Share::new(1, 1000).is_some());
    }

    #[test]
    fn limits_have_the_parts_that_the_page_says() {
        let quarter = share(1, 4);
        let limit = |made: Result<Algorithm, super::super::Invalid>| made.unwrap().at_share(quarter);
        assert_eq!(limit(Algorithm::fixed_window(11, SECOND, true, true)).unwrap().limit(), 2);
        assert_eq!(limit(Algorithm::sliding_window(7, SECOND)).unwrap().limit(), 1);
        assert_eq!(limit(Algorithm::bucketed_window(9, SECOND, 10, true)).unwrap().limit(), 2);
        let log = limit(Algorithm::strict_log(8, SECOND, true, Micros(5)));
        assert_eq!(log, Ok(Algorithm::strict_log(2, SECOND, true, Micros(5)).unwrap()));
        let stock = limit(Algorithm::interval_refill(10, 4, SECOND, true));
        assert_eq!(stock, Ok(Algorithm::interval_refill(2, 1, SECOND, true).unwrap()));
        let rate = |count, period| Rate { count, period };
        let bucket = limit(Algorithm::bucket(10, rate(3, SECOND)));
        assert_eq!(bucket, Ok(Algorithm::bucket(2, rate(3, Micros::from_secs(4))).unwrap()));
        let uniform = limit(Algorithm::uniform(Micros(10)));
        assert_eq!(uniform, Ok(Algorithm::uniform(Micros(40)).unwrap()));
        let queue = limit(Algorithm::leaky_queue(9, rate(1, SECOND), 9));
        assert_eq!(queue, Ok(Algorithm::leaky_queue(2, rate(1, Micros::from_secs(4)), 2).unwrap()));
        let after = limit(Algorithm::charge_after(8, rate(4, SECOND), 80));
        assert_eq!(after, Ok(Algorithm::charge_after(2, rate(1, SECOND), 20).unwrap()));
        let none = limit(Algorithm::fixed_window(0, SECOND, false, false));
        assert_eq!(none.unwrap().limit(), 0, "a limit of 0 stays 0");
        let shadow = Algorithm::sliding_window(7, SECOND).unwrap().in_shadow();
        assert!(shadow.at_share(quarter).unwrap().is_shadow());
    }

    #[test]
    fn what_has_no_part_says_so_and_the_nearest_share_that_works_is_found() {
        let three = Algorithm::fixed_window(3, SECOND, false, false).unwrap();
        assert_eq!(three.at_share(share(1, 4)), Err(NoShare::Zero("limit", 3)));
        let nearest = share(1, 4).nearest(|share| three.at_share(share).is_ok());
        assert_eq!(nearest, share(1, 3));
        let refill = Algorithm::interval_refill(100, 2, SECOND, false).unwrap();
        assert_eq!(refill.at_share(share(1, 4)), Err(NoShare::Zero("refill", 2)));
        let warm_up = Algorithm::warm_up(Rate { count: 5, period: SECOND }, SECOND, 3, None).unwrap();
        assert_eq!(warm_up.at_share(share(1, 2)), Err(NoShare::WarmUp));
        let wide = Algorithm::bucket(1 << 51, Rate { count: 1_000_000, period: SECOND }).unwrap();
        assert!(wide.at_share(share(1, 999)).is_ok());
        // Nearly 2^51 units of 1,000 ticks each cannot be counted.
        assert_eq!(wide.at_share(share(999, 1000)), Err(NoShare::Inexact));
        let nearest = share(999, 1000).nearest(|share| wide.at_share(share).is_ok());
        assert!(wide.at_share(nearest).is_ok(), "{nearest}");
        assert_eq!(share(1, 2).nearest(|_| false), Share::ALL);
        assert_eq!(share(2, 4).nearest(|_| true).to_string(), "1/2");
    }
}
