//! The clock of Redis steps back while workers hold items.

use weir_config::Topology;
use weir_queues::model::{QueueOp, QueuePart};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use crate::support::queues::{START, call, numbers, put, queue, take};
use crate::support::{RedisServer, redis_store};

const HOUR: u64 = 3_600_000_000;
const SECOND: u64 = 1_000_000;

/// Held items come again when their time is over by the present clock, however many they are; and so do items that
/// were given back.
#[tokio::test]
async fn what_workers_hold_comes_no_later() {
    for held in [1, 700] {
        let redis = RedisServer::start();
        let clock = ManualClock::at(Micros(START));
        let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
        let rule = queue(numbers(1000));
        for _ in 0..held {
            put(&store, &rule, &["x"]).await;
        }
        let mut taken = Vec::new();
        while taken.len() < held {
            taken.extend(take(&store, &rule, QueuePart::Main, 100).await);
        }
        let nack = QueueOp::Nack { tokens: &[], ids: &[taken[0].1], delay: Micros::from_secs(60) };
        call(&store, &rule, nack).await;
        clock.set(Micros(START - HOUR));
        for _ in 0..2 {
            assert!(take(&store, &rule, QueuePart::Main, 1).await.is_empty(), "nothing comes early");
        }
        let mut again = 0;
        for seconds in [29, 31, 61] {
            clock.set(Micros(START - HOUR + seconds * SECOND));
            let mut came = 0;
            loop {
                let taken = take(&store, &rule, QueuePart::Main, 100).await;
                let ids: Vec<_> = taken.iter().map(|(_, id, _)| *id).collect();
                came += ids.len();
                if ids.is_empty() {
                    break;
                }
                call(&store, &rule, QueueOp::Ack { tokens: &[], ids: &ids, outcome: "" }).await;
            }
            again += came;
            let expected = match seconds {
                29 => 0,
                31 => held - 1,
                _ => held,
            };
            assert_eq!(again, expected, "{seconds} s after the step");
        }
    }
}
