//! Pages of items, in messages.

use crate::model::{BrowsedItem, ItemId, NoItemId};
use tonic::Status;
use weir_node::limiter::{InvalidField, shown};
use weir_proto::v1::{self, BrowseResponse, ItemState};
use weir_units::Micros;

use super::status;
use super::{duration, small};
use crate::calls::{Browsed, QueuePage};

/// Items of a page if the call names no number.
pub(super) const DEFAULT_PAGE: u32 = 20;

/// Reads the page of a request.
pub(super) fn page_of(after: &str, max_items: Option<u32>, default: u32) -> Result<QueuePage, Status> {
    let after = id_of("after", after)?.unwrap_or_default();
    Ok(QueuePage { after, max_items: max_items.unwrap_or(default) as usize })
}

/// Reads an id, which may be empty.
pub(super) fn id_of(field: &'static str, text: &str) -> Result<Option<ItemId>, Status> {
    if text.is_empty() { Ok(None) } else { item_id(field, text).map(Some) }
}

/// Reads an id.
pub(super) fn item_id(field: &'static str, text: &str) -> Result<ItemId, Status> {
    text.parse().map_err(|error: NoItemId| {
        let value = format!("\"{}\"", shown(text));
        status::invalid(&InvalidField { field, value, bound: error.to_string() })
    })
}

/// The cursor of the next page; empty for none.
pub(super) fn next_of(next: Option<ItemId>) -> String {
    next.map(|id| id.to_string()).unwrap_or_default()
}

pub(super) fn browse_response(Browsed { items, next, depth }: Browsed) -> BrowseResponse {
    BrowseResponse { items: items.into_iter().map(browsed_item).collect(), next: next_of(next), depth }
}

fn browsed_item(item: BrowsedItem) -> v1::BrowsedItem {
    let state = match item.due_after {
        None => ItemState::New,
        Some(_) if item.is_nacked => ItemState::GivenBack,
        Some(Micros::ZERO) => ItemState::Overdue,
        Some(_) => ItemState::Taken,
    };
    v1::BrowsedItem {
        id: item.id.to_string(),
        payload: item.payload.to_vec(),
        state: state.into(),
        deliveries: small(item.deliveries),
        consumer: item.taker.map(String::from).unwrap_or_default(),
        due_after: item.due_after.map(duration),
        origin: item.origin.map(|id| id.to_string()).unwrap_or_default(),
    }
}
