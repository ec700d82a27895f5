//! `envoy.rules` as the files of the configuration say it now: for Envoy's files, and for the sets of a control plane.

use std::sync::Arc;

use crate::overlay::EnvoyOverlay;
use parking_lot::Mutex;

use crate::xds::XdsSets;

/// The overlay in use. Clones share it.
#[derive(Clone)]
pub(super) struct OverlayInUse {
    current: Arc<Mutex<EnvoyOverlay>>,
    sets: Option<XdsSets>,
}

impl OverlayInUse {
    pub(super) fn new(overlay: &EnvoyOverlay, sets: Option<XdsSets>) -> Self {
        Self { current: Arc::new(Mutex::new(overlay.clone())), sets }
    }

    pub(super) fn current(&self) -> EnvoyOverlay {
        self.current.lock().clone()
    }

    /// Takes another overlay. The set of a control plane is laid under it at once, files at their next poll.
    pub(super) fn set(&self, overlay: EnvoyOverlay) {
        if *self.current.lock() == overlay {
            return;
        }
        self.current.lock().clone_from(&overlay);
        if let Some(sets) = &self.sets {
            sets.set_overlay(overlay);
        }
    }
}
