//! Replies of `lua/queue/`.

use redis::Value;

use super::super::script::{garbled, number, whole};
use super::super::source::QueueScript;
use crate::StoreError;
use weir_core::queue::{
    DeliveredItem, ItemId, OutcomeRecord, QueueAnswer, QueueRefusal, QueueReply, QueueStats, QueueTotals,
    Redelivery, RedeliveryCause,
};
use weir_units::Micros;

/// Reads the reply to `call`.
pub(super) fn decode(call: QueueScript, reply: &Value) -> Result<QueueAnswer, StoreError> {
    match call {
        QueueScript::Enqueue => enqueued(&numbers(reply)?),
        QueueScript::Take => taken(parts(reply)?),
        QueueScript::Settle => settled(parts(reply)?),
        QueueScript::Stats => stats(parts(reply)?),
    }
}

fn enqueued(numbers: &[f64]) -> Result<QueueAnswer, StoreError> {
    let [_, depth, status, added, ids @ ..] = numbers else { return Err(garbled()) };
    let reply = match count(*status)? {
        1 => {
            let ids = ids.chunks_exact(2).map(|pair| item_id(pair[0], pair[1])).collect::<Result<_, _>>()?;
            QueueReply::Accepted { ids, added: count(*added)? }
        }
        2 => QueueReply::Refused(QueueRefusal::Full),
        3 => QueueReply::Refused(QueueRefusal::Never),
        _ => return Err(garbled()),
    };
    Ok(QueueAnswer { depth: count(*depth)?, reply })
}

fn taken(parts: &[Value]) -> Result<QueueAnswer, StoreError> {
    let [head, items @ ..] = parts else { return Err(garbled()) };
    let [_, depth, next, dead_lettered] = numbers(head)?[..] else { return Err(garbled()) };
    let items = items.chunks(3).map(delivered).collect::<Result<_, _>>()?;
    let next_after = span_if(next)?;
    let reply = QueueReply::Taken { items, next_after, dead_lettered: count(dead_lettered)? };
    Ok(QueueAnswer { depth: count(depth)?, reply })
}

fn delivered(item: &[Value]) -> Result<DeliveredItem, StoreError> {
    let [head, payload, taker] = item else { return Err(garbled()) };
    let [ms, seq, deliveries, cause, origin_ms, origin_seq] = numbers(head)?[..] else {
        return Err(garbled());
    };
    let cause = match count(cause)? {
        0 => None,
        1 => Some(RedeliveryCause::Nack),
        2 => Some(RedeliveryCause::Visibility),
        _ => return Err(garbled()),
    };
    let taker = text(taker)?;
    Ok(DeliveredItem {
        id: item_id(ms, seq)?,
        payload: bytes(payload)?.into(),
        deliveries: count(deliveries)?,
        again: cause.map(|cause| Redelivery { cause, taker }),
        origin: if origin_ms < 0.0 { None } else { Some(item_id(origin_ms, origin_seq)?) },
    })
}

fn settled(parts: &[Value]) -> Result<QueueAnswer, StoreError> {
    let [head, done] = parts else { return Err(garbled()) };
    let [_, depth, dead_lettered] = numbers(head)?[..] else { return Err(garbled()) };
    let done = bytes(done)?.iter().map(|flag| *flag == b'1').collect();
    let reply = QueueReply::Settled { done, dead_lettered: count(dead_lettered)? };
    Ok(QueueAnswer { depth: count(depth)?, reply })
}

fn stats(parts: &[Value]) -> Result<QueueAnswer, StoreError> {
    let [head, Value::Int(outcomes), records @ ..] = parts else { return Err(garbled()) };
    let [_, depth, unacked, held_bytes, dead_depth, age, totals @ ..] = &numbers(head)?[..] else {
        return Err(garbled());
    };
    let [accepted, first_deliveries, nacked, expired, acked, dead_lettered] = totals else {
        return Err(garbled());
    };
    let totals = QueueTotals {
        accepted: count(*accepted)?,
        first_deliveries: count(*first_deliveries)?,
        redelivered_nack: count(*nacked)?,
        redelivered_visibility: count(*expired)?,
        acked: count(*acked)?,
        dead_lettered: count(*dead_lettered)?,
    };
    let stats = QueueStats {
        unacked: count(*unacked)?,
        bytes: count(*held_bytes)?,
        dead_depth: count(*dead_depth)?,
        oldest_age: span_if(*age)?,
        totals,
        outcomes: u64::try_from(*outcomes).map_err(|_| garbled())?,
        newest: records.chunks(3).map(outcome).collect::<Result<_, _>>()?,
    };
    Ok(QueueAnswer { depth: count(*depth)?, reply: QueueReply::Stats(stats) })
}

fn outcome(record: &[Value]) -> Result<OutcomeRecord, StoreError> {
    let [head, taker, outcome] = record else { return Err(garbled()) };
    let [ms, seq, item_ms, item_seq, deliveries] = numbers(head)?[..] else { return Err(garbled()) };
    let (at, item) = (item_id(ms, seq)?, item_id(item_ms, item_seq)?);
    Ok(OutcomeRecord { at, item, deliveries: count(deliveries)?, taker: text(taker)?, text: text(outcome)? })
}

fn parts(reply: &Value) -> Result<&[Value], StoreError> {
    if let Value::Array(parts) = reply { Ok(parts) } else { Err(garbled()) }
}

fn bytes(value: &Value) -> Result<&[u8], StoreError> {
    if let Value::BulkString(bytes) = value { Ok(bytes) } else { Err(garbled()) }
}

fn text(value: &Value) -> Result<Box<str>, StoreError> {
    Ok(String::from_utf8_lossy(bytes(value)?).into())
}

fn numbers(value: &Value) -> Result<Vec<f64>, StoreError> {
    Ok(bytes(value)?.chunks_exact(8).map(number).collect())
}

fn count(number: f64) -> Result<u64, StoreError> {
    whole(Some(number))
}

fn span_if(number: f64) -> Result<Option<Micros>, StoreError> {
    if number < 0.0 { Ok(None) } else { count(number).map(Micros).map(Some) }
}

fn item_id(ms: f64, seq: f64) -> Result<ItemId, StoreError> {
    Ok(ItemId { ms: count(ms)?, seq: count(seq)? })
}
