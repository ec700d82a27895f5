//! Commands that read parts of sorted sets.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::lists::span;
use super::numbers::{double, integer};
use super::reply::{CommandResult, SimulatedReply};
use super::scored_members::{ScoreBound, ScoredMembers};

/// Reads two bounds of scores.
pub(super) fn bounds(least: &[u8], most: &[u8]) -> Result<[ScoreBound; 2], SimulatedError> {
    let bound = |text: &[u8]| {
        let (text, excludes) = text.strip_prefix(b"(").map_or((text, false), |rest| (rest, true));
        // An empty text is zero.
        let score = if text.is_empty() { Some(0.0) } else { double(text) };
        let score = score.ok_or(SimulatedError::new("ERR min or max is not a float"))?;
        Ok(ScoreBound { score, excludes })
    };
    Ok([bound(least)?, bound(most)?])
}

pub(super) fn zcount(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let bounds = bounds(&args[2], &args[3])?;
    let set = keys.read::<ScoredMembers>(&args[1])?;
    Ok(SimulatedReply::count(set.map_or(0, |set| set.between(bounds).count())))
}

pub(super) fn zrange(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let options = RangeOptions::parse(&args[4..], true)?;
    if options.by_score {
        return by_score(keys, args, &options);
    }
    if options.limit.is_some() {
        const TEXT: &str =
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
        return Err(SimulatedError::new(TEXT));
    }
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    let Some(set) = keys.read::<ScoredMembers>(&args[1])? else {
        return Ok(SimulatedReply::Array(Vec::new()));
    };
    let [from, to] = span(set.len(), start, end);
    let shown = |(member, score): (&[u8], f64)| (member.to_vec(), score);
    let members = if options.reverse {
        set.iter().rev().skip(from).take(to - from).map(shown).collect()
    } else {
        set.iter().skip(from).take(to - from).map(shown).collect()
    };
    Ok(options.reply(members))
}

pub(super) fn zrangebyscore(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let options = RangeOptions::parse(&args[4..], false)?;
    by_score(keys, args, &options)
}

fn by_score(keys: &mut Keyspace, args: &[Vec<u8>], options: &RangeOptions) -> CommandResult {
    let (least, most) = if options.reverse { (&args[3], &args[2]) } else { (&args[2], &args[3]) };
    let bounds = bounds(least, most)?;
    let Some(set) = keys.read::<ScoredMembers>(&args[1])? else {
        return Ok(SimulatedReply::Array(Vec::new()));
    };
    let (offset, count) = options.limit.unwrap_or((0, -1));
    // A negative offset is beyond all, a negative count is all.
    let Ok(offset) = usize::try_from(offset) else { return Ok(SimulatedReply::Array(Vec::new())) };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let shown = |(member, score): (&[u8], f64)| (member.to_vec(), score);
    let members = if options.reverse {
        set.between(bounds).rev().skip(offset).take(count).map(shown).collect()
    } else {
        set.between(bounds).skip(offset).take(count).map(shown).collect()
    };
    Ok(options.reply(members))
}

/// The options of ZRANGE and ZRANGEBYSCORE.
#[derive(Debug, Default)]
struct RangeOptions {
    by_score: bool,
    reverse: bool,
    scores: bool,
    limit: Option<(i64, i64)>,
}

impl RangeOptions {
    fn parse(words: &[Vec<u8>], chooses: bool) -> Result<Self, SimulatedError> {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            match word.to_ascii_uppercase().as_slice() {
                b"WITHSCORES" => options.scores = true,
                b"LIMIT" if words.len() > at + 2 => {
                    options.limit = Some((integer(&words[at + 1])?, integer(&words[at + 2])?));
                    at += 2;
                }
                b"REV" if chooses => options.reverse = true,
                b"BYSCORE" if chooses => options.by_score = true,
                _ => return Err(SimulatedError::SYNTAX),
            }
            at += 1;
        }
        Ok(options)
    }

    fn reply(&self, members: Vec<(Vec<u8>, f64)>) -> SimulatedReply {
        if self.scores {
            return SimulatedReply::Scored(members);
        }
        SimulatedReply::bulks(members.into_iter().map(|(member, _)| member))
    }
}
