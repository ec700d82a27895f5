//! How long what a denial says stays true.

use std::time::Duration;

use weir_core::algorithm::{Algorithm, Engine, LimitVerdict};
use weir_core::strategy::Strategy;
use weir_units::{Micros, Retry};

/// How long a denial is kept whose limits may have more to give before they admit it: what remains is told
/// as it was, and this is about as old as any answer is that came from afar.
const BLUR: Duration = Duration::from_millis(10);
/// Nor is it kept for more than this part of the time that its limits take to be fresh.
const BLUR_PART: u32 = 16;

/// How long a denial holds after it was asked for.
pub(super) fn holds(strategy: &Strategy, says: &[LimitVerdict], cost: u64) -> Duration {
    let wait = says.iter().fold(Retry::Now, |longest, one| longest.max(one.retry));
    let holds = match wait {
        Retry::Now => return Duration::ZERO,
        Retry::After(wait) => Duration::from(wait),
        Retry::Never => Duration::MAX,
    };
    let reset = says.iter().map(|one| one.reset_after).min().unwrap_or_default();
    let blur = || BLUR.min(Duration::from(reset) / BLUR_PART);
    strategy.algorithms().iter().zip(says).fold(holds, |holds, (limit, says)| {
        match stands(limit, says, cost) {
            Stands::Always => holds,
            Stands::For(time) => holds.min(time.into()),
            Stands::Unknown => holds.min(blur()),
        }
    })
}

/// How long what remains stays as it is, but for what a wait that is over tells.
enum Stands {
    /// As long as the decision is denied.
    Always,
    For(Micros),
    Unknown,
}

/// Other limits may deny for longer than this one does.
fn stands(limit: &Algorithm, says: &LimitVerdict, cost: u64) -> Stands {
    if says.remaining == limit.limit() {
        return Stands::Always;
    }
    match (limit.engine(), says.retry) {
        (Engine::Window(_), _) => Stands::For(says.reset_after),
        // More may remain long before the gap is over.
        (Engine::Log(log), _) if log.min_gap > 0 => Stands::Unknown,
        (_, Retry::After(wait)) if says.remaining.checked_add(1) == Some(cost) => {
            // No more than all of a limit ever remains.
            if cost == limit.limit() { Stands::Always } else { Stands::For(wait) }
        }
        _ => Stands::Unknown,
    }
}
