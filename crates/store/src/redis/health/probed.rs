//! One call of a probe, and what it says of the node.

use std::sync::Arc;

use redis::RedisError;

use crate::StoreError;
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::fault::as_written;
use crate::redis::script_call::{CallTerms, ScriptRequest, exchange};

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probed {
    /// The node has decided.
    Decides,
    /// The slot is another node's, or on its way there: this says nothing of the node.
    Elsewhere,
    /// The node did not decide, and says why.
    Refuses(String),
    /// No answer: the connection is of no use any more.
    Broken(String),
}

/// Asks the node for requests of one form.
pub(super) async fn probe<R: ScriptRequest>(
    connection: &mut Connection,
    context: &LinkContext,
    requests: &[Arc<R>],
) -> Probed {
    let Some(first) = requests.first() else { return Probed::Elsewhere };
    let terms = CallTerms { now: context.clock.explicit(), ..CallTerms::default() };
    let reply = match exchange(connection, first.form(), requests, terms).await {
        Ok(reply) => reply,
        Err(error) => return refused(&error, context.topology.is_cluster()),
    };
    let failed = match R::decode(requests, &reply) {
        Ok(replies) => replies.into_iter().find_map(Result::err),
        Err(error) => Some(error),
    };
    match failed {
        None => Probed::Decides,
        Some(StoreError::Refused(why) | StoreError::Unreadable(why)) => Probed::Refuses(why.to_string()),
        Some(error) => Probed::Refuses(error.to_string()),
    }
}

/// What an error of Redis, or of the connection, says of the node.
pub(super) fn refused(error: &RedisError, is_cluster: bool) -> Probed {
    let Some(code) = error.code() else { return Probed::Broken(error.to_string()) };
    if is_cluster && matches!(code, "MOVED" | "ASK" | "TRYAGAIN") {
        return Probed::Elsewhere;
    }
    Probed::Refuses(as_written(error))
}
