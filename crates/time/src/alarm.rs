//! A precise timer.
//!
//! The runtime's timers count whole milliseconds, and so does the wait for sockets in which they end. Both round
//! up: a sleep ends up to 2 ms late, which is much of a deadline of 5 ms. Linux has timers of the clock's own
//! resolution. They are files. Elsewhere, and where no file can be opened, the runtime's timers serve.

use std::time::Instant;

use self::exact::ExactTimer;
use crate::clock::Clock;

/// A reusable timer.
#[derive(Debug)]
pub struct Alarm(Option<ExactTimer>);

impl Alarm {
    /// Returns a timer beside this clock: an exact one, unless the time is simulated. For one runtime, which must have I/O.
    #[must_use]
    pub fn with_clock(clock: &Clock) -> Self {
        if clock.is_of_machine() { Self::exact() } else { Self::coarse() }
    }

    /// Returns a timer of the runtime.
    pub(crate) const fn coarse() -> Self {
        Self(None)
    }

    /// Returns an exact timer if the system has one. Must be called within a runtime with I/O.
    pub(crate) fn exact() -> Self {
        Self(ExactTimer::open().ok())
    }

    /// Returns at `moment`, or later. It can be dropped and called again.
    pub async fn wait(&mut self, moment: Instant) {
        let Some(timer) = &self.0 else { return tokio::time::sleep_until(moment.into()).await };
        if timer.wait(moment).await.is_err() {
            self.0 = None;
            tokio::time::sleep_until(moment.into()).await;
        }
    }
}

#[cfg(target_os = "linux")]
mod exact {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use crate::clock::monotonic;

    #[derive(Debug)]
    pub(super) struct ExactTimer(AsyncFd<OwnedFd>);

    impl ExactTimer {
        // Its successor is unsafe, because its file descriptor may be closed meanwhile. An owned file cannot be.
        #[allow(deprecated)]
        pub(super) fn open() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let file = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self(AsyncFd::with_interest(file, Interest::READABLE)?))
        }

        pub(super) async fn wait(&self, moment: Instant) -> io::Result<()> {
            let wait = moment.saturating_duration_since(monotonic());
            if wait.is_zero() {
                // Zero would disarm the timer.
                return Ok(());
            }
            let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: wait };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
            let ended = |file: &OwnedFd| Ok(rustix::io::read(file, &mut [0; 8])?);
            self.0.async_io(Interest::READABLE, ended).await.map(drop)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod exact {
    use std::io;
    use std::time::Instant;

    #[derive(Debug)]
    pub(super) struct ExactTimer;

    impl ExactTimer {
        pub(super) fn open() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) async fn wait(&self, _: Instant) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Alarm;
    use crate::clock::monotonic;
    use std::time::{Duration, Instant};

    /// Moments at every tenth of a millisecond. A timer that rounds up to ticks misses some of them always, and so
    /// much that no second try helps; one that does not needs a try in which the machine is not busy.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_exact_alarm_does_not_round_up_to_milliseconds() {
        const LATE: Duration = Duration::from_micros(300);
        let mut alarm = Alarm::exact();
        let origin = monotonic();
        for tenth in 0..10 {
            let give_up = monotonic() + Duration::from_secs(60);
            loop {
                let whole = monotonic().duration_since(origin).as_millis() as u64 + 3;
                let moment = origin + Duration::from_micros(whole * 1000 + tenth * 100);
                alarm.wait(moment).await;
                let ended = monotonic();
                assert!(ended >= moment);
                if ended - moment < LATE {
                    break;
                }
                assert!(ended < give_up, "{tenth}: never within {LATE:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_wait_that_was_dropped_does_not_end_the_next() {
        for mut alarm in [Alarm::exact(), Alarm::coarse()] {
            let after = |ms| monotonic() + Duration::from_millis(ms);
            for _ in 0..5 {
                let moment: Instant = after(20);
                let _ = tokio::time::timeout(Duration::from_millis(1), alarm.wait(after(2))).await;
                alarm.wait(moment).await;
                assert!(monotonic() >= moment);
            }
        }
    }
}
