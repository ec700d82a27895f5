//! Nodes and a store of live control that fail, on many more traces than `control::model` has.

use crate::control::model;

#[test]
fn nodes_agree_after_losses() {
    model::many(1_000..21_000);
}
