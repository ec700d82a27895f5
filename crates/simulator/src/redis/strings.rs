//! Commands of strings.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::integer;
use super::reply::{CommandResult, SimulatedReply};
use super::set_options::{SetCondition, SetExpiry, SetOptions};
use super::stored::StoredValue;

/// The most bytes of a string.
const MOST_BYTES: i64 = 512 << 20;

const TOO_LONG: SimulatedError =
    SimulatedError::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

pub(super) fn get(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::optional(keys.read::<Vec<u8>>(&args[1])?.cloned()))
}

pub(super) fn mget(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let mut read = |key: &Vec<u8>| keys.read::<Vec<u8>>(key).ok().flatten().cloned();
    Ok(SimulatedReply::Array(args[1..].iter().map(|key| SimulatedReply::optional(read(key))).collect()))
}

pub(super) fn set(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (key, value) = (&args[1], &args[2]);
    let options = SetOptions::parse(&args[3..])?;
    let expires_at = options.expires_at(keys.now_ms())?;
    let before = if options.gets { Some(get(keys, args)?) } else { None };
    let found = keys.live(key).map(|stored| stored.expires_at);
    let is_refused = match options.condition {
        Some(SetCondition::IfAbsent) => found.is_some(),
        Some(SetCondition::IfPresent) => found.is_none(),
        None => false,
    };
    if is_refused {
        return Ok(before.unwrap_or(SimulatedReply::Nil));
    }
    let kept = if matches!(options.expiry, Some(SetExpiry::Kept)) { found.flatten() } else { None };
    keys.put(key, StoredValue::Text(value.clone()), expires_at.or(kept));
    Ok(before.unwrap_or(SimulatedReply::OK))
}

pub(super) fn strlen(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(keys.read::<Vec<u8>>(&args[1])?.map_or(0, Vec::len)))
}

pub(super) fn setrange(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (offset, part) = (integer(&args[2])?, &args[3]);
    let offset_at = usize::try_from(offset).map_err(|_| SimulatedError::new("ERR offset is out of range"))?;
    let length = keys.read::<Vec<u8>>(&args[1])?.map_or(0, Vec::len);
    if part.is_empty() {
        return Ok(SimulatedReply::count(length));
    }
    let end = offset.saturating_add(i64::try_from(part.len()).unwrap_or(i64::MAX));
    if end > MOST_BYTES {
        return Err(TOO_LONG);
    }
    keys.write(&args[1], |text: &mut Vec<u8>| {
        let end = offset_at + part.len();
        if text.len() < end {
            text.resize(end, 0);
        }
        text[offset_at..end].copy_from_slice(part);
        SimulatedReply::count(text.len())
    })
}

pub(super) fn getrange(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    let Some(text) = keys.read::<Vec<u8>>(&args[1])? else { return Ok(SimulatedReply::bulk("")) };
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if start < 0 && end < 0 && start > end {
        return Ok(SimulatedReply::bulk(""));
    }
    let from_end = |at: i64| if at < 0 { (length.saturating_add(at)).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    if start > end || length == 0 {
        return Ok(SimulatedReply::bulk(""));
    }
    let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap_or_default());
    Ok(SimulatedReply::bulk(&text[start..=end]))
}

pub(super) fn incr(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    add(keys, &args[1], 1)
}

pub(super) fn incrby(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    add(keys, &args[1], integer(&args[2])?)
}

fn add(keys: &mut Keyspace, key: &[u8], by: i64) -> CommandResult {
    let before = keys.read::<Vec<u8>>(key)?.map_or(Ok(0), |text| integer(text))?;
    let after = before.checked_add(by).ok_or(SimulatedError::OVERFLOW)?;
    keys.write(key, |text: &mut Vec<u8>| *text = after.to_string().into_bytes())?;
    Ok(SimulatedReply::Int(after))
}
