//! What a process needs of a node.

use crate::redis::decisions;
use crate::scripts::{ScriptSpec, Uses};

/// Returns what decisions need, if any are made, and then what features need.
pub(super) fn specs(uses: &Uses) -> impl Iterator<Item = &'static ScriptSpec> {
    let decisions = uses.decides().then(|| decisions::needed(|engine| uses.has(engine)));
    decisions.into_iter().flatten().chain(uses.features.iter().copied())
}
