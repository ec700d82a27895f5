//! The data of the `/ui` page. Everything in it is bounded, and is what the caller may see.

use serde_json::{Value, json};

use super::node;
use crate::access::Rights;
use crate::admin::AdminPages;

/// The data for a caller with these rights; or why the page cannot be shown now.
pub(super) async fn collected(pages: &AdminPages, rights: Rights<'_>) -> Result<Value, String> {
    let mut data = node::state(&pages.metrics, &pages.features.cards, rights);
    for source in &pages.features.sources {
        data.extend(source.fields(rights).await?);
    }
    let (ready, health) = pages.readiness.page();
    let of_node =
        [("version", json!(env!("CARGO_PKG_VERSION"))), ("ready", json!(ready)), ("health", json!(health))];
    data.extend(of_node.map(|(name, value)| (name.to_owned(), value)));
    Ok(Value::Object(data))
}
