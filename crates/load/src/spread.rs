//! Random sequence of keys.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Zipf};

use super::plan::Spread;

/// Endless sequence of key numbers below a bound, determined by the seed.
#[derive(Debug)]
pub(super) struct Keys {
    count: u64,
    random: SmallRng,
    /// `None`: uniform.
    zipf: Option<Zipf<f64>>,
}

impl Keys {
    /// `None` if zipf's exponent is negative or not a number.
    pub(super) fn new(count: u64, spread: Spread, seed: u64) -> Option<Self> {
        let zipf = match spread {
            Spread::Uniform => None,
            #[allow(clippy::cast_precision_loss)] // among 2^53 keys neighbours may be mixed up
            Spread::Zipf(exponent) => Some(Zipf::new(count as f64, exponent).ok()?),
        };
        Some(Self { count, random: SmallRng::seed_from_u64(seed), zipf })
    }

    pub(super) fn next(&mut self) -> u64 {
        match &self.zipf {
            _ if self.count <= 1 => 0,
            None => self.random.random_range(0..self.count),
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 1 to count
            Some(zipf) => (zipf.sample(&mut self.random) as u64 - 1).min(self.count - 1),
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss)]
mod tests {
    use super::{Keys, Spread};

    fn counts(keys: u64, spread: Spread, samples: u32) -> Vec<u32> {
        let mut row = Keys::new(keys, spread, 7).unwrap();
        let mut counts = vec![0; usize::try_from(keys).unwrap()];
        for _ in 0..samples {
            counts[usize::try_from(row.next()).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn zipf_has_its_shape() {
        let samples = 1_000_000;
        for exponent in [0.8, 1.0, 1.3] {
            let counts = counts(1_000, Spread::Zipf(exponent), samples);
            let weight = |rank: usize| (rank as f64).powf(-exponent);
            let all: f64 = (1..=1_000).map(weight).sum();
            for rank in [1, 2, 3, 10, 100] {
                let expected = f64::from(samples) * weight(rank) / all;
                let error = (f64::from(counts[rank - 1]) - expected) / expected.sqrt();
                assert!(error.abs() < 5.0, "rank {rank} of {exponent}: {} not {expected}", counts[rank - 1]);
            }
        }
    }

    #[test]
    fn uniform_is_flat() {
        for count in counts(100, Spread::Uniform, 1_000_000) {
            assert!(count.abs_diff(10_000) < 500, "{count}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_keys() {
        let row = |seed| {
            let mut keys = Keys::new(1 << 40, Spread::Uniform, seed).unwrap();
            (0..9).map(|_| keys.next()).collect::<Vec<_>>()
        };
        assert_eq!(row(1), row(1));
        assert_ne!(row(1), row(2));
        assert!(Keys::new(9, Spread::Zipf(f64::NAN), 1).is_none());
        assert!(Keys::new(9, Spread::Zipf(-1.0), 1).is_none());
        assert_eq!(Keys::new(1, Spread::Zipf(1.0), 1).unwrap().next(), 0);
    }
}
