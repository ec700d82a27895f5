//! Requests of features to a backend that runs scripts. Those of one script that are ready together share a call, as decisions do.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use weir_core::key::{KeySecret, Namespace, Subject};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::{LinkReply, Script};
use crate::StoreError;

/// The least time of a request: longer than a decision's, because a server that syncs each change to its disk answers
/// afterwards.
pub const LANE_DEADLINE: Duration = Duration::from_secs(2);

/// The answers to the requests of one call, in their order.
pub type LaneReplies<T> = SmallVec<[Result<T, StoreError>; 1]>;

/// A request to the owner of its keys, which all have one tag.
pub trait LaneRequest: Any + Send + Sync {
    /// The decoded answer.
    type Answer: Send + 'static;

    /// Returns the script that answers it. Only requests of one script share a call.
    fn script(&self) -> &'static Script;

    /// Returns the tag of its keys.
    fn tag(&self) -> u128;

    /// Returns the worst time that it takes, as the number of keys that take as long.
    fn keys(&self) -> usize;

    /// True if both may share a call. Their keys may lie in different slots of one node.
    fn is_like(&self, other: &Self) -> bool;

    /// True if a call of `others`, which are like it, has room for it.
    fn fits(&self, others: &[&Self]) -> bool;

    /// Returns the longest time that it may take, where a decision has `decisions`.
    fn patience(&self, decisions: Duration) -> Duration {
        decisions.max(LANE_DEADLINE)
    }

    /// Writes the arguments of a call: first the number of keys. `now` is the time, if the backend must not use its own
    /// clock.
    fn write(requests: &[&Self], now: Option<Micros>, put: &mut dyn FnMut(&[u8]));

    /// Decodes the answer to each of them. An error means that the whole reply is unusable.
    fn decode(requests: &[&Self], reply: &LinkReply) -> Result<LaneReplies<Self::Answer>, StoreError>;
}

/// An answer whose type its asker knows.
pub type AnyAnswer = Box<dyn Any + Send>;

/// A request of any feature. [`LaneRequest`] says what its methods mean.
pub trait AnyLaneRequest: Any + Send + Sync {
    /// See [`LaneRequest::script`].
    fn any_script(&self) -> &'static Script;

    /// See [`LaneRequest::tag`].
    fn any_tag(&self) -> u128;

    /// See [`LaneRequest::keys`].
    fn any_keys(&self) -> usize;

    /// See [`LaneRequest::is_like`].
    fn is_like_any(&self, other: &dyn AnyLaneRequest) -> bool;

    /// See [`LaneRequest::fits`].
    fn fits_any(&self, others: &[&dyn AnyLaneRequest]) -> bool;

    /// See [`LaneRequest::patience`].
    fn any_patience(&self, decisions: Duration) -> Duration;

    /// See [`LaneRequest::write`]. `self` is one of `requests`.
    fn write_all(&self, requests: &[&dyn AnyLaneRequest], now: Option<Micros>, put: &mut dyn FnMut(&[u8]));

    /// See [`LaneRequest::decode`]. `self` is one of `requests`.
    fn decode_all(
        &self,
        requests: &[&dyn AnyLaneRequest],
        reply: &LinkReply,
    ) -> Result<LaneReplies<AnyAnswer>, StoreError>;
}

/// The probe of a capability whose scripts answer requests: it makes these, one after the other, up to the first failure.
/// Their keys have the tag, are no keys of callers, and end by themselves.
pub struct LaneProbe(pub fn(&Namespace, u128) -> Vec<Arc<dyn AnyLaneRequest>>);

/// The answer to a request.
pub type AskFuture<'a> = Pin<Box<dyn Future<Output = Result<AnyAnswer, StoreError>> + Send + 'a>>;

/// One worker's access to a backend that runs scripts.
pub trait AskScripts: Send + Sync + 'static {
    /// Returns the prefix of keys.
    fn namespace(&self) -> &Namespace;

    /// Returns the secret of the tags of keys.
    fn secret(&self) -> &KeySecret;

    /// Returns the tag of the keys of a strategy and a subject: the one that its decisions have.
    fn tag_of(&self, strategy: &Strategy, subject: &Subject<'_>) -> u128;

    /// Makes a request. Its deadline is the caller's, or the end of its patience if that is earlier.
    fn ask_any(&self, request: Arc<dyn AnyLaneRequest>, deadline: Option<Instant>) -> AskFuture<'_>;
}

/// Makes a request. After [`StoreError::Timeout`] it may have been executed once, and the answer was lost.
pub async fn ask<R: LaneRequest>(
    access: &impl AskScripts,
    request: R,
    deadline: Option<Instant>,
) -> Result<R::Answer, StoreError> {
    let answer = access.ask_any(Arc::new(request), deadline).await?;
    answer.downcast().map(|answer| *answer).map_err(|_| super::garbled())
}

impl AskScripts for Arc<dyn AskScripts> {
    fn namespace(&self) -> &Namespace {
        (**self).namespace()
    }

    fn secret(&self) -> &KeySecret {
        (**self).secret()
    }

    fn tag_of(&self, strategy: &Strategy, subject: &Subject<'_>) -> u128 {
        (**self).tag_of(strategy, subject)
    }

    fn ask_any(&self, request: Arc<dyn AnyLaneRequest>, deadline: Option<Instant>) -> AskFuture<'_> {
        (**self).ask_any(request, deadline)
    }
}

impl<R: LaneRequest> AnyLaneRequest for R {
    fn any_script(&self) -> &'static Script {
        self.script()
    }

    fn any_tag(&self) -> u128 {
        self.tag()
    }

    fn any_keys(&self) -> usize {
        self.keys()
    }

    fn is_like_any(&self, other: &dyn AnyLaneRequest) -> bool {
        downcast(other).is_some_and(|other| self.is_like(other))
    }

    fn fits_any(&self, others: &[&dyn AnyLaneRequest]) -> bool {
        self.fits(&typed(others))
    }

    fn any_patience(&self, decisions: Duration) -> Duration {
        self.patience(decisions)
    }

    fn write_all(&self, requests: &[&dyn AnyLaneRequest], now: Option<Micros>, put: &mut dyn FnMut(&[u8])) {
        R::write(&typed(requests), now, put);
    }

    fn decode_all(
        &self,
        requests: &[&dyn AnyLaneRequest],
        reply: &LinkReply,
    ) -> Result<LaneReplies<AnyAnswer>, StoreError> {
        let replies = R::decode(&typed(requests), reply)?;
        Ok(replies.into_iter().map(|reply| reply.map(|answer| Box::new(answer) as AnyAnswer)).collect())
    }
}

fn downcast<R: LaneRequest>(request: &dyn AnyLaneRequest) -> Option<&R> {
    let any: &dyn Any = request;
    any.downcast_ref()
}

/// The requests of a call, which are like each other and so of one type.
fn typed<'a, R: LaneRequest>(requests: &[&'a dyn AnyLaneRequest]) -> SmallVec<[&'a R; 4]> {
    requests.iter().filter_map(|request| downcast(*request)).collect()
}
