//! One call of a probe, and its classified result.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use redis::RedisError;

use crate::StoreError;
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::fault::as_written;
use crate::redis::script_call::{CallTerms, ScriptRequest, exchange};
use crate::scripts::LaneProbe;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probed {
    Decides,
    /// The slot belongs to another node, or is being migrated there: no evidence about the node.
    Elsewhere,
    Refuses(String),
    Broken(String),
}

/// Exercises scripts on keys of the probe, which have these tags and end by themselves.
pub(super) trait ScriptProbe: Send + Sync {
    fn run<'a>(
        &'a self,
        connection: &'a mut Connection,
        context: &'a LinkContext,
        tags: &'a [u128],
    ) -> Pin<Box<dyn Future<Output = Probed> + Send + 'a>>;
}

/// The probe of a capability, as its record has it.
pub(super) struct RedisProbe(pub(super) &'static dyn ScriptProbe);

pub(super) fn script_of(probe: &(dyn Any + Send + Sync)) -> Option<&dyn ScriptProbe> {
    let of_redis: Option<&dyn ScriptProbe> = probe.downcast_ref().map(|RedisProbe(script)| *script);
    of_redis.or_else(|| probe.downcast_ref::<LaneProbe>().map(|probe| probe as &dyn ScriptProbe))
}

/// Sends requests of one form to the node.
pub(super) async fn probe<R: ScriptRequest>(
    connection: &mut Connection,
    context: &LinkContext,
    requests: &[Arc<R>],
) -> Probed {
    let Some(first) = requests.first() else { return Probed::Elsewhere };
    let terms = CallTerms { now: context.surroundings.clock.explicit(), ..CallTerms::default() };
    let reply = match exchange(connection, first.target().form, requests, terms).await {
        Ok(reply) => reply,
        Err(error) => return refused(&error, context.topology.is_cluster()),
    };
    let failed = match R::decode(requests, reply) {
        Ok(replies) => replies.into_iter().find_map(Result::err),
        Err(error) => Some(error),
    };
    match failed {
        None => Probed::Decides,
        Some(StoreError::Refused(why) | StoreError::Unreadable(why)) => Probed::Refuses(why.to_string()),
        Some(error) => Probed::Refuses(error.to_string()),
    }
}

pub(super) fn refused(error: &RedisError, is_cluster: bool) -> Probed {
    let Some(code) = error.code() else { return Probed::Broken(error.to_string()) };
    if is_cluster && matches!(code, "MOVED" | "ASK" | "TRYAGAIN") {
        return Probed::Elsewhere;
    }
    Probed::Refuses(as_written(error))
}
