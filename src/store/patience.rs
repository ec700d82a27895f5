//! Waiting until a deadline, and not blaming a store for a stall of our own.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

/// Turns of the runtime that an answer takes from the socket to whoever waits for it: through the
/// connection's task, its call's and, where callers share a call, that call's task.
const TURNS: usize = 4;

/// What `future` ends with; nothing, if that takes longer than until `deadline`.
///
/// A process that was not run for a while (a throttled container, a machine that is moved) finds its
/// deadlines passed and the answers arrived at the same moment. What has arrived is read first, then: it
/// was charged for, and a connection that has answered is not silent.
pub(super) async fn until<F: Future>(deadline: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    if let Ok(output) = tokio::time::timeout_at(deadline.into(), future.as_mut()).await {
        return Some(output);
    }
    for _ in 0..TURNS {
        // Comes back after the runtime has looked at its sockets.
        tokio::task::yield_now().await;
        if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
            return Some(output);
        }
    }
    None
}
