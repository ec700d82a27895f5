//! Keepalive: a silent client gets a PING, and must acknowledge it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use weir_time::clock::monotonic;

use crate::limits::ConnectionLimits;
use crate::session::Session;

/// The keepalive timer of one connection.
pub(crate) struct Keepalive {
    activity: LastActivity,
    interval: Duration,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    /// True while a PING is not acknowledged.
    pinged: bool,
}

/// The time at which bytes last arrived on a connection. Updated once per read, not per call.
#[derive(Clone)]
pub(crate) struct LastActivity(Arc<(Instant, AtomicU64)>);

impl LastActivity {
    pub(crate) fn now() -> Self {
        Self(Arc::new((monotonic(), AtomicU64::new(0))))
    }

    /// Records that bytes have arrived.
    #[inline]
    pub(crate) fn update(&self) {
        let since = monotonic().saturating_duration_since(self.0.0);
        self.0.1.store(u64::try_from(since.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn at(&self) -> Instant {
        self.0.0 + Duration::from_micros(self.0.1.load(Relaxed))
    }
}

impl Keepalive {
    /// Starts the timer. Must be called within the worker's runtime.
    pub(crate) fn new(activity: LastActivity, limits: &ConnectionLimits) -> Self {
        let (interval, timeout) = (limits.keepalive_interval, limits.keepalive_timeout);
        let timer = Box::pin(tokio::time::sleep(interval));
        Self { activity, interval, timeout, timer, pinged: false }
    }

    /// Sends PINGs when they are due. Ready if the client has not acknowledged one in time.
    pub(crate) fn poll_dead(&mut self, session: &mut Session, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.pinged && session.take_ping_ack() {
                self.pinged = false;
                self.timer.as_mut().reset((self.activity.at() + self.interval).into());
            }
            ready!(self.timer.as_mut().poll(context));
            if self.pinged {
                return Poll::Ready(());
            }
            let (now, due) = (monotonic(), self.activity.at() + self.interval);
            if due > now {
                self.timer.as_mut().reset(due.into());
            } else {
                session.ping();
                self.pinged = true;
                self.timer.as_mut().reset((now + self.timeout).into());
            }
        }
    }
}
