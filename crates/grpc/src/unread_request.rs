//! The rest of a half-closed (local) request: it was answered before its end.

/// A request whose response is complete.
#[derive(Debug)]
pub(crate) struct UnreadRequest {
    /// Bytes missing of the content-length.
    content_length: Option<u64>,
    pub(crate) send_window_delta: i64,
    /// Bytes of the body received since the response.
    pub(crate) read: usize,
}

impl UnreadRequest {
    /// Creates one with these missing bytes, and a send window that exceeds that of a new stream by the delta.
    pub(crate) const fn new(content_length: Option<u64>, send_window_delta: i64) -> Self {
        Self { content_length, send_window_delta, read: 0 }
    }

    /// Counts received bytes of the body; false if it exceeds its content-length.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let Some(missing) = &mut self.content_length else { return true };
        let rest = missing.checked_sub(bytes as u64);
        *missing = rest.unwrap_or_default();
        rest.is_some()
    }

    /// True if no byte of the content-length is missing, or there was none.
    pub(crate) fn is_complete(&self) -> bool {
        self.content_length.is_none_or(|missing| missing == 0)
    }
}
