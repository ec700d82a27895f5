//! The end of a server.

use std::time::Duration;

use tokio::sync::watch;

/// Time in which a client must acknowledge the PING behind our GOAWAY, or complete its handshake during a shutdown.
/// Healthy clients need one round trip; others must not delay the shutdown.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits until the server has to stop. Nothing is ever sent: the wait ends when the sender is dropped.
pub(super) async fn stopped(mut stop: watch::Receiver<()>) {
    while stop.changed().await.is_ok() {}
}
