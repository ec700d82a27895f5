//! Nodes and a store of live control that fail, on many more traces than `control_store::model` has.

use crate::control_store::model;

#[test]
fn nodes_agree_after_losses() {
    model::many(1_000..21_000);
}
