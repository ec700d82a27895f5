//! The number of open calls of streaming methods in the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts open calls of streaming methods. Clones share the count.
#[derive(Debug, Clone)]
pub struct OpenStreams(Arc<OpenCount>);

#[derive(Debug)]
struct OpenCount {
    limit: usize,
    open: AtomicUsize,
}

/// One open call. It counts until it is dropped.
#[derive(Debug)]
pub struct OpenStream(OpenStreams);

/// The bound that refuses a further stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamBound {
    /// Bound of side streams per connection.
    Side,
    /// Bound of streams per process.
    Open,
}

impl OpenStreams {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(OpenCount { limit, open: AtomicUsize::new(0) }))
    }

    /// Counts one more stream; `None` at the limit.
    #[must_use]
    pub fn open(&self) -> Option<OpenStream> {
        let OpenCount { limit, open } = &*self.0;
        let fits = |open: usize| (open < *limit).then(|| open + 1);
        open.fetch_update(Relaxed, Relaxed, fits).is_ok().then(|| OpenStream(self.clone()))
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.open.load(Relaxed)
    }

    /// Returns the limit.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Relaxed);
    }
}

impl StreamBound {
    /// Returns the name of the bound's setting in the server's configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Side => "max_side_streams",
            Self::Open => "max_open_streams",
        }
    }

    /// Returns the status of a refused call.
    #[must_use]
    pub fn refusal(self, limit: usize) -> tonic::Status {
        let (name, of) = match self {
            Self::Side => (self.name(), "open streams beside decisions on one connection"),
            Self::Open => (self.name(), "open streams on this server"),
        };
        tonic::Status::resource_exhausted(format!("{name}: there may be {limit} {of}; try again later"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_counted_until_they_are_dropped() {
        let streams = OpenStreams::new(2);
        let (first, second) = (streams.open().unwrap(), streams.clone().open().unwrap());
        assert!(streams.open().is_none());
        drop(first);
        assert_eq!(streams.count(), 1);
        let third = streams.open();
        assert!(third.is_some() && streams.open().is_none());
        drop((second, third));
        assert_eq!(streams.count(), 0);
    }
}
