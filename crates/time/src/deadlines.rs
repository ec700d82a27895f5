//! Shared timers for deadlines: many waiters at once, of which nearly all end in time.
//!
//! A timer of the runtime for each decision would cost more than the decision's keys: besides its place in
//! the timer wheel, a system call whenever it is the earliest since the thread last slept, which after every
//! burst is each of them. Here one timer for each floor of a worker (services, coalescing, Redis) sleeps
//! until the earliest deadline that it knows of; by then most of them are gone, and it looks for the next
//! one. A deadline is kept as a timer of its own would keep it: to the tick of the runtime, or ([`Deadlines::exact`])
//! to the moment.
//!
//! One timer for the whole worker would wake about half as often, and each time look at all waiting tasks, whose
//! deadlines differ. That does not justify a timer that every store and service would have to be given.
//!
//! A process that was not run for a while (a throttled container, a machine that is moved) finds its
//! deadlines passed and the answers arrived at the same moment. What has arrived is read first, then: it
//! was charged for, and a connection that has answered is not silent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pin_project_lite::pin_project;
use slab::Slab;
use tokio::sync::Notify;

use crate::alarm::Alarm;
use crate::clock::{Clock, monotonic};

/// Turns of the runtime that an answer takes from the socket to its caller: through the
/// connection's task, its call's and, where callers share a call, that call's task.
const TURNS: usize = 4;

/// The least time between two wake-ups of an exact timer. While the store is away, many deadlines pass. To wake for each
/// took 340 ms of CPU time in a second with 10 of them in each millisecond. With this rest it takes 75 ms, and 40 ms with
/// timers of the runtime.
const REST: Duration = Duration::from_micros(500);

/// The deadlines of one floor of a worker. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Deadlines(Arc<SharedTimers>);

/// The deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has passed")]
pub struct Passed;

#[derive(Debug, Default)]
struct SharedTimers {
    /// True if the timer has sub-millisecond precision.
    is_exact: bool,
    state: Mutex<State>,
    /// Notifies the timer of a deadline earlier than the one it sleeps for.
    earlier: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: Slab<TimedWaiter>,
    /// The next wake-up of the timer, if it runs.
    wakes: Option<Instant>,
    /// The previous timer's alarm, for reuse by the next one.
    alarm: Option<Alarm>,
    /// Number of times that the timer has checked for passed deadlines.
    #[cfg(test)]
    looks: u32,
}

#[derive(Debug)]
struct TimedWaiter {
    at: Instant,
    passed: bool,
    waker: Waker,
}

impl Deadlines {
    /// Returns deadlines with sub-millisecond precision, if the system supports it. Those of the default may be 2 ms
    /// late. For one runtime, which must have I/O.
    #[must_use]
    pub fn exact() -> Self {
        Self(Arc::new(SharedTimers { is_exact: true, ..SharedTimers::default() }))
    }

    /// Returns deadlines for a store on this clock: exact ones, unless the time is simulated.
    #[must_use]
    pub fn new(clock: &Clock) -> Self {
        if clock.is_of_machine() { Self::exact() } else { Self::default() }
    }

    /// Returns the output of `future`, if it completes before `at`. A future that is ready at once is never late and
    /// costs nothing. Must be awaited within a runtime.
    pub fn until<F: Future>(&self, at: Instant, future: F) -> Until<F> {
        Until { future, deadline: self.at(at) }
    }

    /// Creates a deadline that nothing waits for yet.
    pub fn at(&self, at: Instant) -> Deadline {
        Deadline { shared: Arc::clone(&self.0), at, key: None }
    }
}

pin_project! {
    /// A future that ends at its deadline. A type of its own, because an async function would have room for
    /// the future twice: as it was handed over, and as it is waited for.
    pub struct Until<F> {
        #[pin]
        future: F,
        deadline: Deadline,
    }
}

impl<F: Future> Future for Until<F> {
    type Output = Result<F::Output, Passed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.future.poll(context) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending => this.deadline.poll_passed(context).map(|()| Err(Passed)),
        }
    }
}

/// A waiting deadline, until it is dropped.
#[derive(Debug)]
pub struct Deadline {
    shared: Arc<SharedTimers>,
    at: Instant,
    key: Option<usize>,
}

impl Deadline {
    /// Returns ready when the deadline has passed.
    pub fn poll_passed(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.shared.state.lock();
        if let Some(waiter) = self.key.and_then(|key| state.waiting.get_mut(key)) {
            waiter.waker.clone_from(context.waker());
            return if waiter.passed { Poll::Ready(()) } else { Poll::Pending };
        }
        let waker = context.waker().clone();
        self.key = Some(state.waiting.insert(TimedWaiter { at: self.at, passed: false, waker }));
        match state.wakes {
            Some(wakes) if wakes <= self.at => {}
            Some(_) => self.shared.earlier.notify_one(),
            None => {
                state.wakes = Some(self.at);
                tokio::spawn(Timer { shared: Arc::clone(&self.shared), ended: false }.run());
            }
        }
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // Dropped after the lock: the owner of a waker may hold deadlines of its own.
            let left = self.shared.state.lock().waiting.try_remove(key);
            drop(left);
        }
    }
}

/// The task that wakes tasks whose deadline has passed. It ends when none waits, and with its runtime.
struct Timer {
    shared: Arc<SharedTimers>,
    ended: bool,
}

impl Timer {
    async fn run(mut self) {
        let kept = self.shared.state.lock().alarm.take();
        let mut alarm =
            kept.unwrap_or_else(|| if self.shared.is_exact { Alarm::exact() } else { Alarm::coarse() });
        let mut now = monotonic();
        let mut not_before = now;
        while let Some(next) = self.wake_due(now) {
            let wakes = next.max(not_before);
            tokio::select! {
                // So that a simulation takes the same course each time. Either order does.
                biased;
                () = alarm.wait(wakes) => now = monotonic().max(wakes),
                () = self.shared.earlier.notified() => now = monotonic(),
            }
            if next <= now {
                not_before = now + REST;
                for _ in 0..TURNS {
                    // Comes back after the runtime has looked at its sockets.
                    tokio::task::yield_now().await;
                }
            }
        }
        self.shared.state.lock().alarm = Some(alarm);
        self.ended = true;
    }

    /// Wakes all waiters whose deadline has passed, and returns the next deadline.
    fn wake_due(&self, now: Instant) -> Option<Instant> {
        let mut state = self.shared.state.lock();
        #[cfg(test)]
        {
            state.looks += 1;
        }
        let mut next: Option<Instant> = None;
        for (_, waiter) in &mut state.waiting {
            if waiter.at <= now {
                waiter.passed = true;
                waiter.waker.wake_by_ref();
            } else {
                next = Some(next.map_or(waiter.at, |next| next.min(waiter.at)));
            }
        }
        state.wakes = next;
        next
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // With its runtime: the next caller begins a new one.
        if !self.ended {
            self.shared.state.lock().wakes = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ms: u64) -> Instant {
        monotonic() + Duration::from_millis(ms)
    }

    #[tokio::test]
    async fn a_task_that_ends_in_time_is_not_late_and_leaves_nothing() {
        let deadlines = Deadlines::default();
        assert_eq!(deadlines.until(after(0), async { 7 }).await, Ok(7), "at once");
        let soon = tokio::time::sleep(Duration::from_millis(5));
        assert_eq!(deadlines.until(after(60_000), soon).await, Ok(()));
        assert!(deadlines.0.state.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn each_is_told_at_its_own_time_whatever_the_order_they_came_in() {
        in_order(&Deadlines::default()).await;
        in_order(&Deadlines::exact()).await;
    }

    async fn in_order(deadlines: &Deadlines) {
        let started = monotonic();
        let late = |ms| {
            let deadlines = deadlines.clone();
            async move {
                let never = std::future::pending::<()>();
                let at = started + Duration::from_millis(ms);
                assert_eq!(deadlines.until(at, never).await, Err(Passed));
                assert!(monotonic() >= at);
                ms
            }
        };
        let (first, second) = (tokio::spawn(late(200)), tokio::spawn(late(20)));
        assert_eq!(late(60).await, 60);
        assert!(second.is_finished() && !first.is_finished());
        assert_eq!(first.await.unwrap(), 200);
        assert_eq!(late(0).await, 0, "which has passed already");
        assert!(deadlines.0.state.lock().waiting.is_empty());
    }

    /// The time that passes bounds the number of wake-ups, whatever the number of deadlines.
    #[tokio::test]
    async fn many_deadlines_share_wake_ups() {
        let deadlines = Deadlines::exact();
        let started = monotonic();
        let waiters: Vec<_> = (0..1000)
            .map(|number| {
                let (deadlines, at) = (deadlines.clone(), started + Duration::from_micros(10 * number));
                tokio::spawn(async move {
                    let never = std::future::pending::<()>();
                    assert_eq!(deadlines.until(at, never).await, Err(Passed));
                    assert!(monotonic() >= at);
                })
            })
            .collect();
        for waiter in waiters {
            waiter.await.unwrap();
        }
        let rests = started.elapsed().as_micros() / REST.as_micros();
        let looks = u128::from(deadlines.0.state.lock().looks);
        assert!(looks <= rests + 3, "{looks} wake-ups");
    }

    #[test]
    fn a_runtime_that_ends_takes_its_timer_with_it() {
        let deadlines = Deadlines::default();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let ended = runtime.block_on(async {
                let long = deadlines.clone();
                tokio::spawn(async move { long.until(after(60_000), std::future::pending::<()>()).await });
                tokio::task::yield_now().await;
                deadlines.until(after(10), std::future::pending::<()>()).await
            });
            assert_eq!(ended, Err(Passed));
        }
        assert!(deadlines.0.state.lock().waiting.is_empty());
    }
}
