//! A log line that is written once a minute at most.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_time::clock::monotonic;

/// The time between two lines.
const EVERY: Duration = Duration::from_secs(60);

/// The last line, and how many were left out since.
#[derive(Debug, Default)]
pub(crate) struct Minutely(Mutex<(Option<Instant>, u64)>);

impl Minutely {
    /// Calls `log` with the number of lines that were left out, if a line is due.
    pub(crate) fn say(&self, log: impl FnOnce(u64)) {
        let now = monotonic();
        let mut state = self.0.lock();
        let (last, left_out) = &mut *state;
        if last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            *left_out += 1;
            return;
        }
        *last = Some(now);
        log(std::mem::take(left_out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_a_minute_has_the_number_of_those_before() {
        let lines = Minutely::default();
        let mut written = Vec::new();
        for seconds in [0, 1, 58, 1, 0, 200] {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            lines.say(|left_out| written.push(left_out));
        }
        assert_eq!(written, [0, 2, 1]);
    }
}
