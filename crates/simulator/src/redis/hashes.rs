//! Commands of hashes.

use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::integer;
use super::reply::{CommandResult, SimulatedReply};
use super::stored::FieldMap;

pub(super) fn hset(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    if args.len() % 2 == 1 {
        return Err(SimulatedError::arity("hset"));
    }
    keys.write(&args[1], |fields: &mut FieldMap| {
        let pairs = args[2..].chunks_exact(2);
        let added = pairs.filter(|pair| fields.insert(pair[0].clone(), pair[1].clone()).is_none());
        SimulatedReply::count(added.count())
    })
}

pub(super) fn hget(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let fields = keys.read::<FieldMap>(&args[1])?;
    Ok(SimulatedReply::optional(fields.and_then(|fields| fields.get(&args[2]).cloned())))
}

pub(super) fn hmget(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let fields = keys.read::<FieldMap>(&args[1])?;
    let value = |name| fields.and_then(|fields| fields.get(name).cloned());
    Ok(SimulatedReply::Array(args[2..].iter().map(|name| SimulatedReply::optional(value(name))).collect()))
}

pub(super) fn hdel(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let removed = keys.edit(&args[1], |fields: &mut FieldMap| {
        args[2..].iter().filter(|name| fields.shift_remove(*name).is_some()).count()
    })?;
    Ok(SimulatedReply::count(removed.unwrap_or(0)))
}

pub(super) fn hlen(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    Ok(SimulatedReply::count(keys.read::<FieldMap>(&args[1])?.map_or(0, FieldMap::len)))
}

pub(super) fn hexists(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let fields = keys.read::<FieldMap>(&args[1])?;
    Ok(SimulatedReply::Int(i64::from(fields.is_some_and(|fields| fields.contains_key(&args[2])))))
}

pub(super) fn hgetall(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let fields = keys.read::<FieldMap>(&args[1])?.into_iter().flatten();
    let pair = |(name, value): (&Vec<u8>, &Vec<u8>)| {
        (SimulatedReply::bulk(name.clone()), SimulatedReply::bulk(value.clone()))
    };
    Ok(SimulatedReply::Map(fields.map(pair).collect()))
}

pub(super) fn hincrby(keys: &mut Keyspace, args: &[Vec<u8>]) -> CommandResult {
    let by = integer(&args[3])?;
    let fields = keys.read::<FieldMap>(&args[1])?;
    let before = fields.and_then(|fields| fields.get(&args[2])).map_or(Ok(0), |text| integer(text));
    let before = before.map_err(|_| SimulatedError::new("ERR hash value is not an integer"))?;
    let after = before.checked_add(by).ok_or(SimulatedError::OVERFLOW)?;
    keys.write(&args[1], |fields: &mut FieldMap| {
        fields.insert(args[2].clone(), after.to_string().into_bytes());
    })?;
    Ok(SimulatedReply::Int(after))
}
