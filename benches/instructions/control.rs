//! A server with live control.

use weir_control::bans::BanGuard;
use weir_node::limiter::Limiter;
use weir_store::Store;
use weir_time::clock::Clock;

/// Returns the limiter of such a server, while nobody is banned.
pub(crate) fn guarded<S: Store>(limiter: Limiter<S>, clock: Clock) -> Limiter<S> {
    limiter.with_guard(Some(BanGuard::new(clock)))
}
