//! Runs scripts as Redis 7.0 does: Lua 5.1, the same libraries, the same conversions, the same errors.

use std::collections::HashMap;
use std::sync::Arc;

use mlua::{Function, Lua, LuaOptions, LuaString, StdLib, Table, Value, Variadic};
use parking_lot::Mutex;

use super::error_text::SimulatedError;
use super::lua_errors::{FailedCommand, SCRIPT_SOURCE, line_of_script, text_of, value_of};
use super::lua_struct;
use super::lua_values::{ScriptWord, error_text, field, single_field, to_lua, to_reply};
use super::node_state::NodeState;
use super::reply::{CommandResult, SimulatedReply};

/// A state of Lua, and the scripts that it has compiled.
pub(super) struct ScriptEngine {
    lua: Lua,
    execute: Function,
    compiled: HashMap<String, Function>,
}

/// Functions that scripts cannot reach, as in Redis. `math.random` would differ from Redis' own.
const REMOVED: [&str; 5] = ["print", "dofile", "loadfile", "require", "module"];

impl ScriptEngine {
    /// Makes one whose scripts work on `node`.
    pub(super) fn new(node: &Arc<Mutex<NodeState>>) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let globals = lua.globals();
        for name in REMOVED {
            globals.raw_set(name, Value::Nil)?;
        }
        globals.raw_get::<Table>("math")?.raw_set("random", Value::Nil)?;
        globals.raw_set("struct", lua_struct::library(&lua)?)?;
        let line = lua.create_function(|lua, ()| Ok(line_of_script(lua)))?;
        let value = lua.create_function(value_of)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (pcall, execute): (Function, Function) = prelude.into_function()?.call((value, line))?;
        globals.raw_set("pcall", pcall)?;
        globals.raw_set("redis", redis_library(&lua, node)?)?;
        Ok(Self { lua, execute, compiled: HashMap::new() })
    }

    /// Compiles a script, unless it was compiled before.
    pub(super) fn compile(&mut self, sha: &str, text: &[u8]) -> Result<Function, SimulatedError> {
        if let Some(function) = self.compiled.get(sha) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(text).set_name(SCRIPT_SOURCE);
        let function = chunk.into_function().map_err(|error| {
            let why = text_of(&error);
            SimulatedError::from_text(format!("ERR Error compiling script (new function): {why}"))
        })?;
        self.compiled.insert(sha.to_owned(), function.clone());
        Ok(function)
    }

    /// Runs a script.
    pub(super) fn run(
        &mut self,
        sha: &str,
        text: &[u8],
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
    ) -> SimulatedReply {
        let script = match self.compile(sha, text) {
            Ok(script) => script,
            Err(error) => return SimulatedReply::Error(error),
        };
        self.execute(sha, script, keys, args).unwrap_or_else(|error| {
            SimulatedReply::Error(SimulatedError::from_text(format!(
                "ERR Error running script {sha}, {error}"
            )))
        })
    }

    fn execute(
        &self,
        sha: &str,
        script: Function,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
    ) -> mlua::Result<SimulatedReply> {
        let globals = self.lua.globals();
        for (name, words) in [("KEYS", keys), ("ARGV", args)] {
            let table = self.lua.create_table_with_capacity(words.len(), 0)?;
            for (place, word) in words.iter().enumerate() {
                table.raw_set(place + 1, self.lua.create_string(word)?)?;
            }
            globals.raw_set(name, table)?;
        }
        match self.execute.call(script)? {
            (true, value) => to_reply(&value),
            (false, error) => Ok(SimulatedReply::Error(aborted(sha, &error)?)),
        }
    }
}

/// The reply to a script that an error ended.
fn aborted(sha: &str, error: &Value) -> mlua::Result<SimulatedError> {
    let Value::Table(error) = error else { return Ok(SimulatedError::new("ERR unknown error")) };
    let text = field(error, "err")?.unwrap_or_default();
    let line: Option<i64> = error.raw_get("line")?;
    let place = line.map_or(String::new(), |line| format!(" script: {sha}, on {SCRIPT_SOURCE}:{line}."));
    Ok(SimulatedError::from_text(format!("{text}{place}")))
}

/// Runs a command for a script.
fn run_command(node: &Mutex<NodeState>, words: Variadic<ScriptWord>) -> CommandResult {
    let mut args = Vec::with_capacity(words.len());
    for word in words {
        let ScriptWord::Text(word) = word else {
            const TEXT: &str = "ERR Lua redis lib command arguments must be strings or integers";
            return Err(SimulatedError::new(TEXT));
        };
        args.push(word);
    }
    if args.is_empty() {
        const TEXT: &str = "ERR Please specify at least one argument for this redis lib call";
        return Err(SimulatedError::new(TEXT));
    }
    node.lock().run_in_script(&args)
}

fn redis_library(lua: &Lua, node: &Arc<Mutex<NodeState>>) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let own = Arc::clone(node);
    let call = move |lua: &Lua, words| match run_command(&own, words) {
        Ok(reply) => to_lua(lua, &reply),
        Err(SimulatedError(text)) => Err(mlua::Error::external(FailedCommand(text.into_owned()))),
    };
    library.raw_set("call", lua.create_function(call)?)?;
    let own = Arc::clone(node);
    let pcall =
        move |lua: &Lua, words| to_lua(lua, &run_command(&own, words).unwrap_or_else(SimulatedReply::Error));
    library.raw_set("pcall", lua.create_function(pcall)?)?;
    let error =
        lua.create_function(|lua, text: LuaString| single_field(lua, "err", &error_text(&text.as_bytes())));
    library.raw_set("error_reply", error?)?;
    let status = lua.create_function(|lua, text: LuaString| single_field(lua, "ok", &text.as_bytes()));
    library.raw_set("status_reply", status?)?;
    let digest = |_: &Lua, text: LuaString| Ok(sha1_smol::Sha1::from(&*text.as_bytes()).digest().to_string());
    library.raw_set("sha1hex", lua.create_function(digest)?)?;
    library.raw_set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    library.raw_set("log", lua.create_function(|_, _: Variadic<Value>| Ok(()))?)?;
    for (level, name) in ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].into_iter().enumerate() {
        library.raw_set(name, level)?;
    }
    Ok(library)
}
