//! The options of SET.

use super::error_text::SimulatedError;
use super::numbers::integer;

/// Condition of a SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetCondition {
    IfAbsent,
    IfPresent,
}

/// Expiry of the value of a SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetExpiry {
    Kept,
    /// The number is of this many milliseconds.
    After(i64, i64),
    At(i64, i64),
}

/// Options of a SET.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SetOptions {
    pub(super) condition: Option<SetCondition>,
    pub(super) expiry: Option<SetExpiry>,
    pub(super) gets: bool,
}

const INVALID: SimulatedError = SimulatedError::new("ERR invalid expire time in 'set' command");

impl SetOptions {
    pub(super) fn parse(words: &[Vec<u8>]) -> Result<Self, SimulatedError> {
        let mut options = Self::default();
        let mut number = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let word = word.to_ascii_uppercase();
            let timed: fn(i64) -> SetExpiry = match word.as_slice() {
                b"NX" if options.condition != Some(SetCondition::IfPresent) => {
                    options.condition = Some(SetCondition::IfAbsent);
                    continue;
                }
                b"XX" if options.condition != Some(SetCondition::IfAbsent) => {
                    options.condition = Some(SetCondition::IfPresent);
                    continue;
                }
                b"GET" => {
                    options.gets = true;
                    continue;
                }
                b"KEEPTTL" if matches!(options.expiry, None | Some(SetExpiry::Kept)) => {
                    options.expiry = Some(SetExpiry::Kept);
                    continue;
                }
                b"EX" => |number| SetExpiry::After(number, 1_000),
                b"PX" => |number| SetExpiry::After(number, 1),
                b"EXAT" => |number| SetExpiry::At(number, 1_000),
                b"PXAT" => |number| SetExpiry::At(number, 1),
                _ => return Err(SimulatedError::SYNTAX),
            };
            if options.expiry.is_some() {
                return Err(SimulatedError::SYNTAX);
            }
            number = Some((timed, words.next().ok_or(SimulatedError::SYNTAX)?));
            options.expiry = Some(timed(1));
        }
        // The number is read after all words.
        if let Some((timed, text)) = number {
            options.expiry = Some(timed(integer(text)?));
        }
        Ok(options)
    }

    /// The time in milliseconds, if there is a new one.
    pub(super) fn expires_at(&self, now_ms: i64) -> Result<Option<i64>, SimulatedError> {
        let (number, unit, base) = match self.expiry {
            None | Some(SetExpiry::Kept) => return Ok(None),
            Some(SetExpiry::After(number, unit)) => (number, unit, now_ms),
            Some(SetExpiry::At(number, unit)) => (number, unit, 0),
        };
        let at = number.checked_mul(unit).and_then(|span| span.checked_add(base));
        at.filter(|_| number > 0).map(Some).ok_or(INVALID)
    }
}
