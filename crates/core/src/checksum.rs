//! FNV-1a of 64 bits (Fowler, Noll, Vo): a checksum that is the same on every machine and in every release. It finds
//! differences and damage. It is no protection against an attacker.

/// The checksum of bytes that are added one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// Adds a byte.
    pub const fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// Adds bytes in order.
    pub fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    /// Adds a text, so that two texts differ from one that both make together: no text has the byte at its end.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.byte(0xff);
    }

    /// Returns the checksum of what has been added.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

#[cfg(test)]
mod tests {
    use super::Fnv1a;

    /// The values of its authors' test vectors.
    #[test]
    fn it_is_that_of_its_authors() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut sum = Fnv1a::default();
            sum.bytes(text.as_bytes());
            assert_eq!(sum.sum(), expected, "{text}");
        }
    }
}
