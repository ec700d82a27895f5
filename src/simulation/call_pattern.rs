//! Patterns of calls: evenly spaced, in bursts, or at random.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use weir_config::{rate_of, span};
use weir_core::algorithm::Rate;
use weir_units::Micros;

use super::{MAX_CALLS, SimulatedCall, SimulatedCalls};

/// Times of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPattern {
    /// Evenly spaced: `constant:50/s`.
    Constant(Rate),
    /// So many at once, then again after the pause: `burst:100x5s`.
    Burst {
        /// Calls per burst.
        calls: u64,
        /// Time between the starts of two bursts.
        every: Micros,
    },
    /// At random, each independent of the others, with this mean rate: `poisson:50/s`.
    Poisson(Rate),
}

/// An invalid pattern, or one with too many calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern:?}, column {column}: {reason}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// Column in it, from 1.
    pub column: usize,
    /// The mistake.
    pub reason: String,
}

impl CallPattern {
    /// Parses a pattern of the command line.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = |column: usize, reason: String| PatternError { pattern: text.to_owned(), column, reason };
        let Some((kind, numbers)) = text.split_once(':') else {
            let reason = "write constant:RATE, burst:CALLSxPAUSE, poisson:RATE or until:CALLS, such as constant:50/s, \
                          burst:100x5s, poisson:50/s, until:300, or the name of a .csv file";
            return Err(error(1, reason.to_owned()));
        };
        let column = kind.chars().count() + 2;
        let rate = || match rate_of(numbers) {
            Ok(Rate { count: 0, .. }) => Err(error(column, "the count must be at least 1".to_owned())),
            Ok(Rate { period: Micros(0), .. }) => {
                Err(error(column, "the period must be at least 1us".to_owned()))
            }
            rate => rate.map_err(|reason| error(column, reason)),
        };
        match kind {
            "constant" => Ok(Self::Constant(rate()?)),
            "poisson" => Ok(Self::Poisson(rate()?)),
            "burst" => {
                let Some((calls, every)) = numbers.split_once('x') else {
                    return Err(error(column, "write CALLSxPAUSE, such as 100x5s".to_owned()));
                };
                let pause_column = column + calls.chars().count() + 1;
                let calls = match calls.parse::<u64>() {
                    Ok(calls @ 1..=1_000_000) => calls,
                    _ => return Err(error(column, "the calls of a burst must be 1 to 1000000".to_owned())),
                };
                match span(every) {
                    Ok(Micros(0)) => Err(error(pause_column, "the pause must be at least 1us".to_owned())),
                    Ok(every) => Ok(Self::Burst { calls, every }),
                    Err(reason) => Err(error(pause_column, reason)),
                }
            }
            other => Err(error(
                1,
                format!("{other:?} is no pattern; there are constant, burst, poisson and until"),
            )),
        }
    }

    /// The calls until `end`, of cost `cost`, by `consumers` consumers of one resource in turn.
    pub fn calls(
        &self,
        end: Micros,
        (resource, consumers): (&str, usize),
        cost: u64,
        seed: u64,
    ) -> Result<SimulatedCalls, PatternError> {
        let consumers = consumers.max(1);
        let name = |index| if consumers == 1 { "consumer".to_owned() } else { format!("consumer-{index}") };
        let subjects = (0..consumers).map(|index| (resource.to_owned(), name(index))).collect();
        let mut times = self.times(seed);
        let mut calls = Vec::new();
        while let Some(at) = times().filter(|at| *at < end) {
            if calls.len() == MAX_CALLS {
                return Err(PatternError {
                    pattern: self.to_string(),
                    column: 1,
                    reason: format!("it makes more than {MAX_CALLS} calls in this time"),
                });
            }
            calls.push(SimulatedCall { at, subject: calls.len() % consumers, cost, costs: 0 });
        }
        Ok(SimulatedCalls { subjects, calls, ..SimulatedCalls::default() })
    }

    /// The times of the calls, in order; `None` beyond the range of the clock.
    pub(super) fn times(&self, seed: u64) -> impl FnMut() -> Option<Micros> + use<> {
        let (pattern, mut made, mut sum_us) = (*self, 0_u64, 0.0_f64);
        let mut random = SmallRng::seed_from_u64(seed);
        move || {
            let number = made;
            made += 1;
            match pattern {
                // Computed from the start each time, so that no error adds up.
                Self::Constant(Rate { count, period }) => {
                    let at = u128::from(number) * u128::from(period.0) / u128::from(count);
                    u64::try_from(at).ok().map(Micros)
                }
                Self::Burst { calls, every } => (number / calls).checked_mul(every.0).map(Micros),
                Self::Poisson(Rate { count, period }) => {
                    // 1 − a number below 1 is above 0, so that its logarithm is finite.
                    let share: f64 = 1.0 - random.random::<f64>();
                    #[allow(clippy::cast_precision_loss)]
                    let mean_us = period.0 as f64 / count as f64;
                    sum_us -= share.ln() * mean_us;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
                    let at = Micros(sum_us as u64);
                    Some(at)
                }
            }
        }
    }
}

impl std::fmt::Display for CallPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Constant(Rate { count, period }) => write!(f, "constant:{count}/{}us", period.0),
            Self::Burst { calls, every } => write!(f, "burst:{calls}x{}us", every.0),
            Self::Poisson(Rate { count, period }) => write!(f, "poisson:{count}/{}us", period.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pattern: &str, end: u64, seed: u64) -> Vec<u64> {
        let pattern = CallPattern::parse(pattern).unwrap();
        let calls = pattern.calls(Micros(end), ("r", 1), 1, seed).unwrap().calls;
        calls.iter().map(|call| call.at.0).collect()
    }

    #[test]
    fn patterns_are_made_of_their_numbers() {
        assert_eq!(times("constant:4/s", 1_000_000, 0), [0, 250_000, 500_000, 750_000]);
        assert_eq!(times("constant:3/s", 1_000_001, 0), [0, 333_333, 666_666, 1_000_000]);
        assert_eq!(times("burst:2x5s", 5_000_001, 0), [0, 0, 5_000_000, 5_000_000]);
    }

    #[test]
    fn random_calls_depend_on_the_seed_alone() {
        let of = |seed| times("poisson:50/s", 20_000_000, seed);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        let count = of(7).len();
        // A thousand on average, with a deviation of 32.
        assert!((840..1_160).contains(&count), "{count}");
    }

    #[test]
    fn a_pattern_that_cannot_be_read_says_where() {
        let at = |text: &str| {
            let error = CallPattern::parse(text).unwrap_err();
            (error.column, error.reason)
        };
        assert_eq!(at("constantly").0, 1);
        assert_eq!(at("often:5/s").0, 1);
        assert_eq!(at("constant:5").0, 10);
        assert_eq!(at("burst:5").0, 7);
        assert_eq!(at("burst:0x5s"), (7, "the calls of a burst must be 1 to 1000000".to_owned()));
        assert_eq!(at("burst:10x5").0, 10);
        assert_eq!(at("poisson:0/s"), (9, "the count must be at least 1".to_owned()));
    }

    #[test]
    fn consumers_take_turns() {
        let calls = CallPattern::parse("constant:4/s").unwrap();
        let calls = calls.calls(Micros(1_000_000), ("r", 3), 2, 0).unwrap();
        assert_eq!(calls.calls.iter().map(|call| call.subject).collect::<Vec<_>>(), [0, 1, 2, 0]);
        assert_eq!(calls.subjects[2], ("r".to_owned(), "consumer-2".to_owned()));
        assert!(calls.calls.iter().all(|call| call.cost == 2));
    }
}
