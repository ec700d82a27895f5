//! Calls of operators in the audit.

use prost::Message;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::access::Rights;
use crate::audit::AuditLog;
use crate::proto_json;

/// Longest request in a line, in bytes of JSON. Of a longer one the line has the length.
const MAX_ASKED: usize = 4 << 10;

/// Writes what a call has asked for, and its result. What the caller had no right to is in the audit as a refusal.
pub fn audited<T>(
    audit: &AuditLog,
    (method, rights): (&str, Rights<'_>),
    request: &impl Message,
    done: &Result<T, Status>,
    result: impl FnOnce(&T) -> Value,
) {
    let result = match done {
        Ok(done) => result(done),
        Err(status) if matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated) => return,
        Err(status) => status.message().into(),
    };
    let asked = proto_json::line(&format!("weir.v1.{method}Request"), request);
    let asked =
        asked.filter(|asked| asked.len() <= MAX_ASKED).and_then(|asked| serde_json::from_str(&asked).ok());
    let asked = asked.unwrap_or_else(|| json!({ "bytes": request.encoded_len() }));
    audit.called(method, rights.name(), &asked, &result);
}
