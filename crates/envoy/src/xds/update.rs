//! The news from the control plane, for the next snapshot.

use std::fmt;
use std::sync::Arc;

use crate::files::RefusedDomain;
use crate::rules::Domains;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// One set, as far as it is good.
#[derive(Debug, Clone, Default)]
pub struct XdsUpdate {
    /// The domains to serve.
    pub domains: Arc<Domains>,
    /// Domains with mistakes.
    pub refused: Vec<RefusedDomain>,
    /// Every mistake, a line each.
    pub mistakes: Vec<String>,
    /// Number of entries of the overlay that match no rule.
    pub unmatched: usize,
}

/// Serves an update.
type Serve = Box<dyn Fn(XdsUpdate) + Send>;

/// The updates. Clones share them.
#[derive(Clone, Default)]
pub struct XdsUpdates(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    came: Notify,
}

#[derive(Default)]
struct State {
    latest: Option<XdsUpdate>,
    serve: Option<Serve>,
}

impl fmt::Debug for XdsUpdates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("XdsUpdates")
    }
}

impl XdsUpdates {
    /// Serves the latest update, if there is one, and all later ones.
    pub fn serve(&self, serve: impl Fn(XdsUpdate) + Send + 'static) {
        let mut state = self.0.state.lock();
        if let Some(latest) = &state.latest {
            serve(latest.clone());
        }
        state.serve = Some(Box::new(serve));
    }

    /// Resolves once the first update has come.
    pub async fn first(&self) {
        let came = self.0.came.notified();
        if self.0.state.lock().latest.is_none() {
            came.await;
        }
    }

    pub(super) fn push(&self, update: XdsUpdate) {
        let mut state = self.0.state.lock();
        if let Some(serve) = &state.serve {
            serve(update.clone());
        }
        state.latest = Some(update);
        self.0.came.notify_waiters();
    }
}
