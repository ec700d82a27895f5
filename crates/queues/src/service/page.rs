//! Pages of items, in messages.

use crate::model::{BrowsedItem, ItemId, NoItemId, OutcomeSearch};
use tonic::Status;
use weir_node::limiter::{InvalidField, shown};
use weir_proto::v1::{self, BrowseResponse, ItemState, OutcomesRequest};
use weir_units::{LATEST, Micros};

use super::status;
use super::{duration, small};
use crate::calls::{Browsed, QueuePage};

/// Items of a page if the call names no number.
pub(super) const DEFAULT_PAGE: u32 = 20;

/// Reads which page is asked for.
pub(super) fn page_of(after: &str, max_items: Option<u32>, default: u32) -> Result<QueuePage, Status> {
    let after = id_of("after", after)?.unwrap_or_default();
    Ok(QueuePage { after, max_items: max_items.unwrap_or(default) as usize })
}

/// Reads which outcomes are looked for.
pub(super) fn search_of(request: &OutcomesRequest) -> Result<OutcomeSearch, Status> {
    let OutcomesRequest { item_id, from_unix_ms, until_unix_ms, max_items, before, .. } = request;
    for (field, ms) in [("from_unix_ms", from_unix_ms), ("until_unix_ms", until_unix_ms)] {
        if *ms >= LATEST.0 {
            let bound = format!("it must be below {}", LATEST.0);
            return Err(status::invalid(&InvalidField { field, value: ms.to_string(), bound }));
        }
    }
    let item = id_of("item_id", item_id)?;
    let last = ItemId { ms: LATEST.0, seq: 0 };
    let until = if *until_unix_ms == 0 { last } else { ItemId { ms: until_unix_ms + 1, seq: 0 } };
    Ok(OutcomeSearch {
        item,
        // No item was acked before it came.
        from_ms: (*from_unix_ms).max(item.map_or(0, |item| item.ms)),
        before: id_of("before", before)?.unwrap_or(last).min(until),
        max_items: max_items.unwrap_or(DEFAULT_PAGE) as usize,
    })
}

/// Reads an id, which may be empty.
fn id_of(field: &'static str, text: &str) -> Result<Option<ItemId>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: NoItemId| {
        let value = format!("\"{}\"", shown(text));
        status::invalid(&InvalidField { field, value, bound: error.to_string() })
    })
}

/// The text of where the next page begins; empty for none.
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
