//! Whether the other side is still there: who is silent for a while is sent a PING, and must answer it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::http2::Session;
use crate::clock::monotonic;
use crate::config::ServerLimits;

/// Looks after one connection.
pub(super) struct Keepalive {
    heard: Heard,
    interval: Duration,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether a PING is unanswered.
    asked: bool,
}

/// When something was last heard on a connection; written where it is read, once for many calls.
#[derive(Clone)]
pub(super) struct Heard(Arc<(Instant, AtomicU64)>);

impl Heard {
    pub(super) fn now() -> Self {
        Self(Arc::new((monotonic(), AtomicU64::new(0))))
    }

    /// Something has been heard just now.
    pub(super) fn again(&self) {
        let since = monotonic().saturating_duration_since(self.0.0);
        self.0.1.store(u64::try_from(since.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn at(&self) -> Instant {
        self.0.0 + Duration::from_micros(self.0.1.load(Relaxed))
    }
}

impl Keepalive {
    /// Within the worker's runtime.
    pub(super) fn new(heard: Heard, limits: &ServerLimits) -> Self {
        let (interval, timeout) = (limits.keepalive_interval.into(), limits.keepalive_timeout.into());
        let timer = Box::pin(tokio::time::sleep(interval));
        Self { heard, interval, timeout, timer, asked: false }
    }

    /// Ready when the other side has not answered in time.
    pub(super) fn poll_vanished(&mut self, session: &mut Session, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.asked && session.take_pong() {
                self.asked = false;
                self.timer.as_mut().reset((self.heard.at() + self.interval).into());
            }
            ready!(self.timer.as_mut().poll(context));
            if self.asked {
                return Poll::Ready(());
            }
            let (now, due) = (monotonic(), self.heard.at() + self.interval);
            if due > now {
                self.timer.as_mut().reset(due.into());
            } else {
                session.ping();
                self.asked = true;
                self.timer.as_mut().reset((now + self.timeout).into());
            }
        }
    }
}
