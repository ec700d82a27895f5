//! Commands of keys of any type: whether they exist, and when they go.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::integer;
use super::reply::{CommandResult, SimulatedReply};

pub(super) fn del(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(args[1..].iter().filter(|key| keys.remove(key)).count()))
}

pub(super) fn exists(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(args[1..].iter().filter(|key| keys.live(key).is_some()).count()))
}

pub(super) fn type_of(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let name = keys.live(&args[1]).map_or("none", |stored| stored.value.type_name());
    Ok(SimulatedReply::Status(name.into()))
}

pub(super) fn persist(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let had = keys.live(&args[1]).and_then(|stored| stored.expires_at.take());
    Ok(SimulatedReply::Int(i64::from(had.is_some())))
}

pub(super) fn dbsize(keys: &mut Keyspace, _: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(keys.data.len()))
}

pub(super) fn flush(keys: &mut Keyspace, _: &[Vec<u8>]) -> CommandResult {
    keys.data.keys.clear();
    Ok(SimulatedReply::OK)
}

pub(super) fn ttl(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    // To the nearest second.
    left(keys, &args[1], |at, now| ((at - now).max(0) + 500) / 1_000)
}

pub(super) fn pttl(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    left(keys, &args[1], |at, now| (at - now).max(0))
}

pub(super) fn pexpiretime(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    left(keys, &args[1], |at, _| at)
}

fn left(keys: &mut Keyspace, key: &[u8], of: impl Fn(i64, i64) -> i64) -> CommandResult {
    let now = keys.now_ms();
    Ok(SimulatedReply::Int(match keys.live(key) {
        None => -2,
        Some(stored) => stored.expires_at.map_or(-1, |at| of(at, now)),
    }))
}

pub(super) fn expire(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let now = keys.now_ms();
    move_expiry(keys, args, ("expire", 1_000, now))
}

pub(super) fn pexpire(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let now = keys.now_ms();
    move_expiry(keys, args, ("pexpire", 1, now))
}

pub(super) fn expireat(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    move_expiry(keys, args, ("expireat", 1_000, 0))
}

pub(super) fn pexpireat(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    move_expiry(keys, args, ("pexpireat", 1, 0))
}

fn move_expiry(keys: &mut Keyspace, args: &[Vec<u8>], (name, unit, base): (&str, i64, i64)) -> CommandResult {
    let condition = ExpiryCondition::parse(&args[3..])?;
    let number = integer(&args[2])?;
    let at = number.checked_mul(unit).and_then(|span| span.checked_add(base));
    let at =
        at.ok_or_else(|| SimulatedError::from_text(format!("ERR invalid expire time in '{name}' command")))?;
    let now = keys.now_ms();
    let Some(stored) = keys.live(&args[1]) else { return Ok(SimulatedReply::Int(0)) };
    if !condition.allows(stored.expires_at, at) {
        return Ok(SimulatedReply::Int(0));
    }
    stored.expires_at = Some(at);
    // What is over already goes at once, not when it is looked at.
    if at <= now {
        keys.data.keys.remove(&args[1]);
    }
    Ok(SimulatedReply::Int(1))
}

/// Condition under which an expiry is changed.
#[derive(Debug, Default)]
struct ExpiryCondition {
    none: bool,
    some: bool,
    greater: bool,
    less: bool,
}

impl ExpiryCondition {
    fn parse(words: &[Vec<u8>]) -> Result<Self, SimulatedError> {
        let mut condition = Self::default();
        for word in words {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => condition.none = true,
                b"XX" => condition.some = true,
                b"GT" => condition.greater = true,
                b"LT" => condition.less = true,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(SimulatedError::from_text(format!("ERR Unsupported option {word}")));
                }
            }
        }
        let Self { none, some, greater, less } = condition;
        if none && (some || greater || less) {
            const TEXT: &str = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(SimulatedError::new(TEXT));
        }
        if greater && less {
            return Err(SimulatedError::new("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(condition)
    }

    /// A key without an expiry outlasts any other.
    fn allows(&self, before: Option<i64>, at: i64) -> bool {
        !(self.none && before.is_some()
            || self.some && before.is_none()
            || self.greater && before.is_none_or(|before| at <= before)
            || self.less && before.is_some_and(|before| at >= before))
    }
}
