//! The archive of a queue, in messages.

use tonic::Status;
use weir_node::limiter::InvalidField;
use weir_proto::v1::{self, ItemFate, ItemOutcome, OutcomesRequest, OutcomesResponse};
use weir_units::LATEST;

use super::page::{DEFAULT_PAGE, id_of, next_of};
use super::{small, status};
use crate::calls::FoundOutcomes;
use crate::model::{self, ItemId, KeptPayload, OutcomeRecord, OutcomeSearch, OutcomeTotals};

/// Reads the filters of a search.
pub(super) fn search_of(request: &OutcomesRequest) -> Result<OutcomeSearch<'_>, Status> {
    let OutcomesRequest { item_id, from_unix_ms, until_unix_ms, max_items, before, .. } = request;
    for (field, ms) in [("from_unix_ms", from_unix_ms), ("until_unix_ms", until_unix_ms)] {
        if *ms >= LATEST.0 {
            let bound = format!("it must be below {}", LATEST.0);
            return Err(status::invalid(&InvalidField { field, value: ms.to_string(), bound }));
        }
    }
    let fate = ItemFate::try_from(request.fate).map_err(|_| {
        let bound = "it must be one of the fates, or not set".to_owned();
        status::invalid(&InvalidField { field: "fate", value: request.fate.to_string(), bound })
    })?;
    let item = id_of("item_id", item_id)?;
    let last = ItemId { ms: LATEST.0, seq: 0 };
    let until = if *until_unix_ms == 0 { last } else { ItemId { ms: until_unix_ms + 1, seq: 0 } };
    Ok(OutcomeSearch {
        item,
        fate: fate_of(fate),
        text: &request.outcome,
        // No item left before it came.
        from_ms: (*from_unix_ms).max(item.map_or(0, |item| item.ms)),
        before: id_of("before", before)?.unwrap_or(last).min(until),
        max_items: max_items.unwrap_or(DEFAULT_PAGE) as usize,
    })
}

/// The answer with what was found.
pub(super) fn response(found: FoundOutcomes) -> OutcomesResponse {
    let FoundOutcomes { outcomes, totals, next } = found;
    let OutcomeTotals { acked, dead_lettered, dropped, aged_out } = totals;
    OutcomesResponse {
        outcomes: outcomes.into_iter().map(item_outcome).collect(),
        next: next_of(next),
        totals: Some(v1::OutcomeTotals { acked, dead_lettered, dropped, aged_out }),
    }
}

pub(super) fn item_outcome(record: OutcomeRecord) -> ItemOutcome {
    let (payload_digest, payload_head) = match record.payload {
        None => (String::new(), Vec::new()),
        Some(KeptPayload::Digest(digest)) => (digest.into(), Vec::new()),
        Some(KeptPayload::Head(head)) => (String::new(), head.into()),
    };
    let fate = match record.fate {
        model::ItemFate::Acked => ItemFate::Acked,
        model::ItemFate::DeadLettered => ItemFate::DeadLettered,
        model::ItemFate::Dropped => ItemFate::Dropped,
        model::ItemFate::AgedOut => ItemFate::AgedOut,
    };
    ItemOutcome {
        item_id: record.item.to_string(),
        at_unix_ms: record.at.ms,
        deliveries: small(record.deliveries),
        consumer: record.taker.into(),
        outcome: record.text.into(),
        fate: fate.into(),
        payload_bytes: record.size,
        payload_digest,
        payload_head,
    }
}

fn fate_of(fate: ItemFate) -> Option<model::ItemFate> {
    Some(match fate {
        ItemFate::Unspecified => return None,
        ItemFate::Acked => model::ItemFate::Acked,
        ItemFate::DeadLettered => model::ItemFate::DeadLettered,
        ItemFate::Dropped => model::ItemFate::Dropped,
        ItemFate::AgedOut => model::ItemFate::AgedOut,
    })
}
