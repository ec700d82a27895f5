//! Interceptors: they check the headers of a call before its method begins.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use tonic::Status;
use zeroize::{ZeroizeOnDrop, optimization_barrier};

use crate::peer::Peer;

/// Checks every call before it begins, whatever its method.
pub trait Intercept: Send + Sync + 'static {
    /// The headers that checks read. All others are dropped, so that calls waiting for their messages hold no more
    /// than they need.
    fn names(&self) -> &[HeaderName];

    /// Begins a connection, and returns the check of its calls.
    fn connected(&self, peer: Arc<Peer>) -> Arc<dyn CheckCalls>;
}

/// Checks the calls of one connection, and keeps the state of the connection.
pub trait CheckCalls: Send + Sync + 'static {
    /// Returns the caller of `method` (`/package.Service/Method`), or the refusal that ends the call. A check that
    /// wants to end the connection too asks for it with [`Peer::disconnect`].
    fn check(&self, method: &str, headers: &KeptHeaders) -> Result<Caller, CallRefusal>;
}

/// Reason why a call does not begin, as it is sent to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRefusal {
    /// The code of the status.
    pub code: RefusalCode,
    /// The message of the status.
    pub message: &'static str,
}

/// The codes with which a check refuses a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCode {
    /// UNAUTHENTICATED.
    Unauthenticated,
    /// PERMISSION_DENIED.
    PermissionDenied,
    /// UNAVAILABLE.
    Unavailable,
}

impl From<CallRefusal> for Status {
    fn from(CallRefusal { code, message }: CallRefusal) -> Self {
        match code {
            RefusalCode::Unauthenticated => Self::unauthenticated(message),
            RefusalCode::PermissionDenied => Self::permission_denied(message),
            RefusalCode::Unavailable => Self::unavailable(message),
        }
    }
}

/// The values of those headers of a call that an interceptor names.
#[derive(Default, Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub struct KeptHeaders {
    /// The index of each header in [`Intercept::names`], and a value. A header that was sent twice is here twice.
    values: Vec<(usize, ErasedBytes)>,
}

/// Bytes that are erased when they are dropped, because they may be a secret. `Zeroizing` would do it byte by byte.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq))]
struct ErasedBytes(Box<[u8]>);

impl Drop for ErasedBytes {
    fn drop(&mut self) {
        self.0.fill(0);
        // The compiler must not leave out stores to memory that is freed next.
        optimization_barrier(&*self.0);
    }
}

impl ZeroizeOnDrop for ErasedBytes {}

/// The caller of a call, as established by an interceptor. What it is made of, only the services know.
#[derive(Clone)]
pub struct Caller(Arc<dyn Any + Send + Sync>);

impl KeptHeaders {
    /// A call without any of the headers.
    pub(crate) const NONE: &'static Self = &Self { values: Vec::new() };

    /// True for a call without any of the headers.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns all values of the header with this index in [`Intercept::names`], in the order of the request.
    pub fn all(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        self.values.iter().filter(move |(of, _)| *of == index).map(|(_, value)| &*value.0)
    }

    pub(crate) fn push(&mut self, index: usize, value: &[u8]) {
        self.values.push((index, ErasedBytes(value.into())));
    }

    /// Returns the bytes of the values, with an allowance for each.
    pub(crate) fn bytes(&self) -> usize {
        const ENTRY: usize = 64;
        self.values.iter().map(|(_, value)| value.0.len() + ENTRY).sum()
    }

    /// Keeps the headers that `names` has. For servers that parse headers themselves.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, names: &[HeaderName]) -> Self {
        let mut kept = Self::default();
        for (index, name) in names.iter().enumerate() {
            for value in headers.get_all(name) {
                kept.push(index, value.as_bytes());
            }
        }
        kept
    }
}

/// Values may be secrets.
impl fmt::Debug for KeptHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptHeaders").field("count", &self.values.len()).finish()
    }
}

impl Caller {
    /// Wraps the service's own type.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(caller: Arc<T>) -> Self {
        Self(caller)
    }

    /// Returns the service's own type, if it is `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that would be left in memory do not compile.
    #[test]
    fn values_are_erased() {
        fn erased<T: ZeroizeOnDrop>(values: &[(usize, T)]) -> usize {
            values.len()
        }
        let mut kept = KeptHeaders::default();
        kept.push(0, b"Bearer secret");
        assert_eq!(erased(&kept.values), 1);
        assert_eq!(kept.all(0).collect::<Vec<_>>(), [b"Bearer secret"]);
    }
}
