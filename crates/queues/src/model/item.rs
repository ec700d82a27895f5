//! The id of an item.

use std::fmt;
use std::str::FromStr;

use weir_units::{LATEST, Micros};

/// Id of an item in its queue: the millisecond of its arrival, and a number within it. Ids only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId {
    /// Milliseconds since the Unix epoch.
    pub ms: u64,
    /// The number within the millisecond.
    pub seq: u64,
}

/// A text that is no id of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of an item is two numbers with a hyphen between them, such as 1704067200000-0")]
pub struct NoItemId;

impl ItemId {
    /// The id of an item that arrives at `now`, after `last`.
    pub(super) fn after(last: Self, now: Micros) -> Self {
        let ms = now.0 / 1000;
        if ms > last.ms { Self { ms, seq: 0 } } else { Self { seq: last.seq.saturating_add(1), ..last } }
    }

    /// Age of the item.
    pub(super) fn age(self, now: Micros) -> Micros {
        Micros(now.0.saturating_sub(self.ms.saturating_mul(1000)))
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for ItemId {
    type Err = NoItemId;

    /// Reads what [`fmt::Display`] writes, and nothing else.
    fn from_str(text: &str) -> Result<Self, NoItemId> {
        let number = |digits: &str| {
            let plain = digits == "0" || !digits.starts_with('0');
            let digits = Some(digits).filter(|it| plain && it.bytes().all(|byte| byte.is_ascii_digit()));
            digits?.parse::<u64>().ok().filter(|number| *number <= LATEST.0)
        };
        let parts = text.split_once('-').and_then(|(ms, seq)| Some((number(ms)?, number(seq)?)));
        let (ms, seq) = parts.ok_or(NoItemId)?;
        Ok(Self { ms, seq })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_only_grow_whatever_the_clock_does() {
        let mut last = ItemId::default();
        for now in [0, 0, 5_000, 5_999, 4_000, 6_000] {
            let next = ItemId::after(last, Micros(now));
            assert!(next > last, "{next} after {last}");
            last = next;
        }
        assert_eq!(last, ItemId { ms: 6, seq: 0 });
    }

    #[test]
    fn what_is_shown_is_read_and_nothing_else() {
        let id = ItemId { ms: 1_704_067_200_000, seq: 12 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "-", "1", "1-", "-1", "01-0", "1-+1", "1-1-1", " 1-1", "1-9007199254740992", "a-b"] {
            assert_eq!(text.parse::<ItemId>(), Err(NoItemId), "{text}");
        }
    }
}
