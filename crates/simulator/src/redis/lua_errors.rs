//! Errors that functions of the server raise in scripts: texts that begin with the line of the script.

use mlua::{Lua, Value};

use super::lua_values::single_field;

/// Name of scripts in errors.
pub(super) const SCRIPT_SOURCE: &str = "@user_script";

/// The line of the script that is running, seen from a function that it called.
pub(super) fn line_of_script(lua: &Lua) -> Option<usize> {
    const DEEPEST: usize = 64;
    for level in 0..DEEPEST {
        let line = lua.inspect_stack(level, line_at)?;
        if line.is_some() {
            return line;
        }
    }
    None
}

fn line_at(at: &mlua::debug::Debug) -> Option<usize> {
    let is_script = at.source().source.as_deref() == Some(SCRIPT_SOURCE);
    is_script.then(|| at.current_line()).flatten()
}

/// An error with the line of the caller, if that is a script and not another function of the server.
pub(super) fn raised(lua: &Lua, text: &str) -> mlua::Error {
    let line = lua.inspect_stack(1, line_at).flatten();
    let line = line.map_or(String::new(), |line| format!("user_script:{line}: "));
    mlua::Error::RuntimeError(format!("{line}{text}"))
}

/// The error of an argument, by its number.
pub(super) fn bad_argument(lua: &Lua, number: usize, text: &str) -> mlua::Error {
    let name = lua.inspect_stack(0, |at| at.names().name.map(|name| name.into_owned())).flatten();
    let name = name.unwrap_or_else(|| "?".to_owned());
    raised(lua, &format!("bad argument #{number} to '{name}' ({text})"))
}

/// A command that failed in `redis.call`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct FailedCommand(pub(super) String);

/// Converts an error to the value that scripts see: a table for a failed command, a text for anything else.
pub(super) fn value_of(lua: &Lua, error: Value) -> mlua::Result<Value> {
    let Value::Error(error) = &error else { return Ok(error) };
    let cause = cause_of(error);
    match cause.downcast_ref::<FailedCommand>() {
        Some(FailedCommand(text)) => single_field(lua, "err", text.as_bytes()),
        None => lua.create_string(text_of(cause)).map(Value::String),
    }
}

/// The text of an error without what was added on its way.
pub(super) fn text_of(error: &mlua::Error) -> String {
    match cause_of(error) {
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => text.clone(),
        other => other.to_string(),
    }
}

fn cause_of(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. } => cause_of(cause),
        other => other,
    }
}
