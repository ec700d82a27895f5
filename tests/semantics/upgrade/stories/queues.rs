//! Queues of both kinds: ids, deliveries that end, work that is given back, dead letters, outcomes, a rate.

use std::sync::Arc;

use weir_queues::model::{MAX_DELAY, QueueKind, QueueNumbers, QueuePace, QueuePart, QueueRule};
use weir_units::Micros;

use super::super::story::{Act, Item, Law, QueueAct, Step, Story};
use super::Dice;
use crate::support::queues::numbers;

const SECOND: u64 = 1_000_000;
const WORKERS: [&str; 3] = ["ann", "bob", "eve"];

pub(super) fn stories() -> Vec<Story> {
    let pace = Some(QueuePace { count: 1, period: Micros(2 * SECOND) });
    let list = QueueNumbers { kind: QueueKind::List, ..numbers(12) };
    vec![
        story("stream", 21, numbers(12)),
        story("stream with a rate", 22, QueueNumbers { pace, ..numbers(12) }),
        story("stream without dead letters", 23, QueueNumbers { max_deliveries: None, ..numbers(12) }),
        story("list", 24, list.clone()),
        story("list with a rate", 25, QueueNumbers { pace, ..list }),
        given_back_for_long(),
    ]
}

/// Items that are given back for longer than the visibility, up to the longest delay.
fn given_back_for_long() -> Story {
    let rule =
        Arc::new(QueueRule::new("fixture", QueueNumbers { max_deliveries: None, ..numbers(12) }).unwrap());
    let act = |op| Act::Queue { rule: Arc::clone(&rule), part: QueuePart::Main, op };
    let items = (0..4).map(|number| (String::new(), format!("work {number}")));
    let take = || QueueAct::Take("ann", 4);
    let nack = |item, delay| QueueAct::Nack(vec![Item::Accepted(item)], delay);
    let all = || (0..4).map(Item::Accepted).collect();
    let steps = [
        (0, QueueAct::Put(items.collect())),
        (1, take()),
        (SECOND, nack(0, MAX_DELAY)),
        (0, nack(1, Micros(45 * SECOND))),
        (0, nack(2, Micros(SECOND))),
        (SECOND, take()),
        (28 * SECOND, take()),
        // Work that was not acked comes again, work that was given back for longer does not.
        (2 * SECOND, take()),
        (14 * SECOND, take()),
        (0, QueueAct::Stats),
        (MAX_DELAY.0, take()),
        (1, QueueAct::Ack(all(), "done")),
        (1, QueueAct::Stats),
    ];
    let steps = steps.into_iter().map(|(after, op)| Step { after, acts: vec![act(op)] }).collect();
    Story { name: "queues: given back for long".to_owned(), steps, states_after: 5, law: Some(Law::Items) }
}

fn story(name: &str, seed: u64, numbers: QueueNumbers) -> Story {
    let is_stream = numbers.kind == QueueKind::Stream;
    let rule = Arc::new(QueueRule::new("fixture", numbers).unwrap());
    let mut dice = Dice(seed);
    let act = |part, op| Act::Queue { rule: Arc::clone(&rule), part, op };
    let main = |op| act(QueuePart::Main, op);
    let mut steps: Vec<Step> = (0..50)
        .map(|number| {
            let after = dice.one_of(&[0, 0, 1, 700, SECOND / 3, SECOND, 4 * SECOND, 20 * SECOND]);
            // Calls of one kind share a script call.
            let (kind, count) = (dice.roll(if is_stream { 8 } else { 5 }), 1 + dice.roll(2) as usize);
            let acts = (0..count).map(|place| main(op(&mut dice, kind, 4 * number + place)));
            Step { after, acts: acts.collect() }
        })
        .collect();
    // Workers come for all that is left, and for the dead letters.
    for round in 0..16 {
        let taker = WORKERS[round % 3];
        let all = || (0..100).map(Item::Accepted).collect();
        steps.push(Step { after: 31 * SECOND, acts: vec![main(QueueAct::Take(taker, 100))] });
        if is_stream {
            let op =
                if round < 2 { QueueAct::Nack(all(), Micros::ZERO) } else { QueueAct::Ack(all(), "done") };
            steps.push(Step { after: 1, acts: vec![main(op)] });
        }
    }
    steps.push(Step { after: 1, acts: vec![main(QueueAct::Stats)] });
    if is_stream {
        let dead = |op| act(QueuePart::Dead, op);
        let all = (0..100).map(Item::Dead).collect();
        for op in [QueueAct::Take("eve", 100), QueueAct::Ack(all, "seen"), QueueAct::Stats] {
            steps.push(Step { after: 1, acts: vec![dead(op)] });
        }
    }
    Story { name: format!("queues: {name}"), steps, states_after: 40, law: Some(Law::Items) }
}

/// Returns an act of a caller or a worker; `number` is unique.
fn op(dice: &mut Dice, kind: u64, number: usize) -> QueueAct {
    let item = |dice: &mut Dice| Item::Accepted(dice.roll(100) as usize);
    match kind {
        0 | 1 => {
            // Some ids come again.
            let id = if dice.roll(3) == 0 { format!("id {}", dice.roll(6)) } else { String::new() };
            let one = (id, format!("work {number}"));
            let two = (String::new(), format!("more work {number}"));
            QueueAct::Put(if dice.roll(2) == 0 { vec![one] } else { vec![one, two] })
        }
        2 | 3 => QueueAct::Take(dice.one_of(&WORKERS), 1 + dice.roll(3) as usize),
        4 => QueueAct::Stats,
        5 | 6 => QueueAct::Ack((0..4).map(|_| item(dice)).collect(), dice.one_of(&["", "done"])),
        _ => {
            let delay = Micros(dice.one_of(&[0, SECOND, 45 * SECOND]));
            QueueAct::Nack((0..3).map(|_| item(dice)).collect(), delay)
        }
    }
}
