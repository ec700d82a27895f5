//! The rest of a request that was answered before its end.

/// A request whose answer is complete.
#[derive(Debug)]
pub(crate) struct UnreadRequest {
    /// Bytes of the announced content-length that have not come.
    content_length: Option<u64>,
    pub(crate) send_window_delta: i64,
    /// Bytes of its body since the answer.
    pub(crate) read: usize,
}

impl UnreadRequest {
    /// With these bytes missing, and so many more in its send window than in that of a new stream.
    pub(crate) const fn new(content_length: Option<u64>, send_window_delta: i64) -> Self {
        Self { content_length, send_window_delta, read: 0 }
    }

    /// Takes so many bytes of the body; false if it is longer than its content-length.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let Some(missing) = &mut self.content_length else { return true };
        let rest = missing.checked_sub(bytes as u64);
        *missing = rest.unwrap_or_default();
        rest.is_some()
    }

    /// True if no byte of the content-length is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.content_length.is_none_or(|missing| missing == 0)
    }
}
