//! Who refuses banned callers.

use std::sync::Arc;

use weir_node::guard::Guard;
use weir_time::clock::Clock;

/// Returns that of a server with live control; `None` in a program without it.
pub(crate) fn guard(clock: Clock) -> Option<Arc<dyn Guard>> {
    #[cfg(feature = "control")]
    let guard: Option<Arc<dyn Guard>> = Some(weir_control::bans::BanGuard::new(clock));
    #[cfg(not(feature = "control"))]
    let guard = {
        drop(clock);
        None
    };
    guard
}
