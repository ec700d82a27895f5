//! Runs a script: EVALSHA, with a fallback to EVAL.

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::connect::Connection;
use crate::scripts::Script;

/// Sends EVALSHA. On NOSCRIPT it sends EVAL on the same connection, which also loads the script. `command` appends
/// all other arguments.
pub(super) async fn evaluate(
    connection: &mut Connection,
    script: &Script,
    asking: bool,
    command: impl Fn(ScriptName<'_>) -> Cmd,
) -> Result<Value, RedisError> {
    match send(connection, command(ScriptName { command: "EVALSHA", script: &script.sha }), asking).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            let by_text = ScriptName { command: "EVAL", script: &script.source };
            send(connection, command(by_text), asking).await
        }
        reply => reply,
    }
}

/// A script reference in a command: EVALSHA with the digest, or EVAL with the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptName<'a> {
    command: &'static str,
    script: &'a str,
}

impl ScriptName<'_> {
    /// Starts a command that runs the script, with capacity for `arguments` and `bytes` more. The first argument to
    /// append is the number of keys.
    pub(super) fn command(self, arguments: usize, bytes: usize) -> Cmd {
        let Self { command: name, script } = self;
        let mut command = Cmd::with_capacity(2 + arguments, name.len() + script.len() + bytes);
        command.arg(name).arg(script);
        command
    }
}

/// Sends the command, after ASKING if `asking` is set (a slot is being migrated to this node).
async fn send(connection: &mut Connection, command: Cmd, asking: bool) -> Result<Value, RedisError> {
    if !asking {
        return connection.send(&command).await;
    }
    let mut pipeline = redis::pipe();
    pipeline.cmd("ASKING").add_command(command);
    connection.send_all(&pipeline).await
}
