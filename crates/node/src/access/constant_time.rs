//! Comparison of secrets.

use subtle::ConstantTimeEq as _;

/// Compares in a time that depends on the lengths only. By words: `subtle` alone compares byte by byte.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let (words, rest) = one.as_chunks::<8>();
    let (other_words, other_rest) = other.as_chunks::<8>();
    let mut differs = 0;
    for (word, other) in words.iter().zip(other_words) {
        differs |= u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*other);
    }
    for (byte, other) in rest.iter().zip(other_rest) {
        differs |= u64::from(byte ^ other);
    }
    differs.ct_eq(&0).into()
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn each_bit_counts() {
        let secret = [7; 51];
        assert!(same(&secret, &secret) && same(b"", b""));
        assert!(!same(&secret, &secret[..50]) && !same(b"", b"x"));
        for at in 0..secret.len() {
            for bit in 0..8 {
                let mut other = secret;
                other[at] ^= 1 << bit;
                assert!(!same(&secret, &other), "{at} {bit}");
            }
        }
    }
}
