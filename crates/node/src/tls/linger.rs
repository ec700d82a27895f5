//! The end of a connection whose client has an alert to read.
//!
//! A socket that is closed with unread bytes resets its connection. Then the client loses the alert that was sent before,
//! and sees only that the connection broke. Clients send their first request behind the handshake, so there are such bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bounds of what is read from a client before its connection is closed.
const TIME: Duration = Duration::from_secs(1);
const BYTES: usize = 64 << 10;

/// Closes a connection once its client has closed it, or could have read what it was sent.
pub(super) async fn linger(mut socket: TcpStream) {
    let _ = socket.shutdown().await;
    let rest = async {
        let (mut left, mut buffer) = (BYTES, [0; 1 << 10]);
        while left > 0
            && let Ok(length @ 1..) = socket.read(&mut buffer).await
        {
            left = left.saturating_sub(length);
        }
    };
    let _ = timeout(TIME, rest).await;
}
