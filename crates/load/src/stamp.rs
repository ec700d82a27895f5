//! Message templates that differ only in a number.

/// A template with a key number, prepared for every number of digits.
#[derive(Debug)]
pub(super) struct Stamp {
    /// Plates by the number of digits, from 1.
    plates: Vec<Plate>,
}

#[derive(Debug)]
struct Plate {
    bytes: Vec<u8>,
    /// Offsets of the digits.
    gaps: Vec<usize>,
}

impl Stamp {
    /// A template for numbers up to `largest`. `encode` encodes the message for a number; messages for numbers of the
    /// same length must differ only in the digits.
    pub(super) fn new(largest: u64, encode: impl Fn(&str) -> Vec<u8>) -> Self {
        let longest = largest.to_string().len();
        Self { plates: (1..=longest).map(|digits| Plate::new(digits, &encode)).collect() }
    }

    /// Appends the message for `number`, which is at most the largest.
    pub(super) fn write(&self, mut number: u64, out: &mut Vec<u8>) {
        let digits = number.checked_ilog10().unwrap_or(0) as usize;
        let Some(plate) = self.plates.get(digits) else { return };
        let begin = out.len();
        out.extend_from_slice(&plate.bytes);
        let message = &mut out[begin..];
        for place in (0..=digits).rev() {
            let digit = b'0' + (number % 10) as u8;
            number /= 10;
            for gap in &plate.gaps {
                message[gap + place] = digit;
            }
        }
    }

    /// The length of the message for `number`.
    pub(super) fn length(&self, number: u64) -> usize {
        let digits = number.checked_ilog10().unwrap_or(0) as usize;
        self.plates.get(digits).map_or(0, |plate| plate.bytes.len())
    }

    /// The length of the longest message.
    pub(super) fn longest(&self) -> usize {
        self.plates.last().map_or(0, |plate| plate.bytes.len())
    }
}

impl Plate {
    /// Finds the gaps by comparing two numbers that differ in every digit.
    fn new(digits: usize, encode: &impl Fn(&str) -> Vec<u8>) -> Self {
        let (bytes, other) = (encode(&"1".repeat(digits)), encode(&"2".repeat(digits)));
        let differ: Vec<usize> =
            bytes.iter().zip(&other).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
        Self { gaps: differ.chunks(digits).map(|gap| gap[0]).collect(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::Stamp;

    #[test]
    fn stamps_are_what_would_have_been_encoded() {
        let encode = |number: &str| format!("{} of {number}/{number}", number.len()).into_bytes();
        let stamp = Stamp::new(1_000_000, encode);
        for number in [0, 1, 9, 10, 99, 100, 12_345, 999_999, 1_000_000] {
            let mut out = b"before ".to_vec();
            stamp.write(number, &mut out);
            assert_eq!(stamp.length(number), out.len() - "before ".len());
            let expected = [b"before ".to_vec(), encode(&number.to_string())].concat();
            assert_eq!(String::from_utf8(out), String::from_utf8(expected));
        }
        assert_eq!(stamp.longest(), "7 of 1000000/1000000".len());
    }

    #[test]
    fn a_message_without_a_number_is_itself() {
        let mut out = Vec::new();
        Stamp::new(99, |_| b"same".to_vec()).write(42, &mut out);
        assert_eq!(out, b"same");
    }
}
