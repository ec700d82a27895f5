//! SCAN and its kin. A page has everything, as that of a small value has in Redis.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::{double_text, integer};
use super::reply::{CommandResult, SimulatedReply};
use super::scored_members::ScoredMembers;
use super::stored::FieldMap;

pub(super) fn scan(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    check_cursor(&args[1])?;
    let pattern = ScanPattern::parse(&args[2..])?;
    let names: Vec<Vec<u8>> = keys.data.keys.keys().filter(|name| pattern.fits(name)).cloned().collect();
    Ok(page(names.into_iter().filter(|name| keys.live(name).is_some()).collect()))
}

pub(super) fn hscan(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    check_cursor(&args[2])?;
    let Some(fields) = keys.read::<FieldMap>(&args[1])? else { return Ok(page(Vec::new())) };
    let pattern = ScanPattern::parse(&args[3..])?;
    let fields = fields.iter().filter(|(name, _)| pattern.fits(name));
    Ok(page(fields.flat_map(|(name, value)| [name.clone(), value.clone()]).collect()))
}

pub(super) fn zscan(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    check_cursor(&args[2])?;
    let Some(members) = keys.read::<ScoredMembers>(&args[1])? else { return Ok(page(Vec::new())) };
    let pattern = ScanPattern::parse(&args[3..])?;
    let members = members.iter().filter(|(member, _)| pattern.fits(member));
    Ok(page(members.flat_map(|(member, score)| [member.to_vec(), double_text(score).into_bytes()]).collect()))
}

fn page(parts: Vec<Vec<u8>>) -> SimulatedReply {
    SimulatedReply::Array(vec![SimulatedReply::bulk("0"), SimulatedReply::bulks(parts)])
}

/// A cursor is a number as C reads it.
fn check_cursor(cursor: &[u8]) -> Result<(), SimulatedError> {
    let digits = cursor.strip_prefix(b"-").or(cursor.strip_prefix(b"+")).unwrap_or(cursor);
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
    if cursor.is_empty() || number.is_some() {
        Ok(())
    } else {
        Err(SimulatedError::new("ERR invalid cursor"))
    }
}

/// The pattern of a scan.
struct ScanPattern(Option<Vec<u8>>);

impl ScanPattern {
    fn parse(words: &[Vec<u8>]) -> Result<Self, SimulatedError> {
        let mut pattern = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(SimulatedError::SYNTAX)?;
            match word.to_ascii_uppercase().as_slice() {
                b"COUNT" if integer(value)? < 1 => return Err(SimulatedError::SYNTAX),
                b"COUNT" => {}
                b"MATCH" => pattern = Some(value.clone()),
                _ => return Err(SimulatedError::SYNTAX),
            }
        }
        Ok(Self(pattern))
    }

    fn fits(&self, name: &[u8]) -> bool {
        self.0.as_deref().is_none_or(|pattern| glob(pattern, name))
    }
}

/// Returns true if a text matches a pattern with `*` and `?`.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        ([b'?', rest @ ..], [_, text @ ..]) => glob(rest, text),
        ([letter, rest @ ..], [first, text @ ..]) => letter == first && glob(rest, text),
        ([], []) => true,
        _ => false,
    }
}
