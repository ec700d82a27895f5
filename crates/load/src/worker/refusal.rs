//! Failures that every further call would meet too: reported at once instead of counted.

use crate::LoadError;
use crate::answer::CountedAnswer;
use crate::client::code_name;
use crate::outcome::Failure;
use crate::plan::{CallProtocol, Plan};

const INVALID_ARGUMENT: i32 = 3;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;
const OUT_OF_RANGE: i32 = 11;
const UNIMPLEMENTED: i32 = 12;
const UNAUTHENTICATED: i32 = 16;

/// Returns the error of the whole run that the first answer implies, if any.
pub(super) fn find(result: &Result<CountedAnswer, Failure>, plan: &Plan) -> Option<LoadError> {
    let server = &plan.authority;
    let (code, message) = match result {
        Err(Failure::Status(code, message)) => (*code, message.clone()),
        Err(Failure::Http(status)) => {
            let port = match plan.protocol {
                CallProtocol::Grpc => "the port for gRPC",
                CallProtocol::Http => "the port of `http.listen`",
            };
            return Some(LoadError::Foreign {
                server: server.to_owned(),
                reason: format!("it answers with HTTP status {status}; is that {port}?"),
            });
        }
        Err(_) => return None,
        Ok(answer) if answer.allowed + answer.denied > 0 => return None,
        Ok(answer) => {
            let failed = answer.failed.as_ref()?;
            (*failed.by_code.first_key_value()?.0, failed.message.clone())
        }
    };
    let would_stay =
        [INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, OUT_OF_RANGE, UNIMPLEMENTED, UNAUTHENTICATED];
    let message = match code {
        UNIMPLEMENTED if message.is_empty() => "it does not offer the method that is called".to_owned(),
        _ => message,
    };
    // Only a message that is too large; other bounds may have room soon.
    let is_too_large = code == RESOURCE_EXHAUSTED && message.contains("may be sent");
    (is_too_large || would_stay.contains(&code)).then(|| LoadError::Refused {
        server: server.to_owned(),
        code: code_name(code).to_owned(),
        message,
    })
}
