//! Running a script: by its name, or by its text where the node has lost it.

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::connect::Connection;
use super::source::Script;

/// EVALSHA; where the node does not know the script, EVAL on the same connection, which leaves it there. `command`
/// appends all other arguments to what it gets.
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

/// How a command names the script that it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptName<'a> {
    command: &'static str,
    script: &'a str,
}

impl ScriptName<'_> {
    /// A command that runs the script, with room for so many more arguments and bytes. The first of the arguments is
    /// how many keys follow.
    pub(super) fn command(self, arguments: usize, bytes: usize) -> Cmd {
        let Self { command: name, script } = self;
        let mut command = Cmd::with_capacity(2 + arguments, name.len() + script.len() + bytes);
        command.arg(name).arg(script);
        command
    }
}

/// `asking`: the node is asked on behalf of another one, during a slot's migration.
async fn send(connection: &mut Connection, command: Cmd, asking: bool) -> Result<Value, RedisError> {
    if !asking {
        return connection.send(&command).await;
    }
    let mut pipeline = redis::pipe();
    pipeline.cmd("ASKING").add_command(command);
    connection.send_all(&pipeline).await
}
