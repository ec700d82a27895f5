//! Commands that write sorted sets, or ask for one member.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::lists::span;
use super::numbers::{double, integer};
use super::reply::{CommandResult, SimulatedReply};
use super::score_ranges::bounds;
use super::scored_members::ScoredMembers;

/// The options of ZADD.
#[derive(Debug, Clone, Copy, Default)]
struct AddOptions {
    absent: bool,
    present: bool,
    greater: bool,
    less: bool,
    changed: bool,
    adds: bool,
}

impl AddOptions {
    /// Reads the words before the first score. Returns how many there are, too.
    fn parse(words: &[Vec<u8>]) -> (Self, usize) {
        let mut options = Self::default();
        for (at, word) in words.iter().enumerate() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => options.absent = true,
                b"XX" => options.present = true,
                b"GT" => options.greater = true,
                b"LT" => options.less = true,
                b"CH" => options.changed = true,
                b"INCR" => options.adds = true,
                _ => return (options, at),
            }
        }
        (options, words.len())
    }

    fn check(&self, words: usize) -> Result<(), SimulatedError> {
        if words == 0 || words % 2 == 1 {
            return Err(SimulatedError::SYNTAX);
        }
        if self.absent && self.present {
            const TEXT: &str = "ERR XX and NX options at the same time are not compatible";
            return Err(SimulatedError::new(TEXT));
        }
        if self.absent && (self.greater || self.less) || self.greater && self.less {
            const TEXT: &str = "ERR GT, LT, and/or NX options at the same time are not compatible";
            return Err(SimulatedError::new(TEXT));
        }
        if self.adds && words > 2 {
            return Err(SimulatedError::new("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// The new score of a member, `None` if it stays as it is.
    fn score(&self, before: Option<f64>, score: f64) -> Result<Option<f64>, SimulatedError> {
        let Some(before) = before else { return Ok((!self.present).then_some(score)) };
        if self.absent {
            return Ok(None);
        }
        let score = if self.adds { before + score } else { score };
        if score.is_nan() {
            return Err(SimulatedError::new("ERR resulting score is not a number (NaN)"));
        }
        let stays = self.greater && score <= before || self.less && score >= before;
        Ok((!stays).then_some(score))
    }
}

pub(super) fn zadd(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (options, words) = AddOptions::parse(&args[2..]);
    let pairs = &args[2 + words..];
    options.check(pairs.len())?;
    let scores: Option<Vec<f64>> = pairs.iter().step_by(2).map(|text| double(text)).collect();
    let scores = scores.ok_or(SimulatedError::NOT_A_FLOAT)?;
    let is_absent = keys.read::<ScoredMembers>(&args[1])?.is_none();
    if is_absent && options.present {
        return Ok(if options.adds { SimulatedReply::Nil } else { SimulatedReply::Int(0) });
    }
    let members = pairs.iter().skip(1).step_by(2);
    keys.write(&args[1], |set: &mut ScoredMembers| {
        let (mut added, mut updated, mut last) = (0, 0, None);
        for (member, score) in members.zip(scores) {
            let before = set.score(member);
            last = options.score(before, score)?;
            match (last, before) {
                (Some(score), None) => {
                    set.set(member, score);
                    added += 1;
                }
                (Some(score), Some(before)) if score != before => {
                    set.set(member, score);
                    updated += 1;
                }
                _ => {}
            }
        }
        Ok(match last {
            Some(score) if options.adds => SimulatedReply::Double(score),
            None if options.adds => SimulatedReply::Nil,
            _ => SimulatedReply::Int(added + if options.changed { updated } else { 0 }),
        })
    })?
}

pub(super) fn zincrby(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let words = [&args[0], &args[1], &b"INCR".to_vec(), &args[2], &args[3]].map(Vec::clone);
    zadd(keys, &words)
}

pub(super) fn zrem(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let removed = keys.edit(&args[1], |set: &mut ScoredMembers| {
        args[2..].iter().filter(|member| set.remove(member)).count()
    })?;
    Ok(SimulatedReply::count(removed.unwrap_or(0)))
}

pub(super) fn zremrangebyrank(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    let Some(set) = keys.read::<ScoredMembers>(&args[1])? else { return Ok(SimulatedReply::Int(0)) };
    let [from, to] = span(set.len(), start, end);
    let gone = set.iter().skip(from).take(to - from).map(|(member, _)| member.to_vec()).collect();
    remove_all(keys, &args[1], gone)
}

pub(super) fn zremrangebyscore(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let bounds = bounds(&args[2], &args[3])?;
    let Some(set) = keys.read::<ScoredMembers>(&args[1])? else { return Ok(SimulatedReply::Int(0)) };
    let gone = set.between(bounds).map(|(member, _)| member.to_vec()).collect();
    remove_all(keys, &args[1], gone)
}

fn remove_all(keys: &mut Keyspace, key: &[u8], gone: Vec<Vec<u8>>) -> CommandResult {
    keys.edit(key, |set: &mut ScoredMembers| {
        gone.iter().for_each(|member| {
            set.remove(member);
        })
    })?;
    Ok(SimulatedReply::count(gone.len()))
}

pub(super) fn zscore(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let score = keys.read::<ScoredMembers>(&args[1])?.and_then(|set| set.score(&args[2]));
    Ok(score.map_or(SimulatedReply::Nil, SimulatedReply::Double))
}

pub(super) fn zcard(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(keys.read::<ScoredMembers>(&args[1])?.map_or(0, ScoredMembers::len)))
}

pub(super) fn zrank(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let rank = keys.read::<ScoredMembers>(&args[1])?.and_then(|set| set.rank(&args[2]));
    Ok(rank.map_or(SimulatedReply::Nil, SimulatedReply::count))
}
