//! Commands of lists.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::integer;
use super::reply::{CommandResult, SimulatedReply};
use super::stored::ListItems;

pub(super) fn rpush(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    keys.write(&args[1], |items: &mut ListItems| {
        items.extend(args[2..].iter().cloned());
        SimulatedReply::count(items.len())
    })
}

pub(super) fn lpush(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    keys.write(&args[1], |items: &mut ListItems| {
        args[2..].iter().for_each(|item| items.push_front(item.clone()));
        SimulatedReply::count(items.len())
    })
}

pub(super) fn lpop(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    pop(keys, args, "lpop", ListItems::pop_front)
}

pub(super) fn rpop(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    pop(keys, args, "rpop", ListItems::pop_back)
}

fn pop(
    keys: &mut Keyspace,
    args: &[Vec<u8>],
    name: &str,
    next: fn(&mut ListItems) -> Option<Vec<u8>>,
) -> CommandResult {
    let count = match args {
        [_, _] => None,
        [_, _, count] => {
            let count = integer(count).ok().and_then(|count| usize::try_from(count).ok());
            const TEXT: &str = "ERR value is out of range, must be positive";
            Some(count.ok_or(SimulatedError::new(TEXT))?)
        }
        _ => return Err(SimulatedError::arity(name)),
    };
    let popped = keys.edit(&args[1], |items: &mut ListItems| match count {
        None => SimulatedReply::optional(next(items)),
        Some(count) => SimulatedReply::bulks((0..count.min(items.len())).filter_map(|_| next(items))),
    })?;
    let none = if count.is_some() { SimulatedReply::NilArray } else { SimulatedReply::Nil };
    Ok(popped.unwrap_or(none))
}

pub(super) fn llen(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(keys.read::<ListItems>(&args[1])?.map_or(0, ListItems::len)))
}

pub(super) fn lindex(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let Some(items) = keys.read::<ListItems>(&args[1])? else { return Ok(SimulatedReply::Nil) };
    let place = place(items, integer(&args[2])?);
    Ok(SimulatedReply::optional(place.and_then(|place| items.get(place).cloned())))
}

pub(super) fn lset(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let set = keys.edit(&args[1], |items: &mut ListItems| {
        let item = place(items, integer(&args[2])?).and_then(|place| items.get_mut(place));
        *item.ok_or(SimulatedError::new("ERR index out of range"))? = args[3].clone();
        Ok(SimulatedReply::OK)
    })?;
    set.unwrap_or(Err(SimulatedError::new("ERR no such key")))
}

pub(super) fn lrange(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    let Some(items) = keys.read::<ListItems>(&args[1])? else { return Ok(SimulatedReply::Array(Vec::new())) };
    let [from, to] = span(items.len(), start, end);
    Ok(SimulatedReply::bulks(items.range(from..to).cloned()))
}

pub(super) fn ltrim(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    keys.edit(&args[1], |items: &mut ListItems| {
        let [from, to] = span(items.len(), start, end);
        items.truncate(to);
        items.drain(..from);
    })?;
    Ok(SimulatedReply::OK)
}

/// Position of an index, which counts from the end if it is negative.
fn place(items: &ListItems, index: i64) -> Option<usize> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    usize::try_from(if index < 0 { length.checked_add(index)? } else { index }).ok()
}

/// The places from one index to another one, both included: where they begin, and where what follows begins.
pub(super) fn span(length: usize, start: i64, end: i64) -> [usize; 2] {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { length.saturating_add(at) } else { at };
    let (start, end) = (from_end(start).max(0), from_end(end));
    if start > end || start >= length {
        return [0, 0];
    }
    [start, end.min(length - 1) + 1].map(|at| usize::try_from(at).unwrap_or_default())
}
