//! Deterministic sampling of keys for the log.

use std::fmt;

use weir_core::key::KeySecret;

/// A sample rate of keys. A key is a resource and a consumer. Sampling depends on the key alone: it is the same on all
/// nodes and after every restart, and a larger share contains all keys of a smaller one.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct KeyShare(f64);

impl KeyShare {
    /// No key.
    pub const NONE: Self = Self(0.0);
    /// All keys.
    pub const ALL: Self = Self(1.0);

    /// Creates the share `part`, from 0 to 1.
    #[must_use]
    pub fn new(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then_some(Self(part))
    }

    /// True if the key is in the sample. The hash uses a public key, because it is not secret.
    #[inline]
    #[must_use]
    pub fn has(self, resource: &str, consumer: &str) -> bool {
        if self == Self::ALL {
            return true;
        }
        // The length prefix makes the concatenation unambiguous.
        let length = (resource.len() as u64).to_le_bytes();
        let digester = KeySecret::BUILT_IN.digester().and(&length);
        let hash = digester.and(resource.as_bytes()).and(consumer.as_bytes()).finish();
        // 53 bits fit into a double exactly.
        let place = (hash >> 75) as u64 as f64 / (1_u64 << 53) as f64;
        place < self.0
    }
}

impl fmt::Display for KeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_share(part: f64) -> Vec<String> {
        let share = KeyShare::new(part).unwrap();
        let names = (0..10_000).map(|index| format!("consumer-{index}"));
        names.filter(|name| share.has("api/orders", name)).collect()
    }

    #[test]
    fn a_share_has_about_its_part_of_the_keys_and_those_of_every_smaller_one() {
        let (one, ten) = (in_share(0.01), in_share(0.1));
        assert!(
            (60..140).contains(&one.len()) && (880..1120).contains(&ten.len()),
            "{} {}",
            one.len(),
            ten.len()
        );
        assert!(one.iter().all(|name| ten.contains(name)));
        assert_eq!((in_share(0.0).len(), in_share(1.0).len()), (0, 10_000));
    }

    /// The sample must never change, because logs of other versions must stay readable.
    #[test]
    fn the_keys_of_a_share_are_these() {
        assert_eq!(in_share(0.01)[..4], ["consumer-128", "consumer-149", "consumer-510", "consumer-537"]);
    }

    #[test]
    fn a_share_is_from_nothing_to_everything() {
        assert_eq!([-0.1, 1.1, f64::NAN].map(KeyShare::new), [None; 3]);
        assert_eq!(KeyShare::new(0.25).unwrap().to_string(), "0.25");
    }
}
