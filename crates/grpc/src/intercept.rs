//! Interceptors: what looks at the headers of a call before its method does.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use tonic::Status;

/// Checks every call before it begins, whatever its method. Headers that it does not name are not kept, so that
/// calls that wait for their messages hold no more than they need.
pub trait Intercept: Send + Sync + 'static {
    /// The headers that [`Intercept::check`] reads.
    fn names(&self) -> &[HeaderName];

    /// Who makes a call of `method` (`/package.Service/Method`), or the status that it ends with. `headers` has
    /// the first value of each header that was named and sent.
    fn check(&self, method: &str, headers: &HeaderMap) -> Result<Caller, Status>;
}

/// Who makes a call, as an interceptor has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(Arc<str>);

impl Caller {
    /// The caller of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// An interceptor that several connections share.
#[derive(Clone)]
pub(crate) struct SharedIntercept(pub(crate) Arc<dyn Intercept>);

impl fmt::Debug for SharedIntercept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercept").field(&self.0.names()).finish()
    }
}
