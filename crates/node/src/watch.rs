//! Polls Envoy's files, and reports changes.

use std::time::Duration;

use weir_config::{EnvoySource, Look};

/// Poll interval.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Polls for ever, and reports what each poll found that is new. Files are read on a thread of their own.
pub async fn watch(mut source: EnvoySource, mut report: impl FnMut(Look) + Send) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let looking = tokio::task::spawn_blocking(move || {
            let found = source.look();
            (source, found)
        });
        // It ends early only when the runtime does.
        let Ok((back, found)) = looking.await else { return };
        source = back;
        if !matches!(found, Look::Same) {
            report(found);
        }
    }
}
