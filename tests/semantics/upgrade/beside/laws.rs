//! Laws that answers alone can break.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use weir_queues::model::{QueueKind, QueuePart};

use super::super::story::{Act, Law, QueueAct, Story};

/// Sees that the answers to all steps keep to the law of the story.
pub(super) fn check<'a>(story: &Story, answers: impl Iterator<Item = &'a Json>) {
    let mut now = 0;
    let mut acts = Vec::new();
    for (step, answers) in story.steps.iter().zip(answers) {
        now += step.after;
        acts.extend(
            step.acts.iter().zip(answers.as_array().unwrap()).map(|(act, answer)| (now, act, answer)),
        );
    }
    let checked = match story.law {
        None => 1,
        Some(Law::AtMost(most, span)) => granted_at_most(&acts, most, span),
        Some(Law::Held(limit)) => held_at_most(&acts, limit),
        Some(Law::Items) => no_item_is_lost(&acts),
    };
    assert!(checked > 0, "{} shows nothing", story.name);
}

/// Acts at their times with their answers.
type Acts<'a> = [(u64, &'a Act, &'a Json)];

fn granted_at_most(acts: &Acts<'_>, most: u64, span: u64) -> usize {
    let mut granted: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for (now, act, answer) in acts {
        let Act::Decide { consumer, op: weir_core::algorithm::Op::Charge, id: "", .. } = act else {
            continue;
        };
        if answer["allowed"] != true {
            continue;
        }
        let all = granted.entry(consumer).or_default();
        all.push((*now, answer["granted"].as_u64().unwrap()));
        let sum: u64 = all.iter().filter(|(at, _)| now - at < span).map(|(_, cost)| cost).sum();
        assert!(sum <= most, "{consumer} was granted {sum} at {now}");
    }
    granted.len()
}

fn held_at_most(acts: &Acts<'_>, limit: u64) -> usize {
    let mut held: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    let mut refused = 0;
    for (now, act, answer) in acts {
        let Act::Lease { consumer, id, op, .. } = act else { continue };
        let key = (*consumer, id.as_str());
        let ends = || now + answer[0][1].as_u64().unwrap();
        match (answer[0][0].as_str().unwrap(), op) {
            ("new", weir_leases::model::LeaseOp::Acquire { weight, .. }) => {
                _ = held.insert(key, (ends(), *weight))
            }
            ("held", _) => {
                let (until, _) = held.get_mut(&key).unwrap_or_else(|| panic!("{key:?} is held by nobody"));
                *until = ends();
            }
            ("released", _) => assert!(held.remove(&key).is_some_and(|(ends, _)| ends > *now), "{key:?}"),
            ("limited", _) => refused += 1,
            _ => {}
        }
        let of_consumer = held.iter().filter(|((of, _), (ends, _))| of == consumer && ends > now);
        let sum: u64 = of_consumer.map(|(_, (_, weight))| weight).sum();
        assert!(sum <= limit, "{consumer} holds {sum} at {now}");
    }
    refused
}

/// Each item is in the end with whoever acked or took it, or among the dead letters; and no two workers have it at a time.
fn no_item_is_lost(acts: &Acts<'_>) -> usize {
    let (mut accepted, mut gone, mut dead) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut with_worker, mut delivered) = (BTreeMap::new(), BTreeSet::new());
    for (now, act, answer) in acts {
        let Act::Queue { rule, part, op } = act else { continue };
        let is_list = rule.numbers().kind == QueueKind::List;
        let texts = |list: &Json| -> Vec<String> {
            list.as_array().unwrap().iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
        };
        match (answer[0].as_str().unwrap(), part) {
            ("accepted", _) => accepted.extend(texts(&answer[2])),
            ("taken", QueuePart::Dead) => {
                dead.extend(
                    answer[2].as_array().unwrap().iter().map(|it| it[4].as_str().unwrap().to_owned()),
                );
            }
            ("taken", QueuePart::Main) => {
                for item in answer[2].as_array().unwrap() {
                    let id = item[0].as_str().unwrap().to_owned();
                    assert!(accepted.contains(&id) && !gone.contains(&id), "{id} is no item");
                    let until = with_worker.insert(id.clone(), now + rule.numbers().visibility.0);
                    assert!(until.is_none_or(|until| until <= *now), "{id} is with two workers at {now}");
                    delivered.insert(id.clone());
                    if is_list {
                        gone.insert(id);
                    }
                }
            }
            ("settled", QueuePart::Main) => {
                for item in answer[2].as_array().unwrap().iter().filter(|item| item[1] == true) {
                    let id = item[0].as_str().unwrap();
                    // What was given back may still be acked.
                    with_worker.remove(id);
                    assert!(delivered.contains(id), "{id} was with nobody at {now}");
                    if matches!(op, QueueAct::Ack(..)) {
                        assert!(gone.insert(id.to_owned()), "{id} is acked twice");
                    }
                }
            }
            _ => {}
        }
    }
    let is_stats = |act: &Act| matches!(act, Act::Queue { part: QueuePart::Main, op: QueueAct::Stats, .. });
    let last = acts.iter().rev().find(|(_, act, _)| is_stats(act)).map(|(_, _, answer)| answer);
    assert!(last.is_some_and(|answer| answer[1] == 0), "items are left: {last:?}");
    let left: Vec<_> = accepted.iter().filter(|id| !gone.contains(*id) && !dead.contains(*id)).collect();
    assert!(left.is_empty() && gone.is_disjoint(&dead), "{left:?} are lost");
    accepted.len()
}
