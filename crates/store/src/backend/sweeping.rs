//! The interval at which what has expired is dropped.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Interval of sweeps of expired keys.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Sweeps expired keys each second, so that they do not take up the budget. Runs until it is dropped.
pub async fn every_second(sweep: impl Fn()) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep();
    }
}
