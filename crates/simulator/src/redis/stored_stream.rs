//! The entries of a stream.

use std::collections::BTreeMap;

use super::error_text::SimulatedError;
use super::numbers::integer;

/// A stream without groups.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredStream {
    pub(super) entries: BTreeMap<EntryId, Vec<Vec<u8>>>,
    pub(super) last: EntryId,
}

/// The id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct EntryId {
    pub(super) ms: u64,
    pub(super) seq: u64,
}

impl EntryId {
    pub(super) const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    pub(super) const INVALID: SimulatedError =
        SimulatedError::new("ERR Invalid stream ID specified as stream command argument");

    /// Reads an id. `seq` stands for a missing second part.
    pub(super) fn parse(text: &[u8], seq: u64) -> Result<Self, SimulatedError> {
        let (ms, rest) = match text.iter().position(|byte| *byte == b'-') {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        Ok(Self { ms: part(ms)?, seq: rest.map_or(Ok(seq), part)? })
    }

    /// The one after it.
    pub(super) fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { ms: self.ms, seq }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The one before it.
    pub(super) fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { ms: self.ms, seq }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    pub(super) fn text(self) -> String {
        format!("{}-{}", self.ms, self.seq)
    }
}

fn part(text: &[u8]) -> Result<u64, SimulatedError> {
    if let Ok(number) = integer(text) {
        return u64::try_from(number).map_err(|_| EntryId::INVALID);
    }
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|it| it.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or(EntryId::INVALID)
}
