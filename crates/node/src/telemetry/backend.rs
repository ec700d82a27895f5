//! The metrics of the place where states live, whichever it is.

use weir_store::backend::Backend;

use super::sampled::{Sampled, Series};
use super::{Metrics, local, memory, store};

const SINGLE_SLOT_CALLS: [Series; 1] = [Series::counter(
    "weir_redis_single_slot_calls_total",
    "Script calls to cluster nodes that get one call for each slot.",
)];

impl Metrics {
    /// Registers the numbers that the backend has, and the health of its nodes.
    pub fn show_backend<B: Backend>(&self, backend: &B) -> Result<(), prometheus::Error> {
        let has = backend.stats();
        let read = || {
            let backend = backend.clone();
            move || backend.stats()
        };
        if has.memory.is_some() {
            let read = read();
            let values = move || memory::values(read().memory.unwrap_or_default());
            self.registry.register(Box::new(Sampled::new(memory::SERIES, values)?))?;
        }
        if has.single_slot_calls.is_some() {
            let read = read();
            let values = move || [read().single_slot_calls.unwrap_or_default() as f64];
            self.registry.register(Box::new(Sampled::new(SINGLE_SLOT_CALLS, values)?))?;
        }
        if has.local.is_some() {
            let read = read();
            let values = move || local::values(read().local.unwrap_or_default());
            self.registry.register(Box::new(Sampled::new(local::SERIES, values)?))?;
        }
        if backend.status_changes().is_some() {
            let backend = backend.clone();
            self.show_families(store::FAMILIES, move || store::metrics(&backend.status()))?;
        }
        Ok(())
    }
}
