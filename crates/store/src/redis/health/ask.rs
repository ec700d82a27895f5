//! One question beside the probe, and what becomes of it.

use redis::{Cmd, Value};

use crate::redis::connect::Connection;
use crate::redis::fault::as_written;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskError {
    /// Redis does not let this user ask, or does not know the question: it would say so again.
    Refused(String),
    /// It did not answer this time, or the connection is of no use.
    Failed,
}

/// Asks it.
pub(super) async fn ask(connection: &mut Connection, question: &Cmd) -> Result<Value, AskError> {
    connection.send(question).await.map_err(|error| match error.code() {
        Some("NOPERM" | "ERR" | "WRONGTYPE") => AskError::Refused(as_written(&error)),
        _ => AskError::Failed,
    })
}
