//! Interceptors: they check the headers of a call before its method begins.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use tonic::Status;

/// Checks every call before it begins, whatever its method. Headers that it does not name are dropped, so that
/// calls waiting for their messages hold no more than they need.
pub trait Intercept: Send + Sync + 'static {
    /// The headers that [`Intercept::check`] reads.
    fn names(&self) -> &[HeaderName];

    /// Returns the caller of `method` (`/package.Service/Method`), or the status that ends the call. `headers` has
    /// the first value of each header in [`Intercept::names`] that was sent.
    fn check(&self, method: &str, headers: &HeaderMap) -> Result<Caller, Status>;
}

/// The identity of a caller, as established by an interceptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(Arc<str>);

impl Caller {
    /// Creates a caller with this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// An interceptor shared by several connections.
#[derive(Clone)]
pub(crate) struct SharedIntercept(pub(crate) Arc<dyn Intercept>);

impl fmt::Debug for SharedIntercept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercept").field(&self.0.names()).finish()
    }
}
