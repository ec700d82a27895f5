//! Decodes replies of `lua/queues/`.

mod operate;

use crate::model::{
    DeliveredItem, ItemId, KeptPayload, OutcomeRecord, QueueAnswer, QueueRefusal, QueueReply, QueueStats,
    QueueTotals, Redelivery, RedeliveryCause,
};
use weir_store::StoreError;
use weir_store::scripts::{LaneReplies, LinkReply, doubles_of as doubles, garbled, whole};
use weir_units::Micros;

use super::QueueRequest;
use super::codes::{enqueue_status as status, fate_of, redelivery};
use super::texts::QueueScript;

type CallAnswers = Result<LaneReplies<QueueAnswer>, StoreError>;

/// Decodes the reply to `calls`, which are of one kind.
pub(super) fn decode(calls: &[&QueueRequest], reply: &LinkReply) -> CallAnswers {
    let Some(first) = calls.first() else { return Ok(LaneReplies::new()) };
    let parts = parts(reply)?;
    match first.call {
        QueueScript::Enqueue => enqueued(calls, parts),
        QueueScript::Take => taken(calls, parts),
        QueueScript::Settle => settled(calls, parts),
        QueueScript::Stats => Ok(LaneReplies::from_buf([stats(parts)])),
        QueueScript::Outcomes => Ok(LaneReplies::from_buf([operate::outcomes(parts)])),
        QueueScript::Browse => Ok(LaneReplies::from_buf([operate::browsed(parts)])),
        QueueScript::Purge => Ok(LaneReplies::from_buf([operate::purged(parts)])),
        QueueScript::Redrive => Ok(LaneReplies::from_buf([operate::redriven(parts)])),
    }
}

fn enqueued(calls: &[&QueueRequest], parts: &[LinkReply]) -> CallAnswers {
    let [numbers_of_all, reasons @ ..] = parts else { return Err(garbled()) };
    let (numbers, mut reasons) = (numbers(numbers_of_all)?, reasons.iter());
    let mut numbers = numbers.into_iter();
    let mut next = || numbers.next().ok_or_else(garbled);
    let mut answers = LaneReplies::with_capacity(calls.len());
    for call in calls {
        let (status, depth, added) = (whole(next()?)?, whole(next()?)?, whole(next()?)?);
        let (aged_out, dropped) = (whole(next()?)?, whole(next()?)?);
        let reply = match status {
            status::FAILED => {
                answers.push(Err(key_error(reasons.next().ok_or_else(garbled)?)?));
                continue;
            }
            status::ADDED => {
                let ids = (0..call.numbers.items()).map(|_| item_id(next()?, next()?));
                QueueReply::Accepted { ids: ids.collect::<Result<_, _>>()?, added, dropped }
            }
            status::FULL => QueueReply::Refused(QueueRefusal::Full),
            status::NEVER => QueueReply::Refused(QueueRefusal::Never),
            status::OTHER => QueueReply::Refused(QueueRefusal::OtherPayload(added)),
            _ => return Err(garbled()),
        };
        answers.push(Ok(QueueAnswer { depth, aged_out, reply }));
    }
    Ok(answers)
}

fn taken(calls: &[&QueueRequest], parts: &[LinkReply]) -> CallAnswers {
    let [head, items @ ..] = parts else { return Err(garbled()) };
    let head = numbers(head)?;
    let [_, held, aged_out, of_calls @ ..] = &head[..] else { return Err(garbled()) };
    if of_calls.len() != 4 * calls.len() {
        return Err(garbled());
    }
    let mut items = items.chunks(3);
    let answer = |of_call: &[f64]| {
        let &[handed, next, gone, dead_lettered] = of_call else { return Err(garbled()) };
        let next_item = || items.next().ok_or_else(garbled).and_then(delivered);
        let items = std::iter::repeat_with(next_item).take(index(handed)?).collect::<Result<_, _>>()?;
        let (next_after, dead_lettered) = (span_if(next)?, whole(dead_lettered)?);
        let reply = QueueReply::Taken { items, next_after, dead_lettered };
        // Calls share no script call where items age out.
        let aged_out = whole(*aged_out)?;
        Ok(Ok(QueueAnswer { depth: whole(held - gone)?, aged_out, reply }))
    };
    of_calls.chunks(4).map(answer).collect()
}

fn delivered(item: &[LinkReply]) -> Result<DeliveredItem, StoreError> {
    let [id, payload, about] = item else { return Err(garbled()) };
    let (id, payload) = (id.text()?.parse().map_err(|_| garbled())?, payload.bytes()?.into());
    let about = about.bytes()?;
    if about.is_empty() {
        return Ok(DeliveredItem { id, payload, deliveries: 1, again: None, origin: None });
    }
    let (head, taker) = about.split_at_checked(32).ok_or_else(garbled)?;
    let head: Vec<f64> = doubles(head).collect();
    let [deliveries, cause, origin_ms, origin_seq] = head[..] else { return Err(garbled()) };
    let cause = match whole(cause)? {
        redelivery::FIRST => None,
        redelivery::NACKED => Some(RedeliveryCause::Nack),
        redelivery::EXPIRED => Some(RedeliveryCause::Visibility),
        _ => return Err(garbled()),
    };
    let taker = String::from_utf8_lossy(taker);
    Ok(DeliveredItem {
        id,
        payload,
        deliveries: whole(deliveries)?,
        again: cause.map(|cause| Redelivery { cause, taker: taker.into() }),
        origin: if origin_ms < 0.0 { None } else { Some(item_id(origin_ms, origin_seq)?) },
    })
}

fn settled(calls: &[&QueueRequest], parts: &[LinkReply]) -> CallAnswers {
    let [_, of_calls @ .., held] = parts else { return Err(garbled()) };
    let [held] = numbers(held)?[..] else { return Err(garbled()) };
    if of_calls.len() != 2 * calls.len() {
        return Err(garbled());
    }
    let answer = |of_call: &[LinkReply]| {
        let [head, done] = of_call else { return Err(garbled()) };
        let [gone, dead_lettered] = numbers(head)?[..] else { return Err(garbled()) };
        let done = done.bytes()?.iter().map(|flag| *flag == b'1').collect();
        let reply = QueueReply::Settled { done, dead_lettered: whole(dead_lettered)? };
        Ok(Ok(QueueAnswer { depth: whole(held - gone)?, aged_out: 0, reply }))
    };
    of_calls.chunks(2).map(answer).collect()
}

fn stats(parts: &[LinkReply]) -> Result<QueueAnswer, StoreError> {
    let [head, LinkReply::Number(outcomes), records @ ..] = parts else { return Err(garbled()) };
    let [_, depth, unacked, held_bytes, dead_depth, age, totals @ ..] = &numbers(head)?[..] else {
        return Err(garbled());
    };
    let &[accepted, first, nacked, expired, acked, dead_lettered, aged_out, dropped, purged, redriven] =
        totals
    else {
        return Err(garbled());
    };
    let totals = QueueTotals {
        accepted: whole(accepted)?,
        first_deliveries: whole(first)?,
        redelivered_nack: whole(nacked)?,
        redelivered_visibility: whole(expired)?,
        acked: whole(acked)?,
        dead_lettered: whole(dead_lettered)?,
        aged_out: whole(aged_out)?,
        dropped: whole(dropped)?,
        purged: whole(purged)?,
        redriven: whole(redriven)?,
    };
    let stats = QueueStats {
        unacked: whole(*unacked)?,
        bytes: whole(*held_bytes)?,
        dead_depth: whole(*dead_depth)?,
        oldest_age: span_if(*age)?,
        totals,
        outcomes: u64::try_from(*outcomes).map_err(|_| garbled())?,
        newest: records.chunks(4).map(outcome).collect::<Result<_, _>>()?,
    };
    Ok(QueueAnswer { depth: whole(*depth)?, aged_out: 0, reply: QueueReply::Stats(stats) })
}

fn outcome(record: &[LinkReply]) -> Result<OutcomeRecord, StoreError> {
    let [head, delivery, text, payload] = record else { return Err(garbled()) };
    let [ms, seq, item_ms, item_seq, fate] = numbers(head)?[..] else { return Err(garbled()) };
    let (at, item) = (item_id(ms, seq)?, item_id(item_ms, item_seq)?);
    // The record of a delivery: two numbers, a flag, and the taker.
    let (head, rest) = delivery.bytes()?.split_at_checked(16).ok_or_else(garbled)?;
    let [size, deliveries] = doubles(head).collect::<Vec<f64>>()[..] else { return Err(garbled()) };
    let (_, taker) = rest.split_first().ok_or_else(garbled)?;
    Ok(OutcomeRecord {
        at,
        item,
        fate: fate_of(whole(fate)?).ok_or_else(garbled)?,
        size: whole(size)?,
        deliveries: whole(deliveries)?,
        taker: String::from_utf8_lossy(taker).into(),
        text: text.text()?.into(),
        payload: kept_payload(payload.bytes()?)?,
    })
}

/// The kept part of a payload, behind its letter.
fn kept_payload(text: &[u8]) -> Result<Option<KeptPayload>, StoreError> {
    Ok(match text.split_first() {
        None => None,
        Some((b's', digest)) => Some(KeptPayload::Digest(String::from_utf8_lossy(digest).into())),
        Some((b'h', head)) => Some(KeptPayload::Head(head.into())),
        Some(_) => return Err(garbled()),
    })
}

fn parts(reply: &LinkReply) -> Result<&[LinkReply], StoreError> {
    if let LinkReply::List(parts) = reply { Ok(parts) } else { Err(garbled()) }
}

fn numbers(value: &LinkReply) -> Result<Vec<f64>, StoreError> {
    Ok(doubles(value.bytes()?).collect())
}

/// The error of a request whose key is of another kind, or which the script could not do.
fn key_error(reason: &LinkReply) -> Result<StoreError, StoreError> {
    let reason = reason.text()?;
    let is_unreadable = reason.starts_with("WRONGTYPE");
    Ok(if is_unreadable { StoreError::Unreadable } else { StoreError::Refused }(reason.into()))
}

fn index(number: f64) -> Result<usize, StoreError> {
    usize::try_from(whole(number)?).map_err(|_| garbled())
}

fn span_if(number: f64) -> Result<Option<Micros>, StoreError> {
    if number < 0.0 { Ok(None) } else { whole(number).map(Micros).map(Some) }
}

fn item_id(ms: f64, seq: f64) -> Result<ItemId, StoreError> {
    Ok(ItemId { ms: whole(ms)?, seq: whole(seq)? })
}
