//! Replies to Browse, Redrive and Purge.

use crate::model::{BrowsedItem, OutcomeTotals, QueueAnswer, QueueReply};
use weir_store::StoreError;
use weir_store::scripts::{LinkReply, doubles_of as doubles, garbled, whole};

use super::{item_id, numbers, outcome, span_if};

pub(super) fn browsed(parts: &[LinkReply]) -> Result<QueueAnswer, StoreError> {
    let [head, items @ ..] = parts else { return Err(garbled()) };
    let [_, depth, has_more] = numbers(head)?[..] else { return Err(garbled()) };
    let items = items.chunks(3).map(item).collect::<Result<Vec<_>, _>>()?;
    let next = items.last().map(|item| item.id).filter(|_| has_more > 0.0);
    Ok(QueueAnswer { depth: whole(depth)?, aged_out: 0, reply: QueueReply::Browsed { items, next } })
}

fn item(item: &[LinkReply]) -> Result<BrowsedItem, StoreError> {
    let [id, payload, about] = item else { return Err(garbled()) };
    let (head, taker) = about.bytes()?.split_at_checked(40).ok_or_else(garbled)?;
    let head: Vec<f64> = doubles(head).collect();
    let [deliveries, nacked, due, origin_ms, origin_seq] = head[..] else { return Err(garbled()) };
    let due_after = span_if(due)?;
    Ok(BrowsedItem {
        id: id.text()?.parse().map_err(|_| garbled())?,
        payload: payload.bytes()?.into(),
        deliveries: whole(deliveries)?,
        is_nacked: nacked > 0.0,
        taker: due_after.map(|_| String::from_utf8_lossy(taker).into()),
        due_after,
        origin: if origin_ms < 0.0 { None } else { Some(item_id(origin_ms, origin_seq)?) },
    })
}

pub(super) fn redriven(parts: &[LinkReply]) -> Result<QueueAnswer, StoreError> {
    let [head, items @ ..] = parts else { return Err(garbled()) };
    let [_, depth, left, full, last_ms, last_seq] = numbers(head)?[..] else { return Err(garbled()) };
    let id = |item: &LinkReply| match numbers(item)?[..] {
        [ms, seq] => item_id(ms, seq),
        _ => Err(garbled()),
    };
    let reply = QueueReply::Redriven {
        items: items.iter().map(id).collect::<Result<_, _>>()?,
        next: if last_ms < 0.0 { None } else { Some(item_id(last_ms, last_seq)?) },
        is_full: full > 0.0,
        dead_depth: whole(left)?,
    };
    Ok(QueueAnswer { depth: whole(depth)?, aged_out: 0, reply })
}

pub(super) fn outcomes(parts: &[LinkReply]) -> Result<QueueAnswer, StoreError> {
    let [head, records @ ..] = parts else { return Err(garbled()) };
    let [_, depth, has_more, ms, seq, acked, dead_lettered, dropped, aged_out] = numbers(head)?[..] else {
        return Err(garbled());
    };
    let totals = OutcomeTotals {
        acked: whole(acked)?,
        dead_lettered: whole(dead_lettered)?,
        dropped: whole(dropped)?,
        aged_out: whole(aged_out)?,
    };
    let found = records.chunks(4).map(outcome).collect::<Result<_, _>>()?;
    let next = if has_more > 0.0 { Some(item_id(ms, seq)?) } else { None };
    let reply = QueueReply::Outcomes { found, totals, next };
    Ok(QueueAnswer { depth: whole(depth)?, aged_out: 0, reply })
}

pub(super) fn purged(parts: &[LinkReply]) -> Result<QueueAnswer, StoreError> {
    let [head] = parts else { return Err(garbled()) };
    let [_, depth, items] = numbers(head)?[..] else { return Err(garbled()) };
    Ok(QueueAnswer { depth: whole(depth)?, aged_out: 0, reply: QueueReply::Purged { items: whole(items)? } })
}
