//! Messages to the service manager (systemd, `Type=notify`): ready, reloading, stopping. Without `NOTIFY_SOCKET` nothing is sent.

use sd_notify::NotifyState;

/// Reports that calls are answered, at startup and at the end of a reload.
pub(super) fn ready() {
    send(&[NotifyState::Ready]);
}

/// Reports the begin of a reload, with the time that systemd compares with that of its request.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(error) => {
            tracing::warn!(%error, "cannot read the monotonic clock; the service manager is not told of the reload")
        }
    }
}

/// Reports that the process drains and ends.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager; check NOTIFY_SOCKET");
    }
}
