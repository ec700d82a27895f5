//! Numbers from a seed.

pub struct TraceRandom(pub u64);

impl TraceRandom {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) % end.max(1)
    }

    /// True once in `of` times.
    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}
