//! The method that this thread is serving, for log lines of rejected requests and the audit.
//!
//! Hot methods set it once for a round; all others have it set for each poll by the server.

use std::cell::Cell;
use std::pin::pin;

thread_local! {
    static METHOD: Cell<&'static str> = const { Cell::new("") };
}

/// Sets the method of the call that is served next.
#[inline]
pub fn set(method: &'static str) {
    METHOD.set(method);
}

/// Returns the method of the call that is served now.
pub(crate) fn get() -> &'static str {
    METHOD.get()
}

/// Serves a call of the method with this name; it is empty for an unknown method.
pub(crate) async fn serve_method<F: Future>(name: &'static str, call: F) -> F::Output {
    let mut call = pin!(call);
    std::future::poll_fn(|context| {
        METHOD.set(name);
        call.as_mut().poll(context)
    })
    .await
}
