//! Replies as values of scripts, and values of scripts as replies.

use mlua::{FromLua, Lua, Table, Value};

use super::error_text::SimulatedError;
use super::numbers::{argument_text, c_text, double_text, truncated};
use super::reply::SimulatedReply;

/// A word of a command that a script calls.
pub(super) enum ScriptWord {
    Text(Vec<u8>),
    /// Any value but a string or a number.
    Invalid,
}

impl FromLua for ScriptWord {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        Ok(match value {
            Value::String(text) => Self::Text(text.as_bytes().to_vec()),
            Value::Integer(number) => Self::Text(argument_text(number as f64).into_bytes()),
            Value::Number(number) => Self::Text(argument_text(number).into_bytes()),
            _ => Self::Invalid,
        })
    }
}

/// A reply as scripts get it.
pub(super) fn to_lua(lua: &Lua, reply: &SimulatedReply) -> mlua::Result<Value> {
    let text = |text: &[u8]| lua.create_string(text).map(Value::String);
    Ok(match reply {
        SimulatedReply::Status(text) => single_field(lua, "ok", text.as_bytes())?,
        SimulatedReply::Error(SimulatedError(text)) => single_field(lua, "err", text.as_bytes())?,
        SimulatedReply::Int(number) => Value::Number(*number as f64),
        SimulatedReply::Bulk(bytes) => text(bytes)?,
        SimulatedReply::Nil | SimulatedReply::NilArray => Value::Boolean(false),
        SimulatedReply::Double(number) => text(double_text(*number).as_bytes())?,
        SimulatedReply::Array(parts) => {
            let table = lua.create_table_with_capacity(parts.len(), 0)?;
            for (place, part) in parts.iter().enumerate() {
                table.raw_set(place + 1, to_lua(lua, part)?)?;
            }
            Value::Table(table)
        }
        SimulatedReply::Map(pairs) => {
            let parts = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]);
            to_lua(lua, &SimulatedReply::Array(parts.collect()))?
        }
        SimulatedReply::Scored(members) => {
            let parts = members.iter().flat_map(|(member, score)| {
                [SimulatedReply::Bulk(member.clone()), SimulatedReply::Double(*score)]
            });
            to_lua(lua, &SimulatedReply::Array(parts.collect()))?
        }
    })
}

/// A table like `{err = text}`.
pub(super) fn single_field(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, lua.create_string(text)?)?;
    Ok(Value::Table(table))
}

/// The table of an error as `redis.error_reply` makes it: one without a code gets ERR.
pub(super) fn error_text(text: &[u8]) -> Vec<u8> {
    let text = c_text(text);
    match text.strip_prefix(b"-").unwrap_or(text) {
        text if text.contains(&b' ') => text.to_vec(),
        text => [b"ERR ", text].concat(),
    }
}

/// Converts the result of a script to a reply.
pub(super) fn to_reply(value: &Value) -> mlua::Result<SimulatedReply> {
    Ok(match value {
        Value::String(text) => SimulatedReply::Bulk(text.as_bytes().to_vec()),
        Value::Integer(number) => SimulatedReply::Int(*number),
        Value::Number(number) => SimulatedReply::Int(truncated(*number)),
        Value::Boolean(true) => SimulatedReply::Int(1),
        Value::Table(table) => table_to_reply(table)?,
        _ => SimulatedReply::Nil,
    })
}

fn table_to_reply(table: &Table) -> mlua::Result<SimulatedReply> {
    if let Some(text) = field(table, "err")? {
        return Ok(SimulatedReply::Error(SimulatedError::from_text(text)));
    }
    if let Some(text) = field(table, "ok")? {
        let text: String = text.chars().map(|it| if matches!(it, '\r' | '\n') { ' ' } else { it }).collect();
        return Ok(SimulatedReply::Status(text.into()));
    }
    let mut parts = Vec::new();
    loop {
        match table.raw_get(parts.len() + 1)? {
            Value::Nil => return Ok(SimulatedReply::Array(parts)),
            part => parts.push(to_reply(&part)?),
        }
    }
}

/// A field that is a string.
pub(super) fn field(table: &Table, name: &str) -> mlua::Result<Option<String>> {
    match table.raw_get(name)? {
        Value::String(text) => Ok(Some(text.to_string_lossy())),
        _ => Ok(None),
    }
}
