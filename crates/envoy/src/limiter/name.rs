//! The name of a descriptor's counter: what stands for the resource in its key.
//!
//! ```text
//!   4:edge/11:remote_addr=8:10.0.0.1/4:path~7:/files*
//!   └ domain └ an entry: its key and its value   └ an entry whose values all share one counter
//! ```
//!
//! Injective: every part says its length, and the sign before a value says whether it is a request's or
//! stands for all that match. What is longer than a part of a key may be is named by its digest, which no
//! readable name looks like: those begin with a digit.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;

use ring::digest::{SHA256, digest};

use crate::rules::Rule;
use weir_core::key::MAX_PART;

/// The largest name that is kept for the next question.
const MOST_KEPT: usize = 4 << 10;

thread_local! {
    /// The name of the last question.
    static SPARE: Cell<String> = const { Cell::new(String::new()) };
}

/// The name of the counter of `entries` in `domain`, as they match.
pub(super) fn counter_name(domain: &str, entries: &[(&str, &str)], rule: Option<&Arc<Rule>>) -> String {
    let mut name = SPARE.take();
    name.reserve(64);
    part(&mut name, domain);
    for (index, (key, value)) in entries.iter().enumerate() {
        let shared = rule.and_then(|rule| rule.shared(index));
        let (sign, (key, value)) = match shared {
            Some(shared) => ('~', shared),
            None => ('=', (*key, *value)),
        };
        name.push('/');
        part(&mut name, key);
        name.push(sign);
        part(&mut name, value);
    }
    if name.len() > MAX_PART { shortened(&name) } else { name }
}

/// Gives back a name whose question is answered, so that the next one needs no allocation.
#[inline]
pub(super) fn give_back(mut name: String) {
    if (1..=MOST_KEPT).contains(&name.capacity()) {
        name.clear();
        SPARE.set(name);
    }
}

/// A digest of a counter's name, of 128 bits, for where a name must be short.
pub(super) fn digest_of(name: &str) -> String {
    const DIGITS: usize = 32;
    shortened(name).split_off("sha256:".len()).chars().take(DIGITS).collect()
}

#[inline]
fn part(name: &mut String, text: &str) {
    decimal(name, text.len());
    name.push(':');
    name.push_str(text);
}

/// Every part of every name has one, and most are below 100: itoa takes 3 % of a request longer.
#[inline]
fn decimal(name: &mut String, number: usize) {
    if number >= 100 {
        long_decimal(name, number / 100);
    }
    if number >= 10 {
        name.push(digit(number / 10));
    }
    name.push(digit(number));
}

#[cold]
fn long_decimal(name: &mut String, number: usize) {
    decimal(name, number);
}

/// The last digit.
#[inline]
const fn digit(number: usize) -> char {
    (b'0' + (number % 10) as u8) as char
}

fn shortened(name: &str) -> String {
    let mut short = String::from("sha256:");
    for byte in digest(&SHA256, name.as_bytes()).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::counter_name;

    #[test]
    fn keys_and_values_never_run_into_each_other() {
        let joined = counter_name("d", &[("a_b", "c")], None);
        assert_eq!(joined, "1:d/3:a_b=1:c");
        assert_eq!(counter_name(&"d".repeat(10), &[], None), format!("10:{}", "d".repeat(10)));
        assert_ne!(joined, counter_name("d", &[("a", "b_c")], None));
        assert_ne!(
            counter_name("d", &[("a", "1:b/1:c=1:d")], None),
            counter_name("d", &[("a", "1:b"), ("c", "d")], None)
        );
    }

    #[test]
    fn names_beyond_the_bound_are_digests() {
        let (one, other) = ("x".repeat(65_536), "x".repeat(65_535) + "y");
        let name = counter_name("d", &[("a", &one)], None);
        assert_eq!(name.len(), "sha256:".len() + 64);
        assert_ne!(name, counter_name("d", &[("a", &other)], None));
    }
}
