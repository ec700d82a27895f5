//! SCAN and its kin. A page has everything, as that of a small value has in Redis.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::{double_text, integer};
use super::reply::{CommandResult, SimulatedReply};
use super::scored_members::ScoredMembers;
use super::stored::FieldMap;

pub(super) fn scan(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let pattern = ScanPattern::parse(&args[1], &args[2..])?;
    let names: Vec<Vec<u8>> = keys.data.keys.keys().filter(|name| pattern.fits(name)).cloned().collect();
    Ok(page(names.into_iter().filter(|name| keys.live(name).is_some()).collect()))
}

pub(super) fn hscan(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let pattern = ScanPattern::parse(&args[2], &args[3..])?;
    let fields = keys.read::<FieldMap>(&args[1])?.into_iter().flatten();
    let fields = fields.filter(|(name, _)| pattern.fits(name));
    Ok(page(fields.flat_map(|(name, value)| [name.clone(), value.clone()]).collect()))
}

pub(super) fn zscan(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let pattern = ScanPattern::parse(&args[2], &args[3..])?;
    let members = keys.read::<ScoredMembers>(&args[1])?.into_iter().flat_map(ScoredMembers::iter);
    let members = members.filter(|(member, _)| pattern.fits(member));
    Ok(page(members.flat_map(|(member, score)| [member.to_vec(), double_text(score).into_bytes()]).collect()))
}

fn page(parts: Vec<Vec<u8>>) -> SimulatedReply {
    SimulatedReply::Array(vec![SimulatedReply::bulk("0"), SimulatedReply::bulks(parts)])
}

/// The pattern of a scan.
struct ScanPattern(Option<Vec<u8>>);

impl ScanPattern {
    fn parse(cursor: &[u8], words: &[Vec<u8>]) -> Result<Self, SimulatedError> {
        integer(cursor).map_err(|_| SimulatedError::text("ERR invalid cursor"))?;
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

/// Whether a text is of a pattern with `*` and `?`.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        ([b'?', rest @ ..], [_, text @ ..]) => glob(rest, text),
        ([letter, rest @ ..], [first, text @ ..]) => letter == first && glob(rest, text),
        ([], []) => true,
        _ => false,
    }
}
