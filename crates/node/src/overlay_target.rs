//! Target of a feature's changes at run time: the rules in force, on top of the files.

use std::sync::Arc;

use weir_config::WrittenStrategies;
use weir_core::strategy::{RuleEdit, Rules};

/// Makes the rules in force of those of the files, and of what the files say of the strategies.
pub type Overlay = Arc<dyn Fn(&Rules, &WrittenStrategies) -> Rules + Send + Sync>;

/// Makes edits of the rules in force, of the rules of the files and of what the files say of the strategies.
pub type MakeEdits<'a> = dyn Fn(&Rules, &WrittenStrategies) -> Option<Vec<RuleEdit>> + 'a;

/// The configuration in force. It is a trait because the configuration knows the features, and one of them changes it.
pub trait OverlayTarget: Send + Sync {
    /// Returns the rules in force.
    fn rules(&self) -> Arc<Rules>;

    /// Returns the rules of the files alone, and the strategies as the files write them.
    fn files(&self) -> (Arc<Rules>, Arc<WrittenStrategies>);

    /// Serves other changes on top of the files; `None` is the files alone.
    fn set_overlay(&self, overlay: Option<Overlay>);

    /// Serves `overlay`, which differs from the one before by what `edits` makes of the files. If it makes nothing of
    /// them, the rules are made anew.
    fn edit_overlay(&self, overlay: Overlay, edits: &MakeEdits<'_>);
}
