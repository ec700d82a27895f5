//! One query of the monitor besides the probe, and its errors.

use redis::{Cmd, Value};

use crate::redis::connect::Connection;
use crate::redis::fault::as_written;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskError {
    /// A permanent refusal: the user lacks the right, the command is unknown, or the key has another type.
    Refused(String),
    /// A transient failure, or a broken connection.
    Failed,
}

pub(super) async fn ask(connection: &mut Connection, question: &Cmd) -> Result<Value, AskError> {
    connection.send(question).await.map_err(|error| match error.code() {
        Some("NOPERM" | "ERR" | "WRONGTYPE") => AskError::Refused(as_written(&error)),
        _ => AskError::Failed,
    })
}
