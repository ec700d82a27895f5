//! Partitions: shares of a limit that are guaranteed to callers, by an attribute of the call.

use std::sync::Arc;

/// The most partitions that a limit may have.
pub const MAX_PARTITIONS: usize = 100;

/// The whole limit, in the unit of shares.
const WHOLE: u64 = 1000;

/// The shares of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    by: Arc<str>,
    /// Values of the attribute, in order, with their shares in thousandths.
    shares: Vec<(Box<str>, u64)>,
}

/// The partition of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition<'a> {
    /// The value that the configuration lists; empty: all values that it does not list.
    pub name: &'a str,
    /// The share in thousandths.
    pub share: u64,
}

impl Partitions {
    /// Shares in thousandths of the values of the attribute `by`.
    pub fn new(by: &str, mut shares: Vec<(Box<str>, u64)>) -> Self {
        shares.sort();
        Self { by: by.into(), shares }
    }

    /// The attribute whose values have shares.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The listed values with their shares in thousandths, in order.
    pub fn shares(&self) -> &[(Box<str>, u64)] {
        &self.shares
    }

    /// The partition of a caller whose attribute has this value. All values that are not listed are one partition.
    pub fn of(&self, value: &str) -> Partition<'_> {
        let found = self.shares.binary_search_by(|(name, _)| (**name).cmp(value));
        let listed = found.ok().and_then(|index| self.shares.get(index));
        listed.map_or(Partition { name: "", share: 0 }, |(name, share)| Partition { name, share: *share })
    }
}

impl Partition<'_> {
    /// Guaranteed permits of this partition: max(1, ⌈limit · share⌉), exactly.
    pub fn guaranteed(&self, limit: u64) -> u64 {
        let (whole, rest) = (limit / WHOLE, limit % WHOLE);
        (whole * self.share + (rest * self.share).div_ceil(WHOLE)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up_and_at_least_one() {
        let shares = vec![("live".into(), 900), ("batch".into(), 100)];
        let partitions = Partitions::new("tier", shares);
        let guaranteed = |value, limit| partitions.of(value).guaranteed(limit);
        assert_eq!((guaranteed("live", 10), guaranteed("live", 11)), (9, 10));
        assert_eq!((guaranteed("batch", 10), guaranteed("batch", 11)), (1, 2));
        assert_eq!((guaranteed("other", 1000), guaranteed("", 0)), (1, 1));
        let most = (1 << 52) - 1;
        let exact = (u128::from(most) * 900).div_ceil(1000);
        assert_eq!(u128::from(guaranteed("live", most)), exact);
    }
}
