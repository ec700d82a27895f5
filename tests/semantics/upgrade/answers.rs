//! Answers as JSON, in words that are no names of the code: a fixture outlives them.

use serde_json::{Value as Json, json};
use weir_leases::model::{LeaseAnswer, LeaseOutcome, LeaseRefusal};
use weir_queues::model::{
    DeliveredItem, ItemId, OutcomeRecord, QueueAnswer, QueueRefusal, QueueReply, QueueStats, QueueTotals,
    RedeliveryCause,
};
use weir_store::{StoreError, Verdicts};
use weir_units::{Micros, Retry};

use super::bytes::json_of;

/// The verdict, and of each limit: cause, remaining, retry and reset.
pub(super) fn of_decision(verdicts: &Verdicts) -> Json {
    let (verdict, limits) = verdicts.get(0).unwrap();
    let retry = |retry: Retry| match retry {
        Retry::After(wait) => json!(wait.0),
        other => json!(format!("{other:?}")),
    };
    let limits: Vec<Json> = limits
        .iter()
        .map(|limit| {
            json!([format!("{:?}", limit.cause), limit.remaining, retry(limit.retry), limit.reset_after.0])
        })
        .collect();
    let (allowed, applied) = (verdict.allowed, verdict.applied);
    json!({ "allowed": allowed, "applied": applied, "granted": verdict.granted, "limits": limits })
}

/// The verdict over limits with costs of their own, and of each limit: what was granted and charged, what remains and is held, its
/// waits, and whether it is near its limit.
pub(super) fn of_costs(verdicts: Result<Verdicts, StoreError>) -> Json {
    let verdict = match verdicts {
        Err(StoreError::OtherContents) => return json!("other contents"),
        Err(error) => return json!(error.to_string()),
        Ok(verdicts) => verdicts.budget.unwrap(),
    };
    let retry = |retry: Retry| match retry {
        Retry::After(wait) => json!(wait.0),
        other => json!(format!("{other:?}")),
    };
    let limits: Vec<Json> = verdict
        .limits
        .iter()
        .map(|one| {
            json!([
                [one.granted, one.charged],
                [one.remaining, one.held],
                [retry(one.retry), one.reset_after.0],
                [one.near, Some(one.crossed_near)],
            ])
        })
        .collect();
    json!({
        "allowed": verdict.allowed,
        "applied": verdict.applied,
        "fitted": verdict.fitted,
        "held_for": verdict.held_for.map(|span| span.0),
        "outcome": verdict.outcome.map(|outcome| format!("{outcome:?}").to_lowercase()),
        "limits": limits,
    })
}

/// The outcome, then limit, in flight, remaining and the estimate.
pub(super) fn of_lease(answer: Result<LeaseAnswer, StoreError>) -> Json {
    let answer = match answer {
        Err(error) => return json!(error.to_string()),
        Ok(answer) => answer,
    };
    let outcome = match answer.outcome {
        LeaseOutcome::Held { expires_after, is_new: true } => json!(["new", expires_after.0]),
        LeaseOutcome::Held { expires_after, is_new: false } => json!(["held", expires_after.0]),
        LeaseOutcome::Released => json!(["released"]),
        LeaseOutcome::NotHeld => json!(["not held"]),
        LeaseOutcome::OtherWeight(weight) => json!(["other weight", weight]),
        LeaseOutcome::Refused { refusal, bound } => {
            let why = match refusal {
                LeaseRefusal::Limited => "limited",
                LeaseRefusal::Never => "never",
                LeaseRefusal::Full | LeaseRefusal::NoMemory => "full",
            };
            json!([why, bound.map(|bound| bound.0)])
        }
        LeaseOutcome::Sampled => json!(["sampled"]),
    };
    // As text, because a reader of JSON may round a double.
    json!([outcome, answer.limit, answer.in_flight, answer.remaining, answer.estimate.to_string()])
}

/// Returns the action, the depth, and their details as JSON. `ids` are the settled items.
pub(super) fn of_queue(ids: &[ItemId], answer: Result<QueueAnswer, StoreError>) -> Json {
    let QueueAnswer { depth, reply, .. } = match answer {
        Err(error) => return json!(error.to_string()),
        Ok(answer) => answer,
    };
    match reply {
        QueueReply::Accepted { ids, added, .. } => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            json!(["accepted", depth, ids, added])
        }
        QueueReply::Refused(QueueRefusal::Full) => json!(["full", depth]),
        QueueReply::Refused(QueueRefusal::Never) => json!(["never", depth]),
        QueueReply::Refused(QueueRefusal::OtherPayload(place)) => json!(["other_payload", depth, place]),
        QueueReply::Taken { items, next_after, dead_lettered } => {
            let items: Vec<Json> = items.iter().map(delivered).collect();
            json!(["taken", depth, items, next_after.map(|after| after.0), dead_lettered])
        }
        QueueReply::Settled { done, dead_lettered } => {
            let done: Vec<Json> =
                ids.iter().zip(done).map(|(id, done)| json!([id.to_string(), done])).collect();
            json!(["settled", depth, done, dead_lettered])
        }
        // No fixture has them: versions before these operations were not asked.
        QueueReply::Browsed { .. }
        | QueueReply::Redriven { .. }
        | QueueReply::Purged { .. }
        | QueueReply::Outcomes { .. } => {
            json!(["operated"])
        }
        QueueReply::Stats(stats) => json!(["stats", depth, of_stats(&stats)]),
    }
}

fn delivered(item: &DeliveredItem) -> Json {
    let again = item.again.as_ref().map(|again| {
        let cause = match again.cause {
            RedeliveryCause::Nack => "nack",
            RedeliveryCause::Visibility => "visibility",
        };
        json!([cause, &*again.taker])
    });
    let origin = item.origin.map(|origin| origin.to_string());
    json!([item.id.to_string(), json_of(&item.payload), item.deliveries, again, origin])
}

fn of_stats(stats: &QueueStats) -> Json {
    let QueueStats { unacked, bytes, dead_depth, oldest_age, totals, outcomes, newest } = stats;
    let QueueTotals {
        accepted,
        first_deliveries,
        redelivered_nack,
        redelivered_visibility,
        acked,
        dead_lettered,
        // Totals that came later.
        ..
    } = totals;
    let newest: Vec<Json> = newest
        .iter()
        .map(|OutcomeRecord { at, item, size, deliveries, taker, text, .. }| {
            json!([at.to_string(), item.to_string(), size, deliveries, &**taker, &**text])
        })
        .collect();
    json!({
        "unacked": unacked, "bytes": bytes, "dead": dead_depth, "oldest": oldest_age.map(|Micros(age)| age),
        "totals": [accepted, first_deliveries, redelivered_nack, redelivered_visibility, acked, dead_lettered],
        "outcomes": outcomes, "newest": newest,
    })
}
