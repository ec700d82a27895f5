//! Features whose files lie among those of decisions: what their scripts need of Redis, and the services that need them.

use weir_node::feature::{Feature, ServiceSpec, UsedScripts};
use weir_store::approximate::APPROXIMATE;

/// A feature that the node starts itself.
pub(super) struct WithinTrunk {
    name: &'static str,
    services: &'static [ServiceSpec],
    scripts: &'static [UsedScripts],
}

impl Feature for WithinTrunk {
    fn name(&self) -> &'static str {
        self.name
    }

    fn services(&self) -> &'static [ServiceSpec] {
        self.services
    }

    fn scripts(&self) -> &'static [UsedScripts] {
        self.scripts
    }
}

/// Strategies that nodes count on their own. Their calls are those of decisions.
pub(super) static COUNTED: WithinTrunk = WithinTrunk {
    name: "approximate",
    services: &[],
    scripts: &[(&APPROXIMATE, |snapshot| !snapshot.approximate().is_empty())],
};
