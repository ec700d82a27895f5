//! Random numbers of a seed.

/// SplitMix64. Its numbers are the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// A number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Another source, which goes its own way.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.number())
    }
}
