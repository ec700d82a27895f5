//! Huffman coding of string literals (RFC 7541, 5.2 and Appendix B), decoding only.
//!
//! The code is canonical: codes of one length are consecutive, in the order of their symbols. So the code lengths
//! define the whole table.

/// The length of each symbol's code, in bits. EOS has 30, and is the last code of that length.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26,
];

const LONGEST: usize = 30;

/// Length in bits of the lookup table's index. All codes that short are of common characters.
const PREFIX: u32 = 8;

/// The symbols in the order of their codes.
const SYMBOLS: [u8; 256] = symbols();

/// The first code of each length, and its index in [`SYMBOLS`].
const FIRST: [(u32, usize); LONGEST + 1] = first_codes();

/// Decoding table, indexed by the next eight bits: a symbol and the length of its code, or 0 where the code is
/// longer.
const LOOKUP: [(u8, u8); 1 << PREFIX] = lookup();

/// Appends the decoded string. `None` if it contains EOS, or if its padding is longer than seven bits or not
/// the beginning of EOS, which is all ones.
pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut bits, mut count, mut rest) = (0_u64, 0_u32, bytes.iter());
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits = bits << 8 | u64::from(*byte);
            count += 8;
        }
        // The next 32 bits, padded with ones.
        let window = if count >= 32 {
            (bits >> (count - 32)) as u32
        } else {
            ((bits << 32 | u64::from(u32::MAX)) >> count) as u32
        };
        let (symbol, length) = next(window)?;
        if length > count {
            // Only padding remains.
            let padding = (1_u64 << count.min(8)) - 1;
            return (count < 8 && bits & padding == padding).then_some(());
        }
        out.push(symbol);
        count -= length;
    }
}

/// Returns the symbol whose code begins the window, and the length of that code. If only ones are left, the length
/// is above that of any code.
fn next(window: u32) -> Option<(u8, u32)> {
    let (symbol, length) = LOOKUP[(window >> (32 - PREFIX)) as usize];
    if length > 0 {
        return Some((symbol, length.into()));
    }
    for length in PREFIX as usize + 1..=LONGEST {
        let code = window >> (32 - length);
        let (first, place) = FIRST[length];
        let next_place = if length < LONGEST { FIRST[length + 1].1 } else { SYMBOLS.len() };
        let index = place + (code.wrapping_sub(first)) as usize;
        if code >= first && index < next_place {
            return Some((SYMBOLS[index], length as u32));
        }
    }
    // EOS, either encoded or as part of the padding.
    Some((0, if window >> 2 == u32::MAX >> 2 { u32::MAX } else { return None }))
}

const fn symbols() -> [u8; 256] {
    let (mut symbols, mut place, mut length) = ([0; 256], 0, 1);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                symbols[place] = symbol as u8;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
}

const fn first_codes() -> [(u32, usize); LONGEST + 1] {
    let (mut first, mut code, mut place, mut length) = ([(0, 0); LONGEST + 1], 0, 0, 1);
    while length <= LONGEST {
        code <<= 1;
        first[length] = (code, place);
        while place < SYMBOLS.len() && LENGTHS[SYMBOLS[place] as usize] as usize == length {
            code += 1;
            place += 1;
        }
        length += 1;
    }
    first
}

const fn lookup() -> [(u8, u8); 1 << PREFIX] {
    let (mut lookup, mut length) = ([(0, 0); 1 << PREFIX], 1);
    while length <= PREFIX as usize {
        let (mut code, mut place) = FIRST[length];
        while place < FIRST[length + 1].1 {
            let spare = PREFIX as usize - length;
            let mut index = (code as usize) << spare;
            while index < (code as usize + 1) << spare {
                lookup[index] = (SYMBOLS[place], length as u8);
                index += 1;
            }
            code += 1;
            place += 1;
        }
        length += 1;
    }
    lookup
}

#[cfg(test)]
mod tests {
    use httlib_huffman::{DecoderSpeed, decode as decode_leniently, encode};
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(bytes, &mut out).map(|()| out)
    }

    #[test]
    fn padding_is_the_beginning_of_eos_and_shorter_than_a_byte() {
        assert_eq!(decoded(b""), Some(vec![]));
        // `0` is 00000.
        assert_eq!(decoded(&[0b0000_0111]), Some(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), None, "not ones");
        assert_eq!(decoded(&[0b0000_0000]), None, "not ones");
        assert_eq!(decoded(&[0b0000_0111, 0xff]), None, "eleven bits");
        for ones in 1..9 {
            assert_eq!(decoded(&vec![0xff; ones]), None, "{ones} bytes of ones");
        }
        // `0`, EOS and padding.
        assert_eq!(decoded(&[0b0000_0111, 0xff, 0xff, 0xff, 0b1110_0000]), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut encoded = Vec::new();
            encode(&text, &mut encoded).unwrap();
            prop_assert_eq!(decoded(&encoded), Some(text));
        }

        /// A string is accepted if and only if it is the canonical encoding of its decoded text.
        #[test]
        fn only_encodings_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            let (mut text, mut again) = (Vec::new(), Vec::new());
            let known = decode_leniently(&bytes, &mut text, DecoderSpeed::OneBit).is_ok()
                && encode(&text, &mut again).is_ok()
                && again == bytes;
            prop_assert_eq!(decoded(&bytes), known.then_some(text));
        }
    }
}
