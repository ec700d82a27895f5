//! The same of decisions under ids: made once, asked for again, cancelled, on a clock that also steps back.

use weir_store::{Part, StoreError};

use super::*;

/// A call, and the id that it has: the first is none.
#[derive(Debug, Clone)]
struct CallOnce {
    call: Call,
    id: usize,
}

const IDS: [&str; 4] = ["", "first", "second", "third"];

#[test]
fn redis() {
    let redis = support::shared_redis();
    tell(World::new(vec![redis.url()], Topology::Single), 1);
}

#[test]
fn cluster() {
    let cluster = support::shared_cluster();
    tell(World::new(cluster.urls(), Topology::Cluster), 8);
}

fn tell(world: World, share: u32) {
    random::tell(file!(), share, &stories(), |(limits, calls)| {
        tell_one(&world, &Story { limits, calls: Vec::new() }, &calls)
    });
}

fn tell_one(world: &World, story: &Story, calls: &[CallOnce]) -> Result<usize, TestCaseError> {
    static STORIES: AtomicU64 = AtomicU64::new(0);
    let consumer = format!("once {}", STORIES.fetch_add(1, Ordering::Relaxed));
    let subject = Subject { resource: "differential", consumer: &consumer, ..Subject::default() };
    let configurations = [story.rules(|limit| limit.0), story.rules(|limit| limit.1)];
    let mut pure = Named::new(&configurations[0]);
    for (number, CallOnce { call, id }) in calls.iter().enumerate() {
        let rules = &configurations[usize::from(call.changed)];
        pure.machine.limits = rules.algorithms().to_vec();
        let (op, cost) = pure.machine.advance(&call.step);
        call.clock.apply(&mut pure);
        world.clock.set(pure.machine.now);
        // A refund with an id has a marker, which is another thing; and a cancellation is of an id.
        let id = match op {
            Op::Refund | Op::Reset | Op::Peek => "",
            Op::Cancel => IDS[(*id).max(1)],
            _ => IDS[*id],
        };
        let part = Part { id, ..Part::ALL };
        let decision =
            Decision { part: (!id.is_empty()).then_some(&part), ..Decision::new(rules, subject, op, &[]) };
        let mut out = Verdicts::default();
        let observed = world.runtime.block_on(world.store.decide_one(&decision, op, &[cost], &mut out));
        let expected = pure.decide_with(rules, &subject, |machine| {
            // Ids of different operations are different.
            let id = match op {
                Op::Charge | Op::AtMost => format!("charge {id}"),
                Op::Force => format!("debit {id}"),
                _ => format!("reserve {id}"),
            };
            if part.id.is_empty() { Ok(machine.decide(op, cost)) } else { machine.decide_once(op, cost, &id) }
        });
        let what = format!("call {} ({op:?} of {cost} as `{id}` at {})", number + 1, pure.machine.now.0);
        match (observed, expected) {
            (Ok(()), Ok(expected)) => {
                let observed = out.get(0).unwrap();
                prop_assert_eq!(observed, (&expected.verdict, &expected.limits[..]), "{}: Lua is left", what);
            }
            (Err(StoreError::OtherCost(observed)), Err(expected)) => {
                prop_assert_eq!(observed, expected, "{}", what)
            }
            (observed, expected) => prop_assert!(false, "{what}: {observed:?}, {expected:?}"),
        }
    }
    Ok(calls.len())
}

fn stories() -> impl Strategy<Value = (Vec<(Algorithm, Algorithm)>, Vec<CallOnce>)> {
    let pair = || {
        prop_oneof![
            4 => (random::any_bucket(), random::any_bucket()),
            4 => (random::interval(), random::interval()),
            2 => (random::warm_up(), random::warm_up()),
            4 => (random::held_log(), random::held_log()),
            1 => (random::limit(), random::limit()),
        ]
        .boxed()
    };
    let limits =
        prop_oneof![5 => prop::collection::vec(pair(), 1), 1 => prop::collection::vec(pair(), 2..=3)];
    let op = prop_oneof![
        3 => random::op().boxed(),
        3 => prop_oneof![0..=50_u64, 0..=CEILING].prop_map(|max| Op::Reserve { max_wait: Micros(max) }).boxed(),
        2 => Just(Op::Cancel).boxed(),
    ]
    .boxed();
    let call = (call_of(op), 0..IDS.len()).prop_map(|(call, id)| CallOnce { call, id });
    (limits, prop::collection::vec(call, 1..40))
}
