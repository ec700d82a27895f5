//! What live control changes: the rules in force, and the files beneath.

use std::sync::Arc;

use weir_config::WrittenStrategies;
use weir_core::strategy::Rules;

/// Makes the rules in force of those of the files, and of what the files say of the strategies.
pub type Overlay = Arc<dyn Fn(&Rules, &WrittenStrategies) -> Rules + Send + Sync>;

/// The configuration in force. It is a trait because the configuration knows the server, and the server serves live
/// control.
pub trait OverlayTarget: Send + Sync {
    /// The rules in force.
    fn rules(&self) -> Arc<Rules>;

    /// The rules of the files, without live control, and the strategies as the files write them.
    fn files(&self) -> (Arc<Rules>, Arc<WrittenStrategies>);

    /// Serves other changes on top of the files; `None` is the files alone.
    fn set_overlay(&self, overlay: Option<Overlay>);
}
