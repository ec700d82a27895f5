//! Who takes part: producers, and workers that are sometimes slow, unwilling or dead.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tonic::transport::Channel;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{AckRequest, EnqueueRequest, NackRequest, NewItem, TakeRequest};

use super::account::{Account, Ending};
use crate::support::faulty_nodes::{FaultyNodes, SOON_AGAIN};

pub(super) const QUEUE: &str = "jobs";
const LINE: &str = "line";

/// A visibility that ends several times within the test.
const VISIBILITY: Duration = Duration::from_secs(3);

/// The queues.
pub(super) fn configuration() -> String {
    format!(
        "queues:\n  {QUEUE}: {{ capacity: 200, visibility: {}s, max_deliveries: 4 }}\n  {LINE}: {{ capacity: 200, kind: list \
         }}\nstrategies:\n  any: {{ limits: [{{ name: each, per: [consumer], token_bucket: {{ rate: 1/s }} }}] \
         }}\nresources: [{{ match: any, strategy: any }}]\n",
        VISIBILITY.as_secs()
    )
}

/// A client of a node, which connects when it is first used.
pub(super) fn client(nodes: &FaultyNodes, number: u64) -> QueueServiceClient<Channel> {
    QueueServiceClient::new(nodes.channel(number))
}

/// Puts items, each until it is known to be in the queue, or to be refused.
pub(super) async fn produce(number: u64, nodes: Arc<FaultyNodes>, account: Arc<Account>, until: Instant) {
    let (mut item, mut node) = (0_u64, number);
    while Instant::now() < until {
        let payload = format!("p{number}-{item}");
        item += 1;
        let new = NewItem { payload: payload.clone().into_bytes(), id: payload.clone() };
        loop {
            let request = EnqueueRequest { queue: QUEUE.to_owned(), items: vec![new.clone()] };
            match client(&nodes, node).enqueue(request).await {
                Ok(answer) if answer.get_ref().accepted => {
                    account.accepted(payload);
                    break;
                }
                Ok(_) => tokio::time::sleep(SOON_AGAIN).await,
                Err(_) => {
                    node += 1;
                    tokio::time::sleep(SOON_AGAIN).await;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Works until it is aborted. Every ending of a delivery is noted before it happens.
pub(super) async fn consume(number: u64, nodes: Arc<FaultyNodes>, account: Arc<Account>) {
    let mut random = SmallRng::seed_from_u64(number);
    let mut node = number;
    loop {
        let consumer = format!("worker-{number}");
        let take = TakeRequest {
            queue: QUEUE.to_owned(),
            consumer,
            max_items: Some(4),
            max_wait: prost_types::Duration::try_from(Duration::from_secs(1)).ok(),
        };
        // Until there is an answer, it is not known what was taken; nor if this worker is killed before.
        let asked = account.asks_for(4);
        let Ok(taken) = client(&nodes, node).take(take).await else {
            node += 1;
            tokio::time::sleep(SOON_AGAIN).await;
            continue;
        };
        let items = taken.into_inner().items;
        asked.got(&items);
        for item in items {
            let ending = match random.random_range(0..20) {
                0 => Ending::Forgotten,
                1..3 => Ending::Nacked,
                _ => Ending::Acked,
            };
            let payload = String::from_utf8(item.payload.clone()).unwrap();
            tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
            account.ends(&item, &payload, ending);
            let (queue, ids) = (QUEUE.to_owned(), vec![item.id.clone()]);
            let mut client = client(&nodes, node);
            match ending {
                Ending::Forgotten => {}
                Ending::Nacked => {
                    let delay = prost_types::Duration::try_from(Duration::from_millis(100)).ok();
                    let _ = client.nack(NackRequest { tokens: Vec::new(), queue, ids, delay }).await;
                }
                Ending::Acked => {
                    let _ = client
                        .ack(AckRequest { tokens: Vec::new(), queue, ids, outcome: "done".to_owned() })
                        .await;
                }
            }
        }
    }
}

/// Puts numbers into a list, one after the other. A call whose answer is lost is not made again: it may have been done,
/// or may still be done later, when Redis reads what a killed node had sent. Which numbers these are.
pub(super) async fn write_the_line(nodes: Arc<FaultyNodes>, until: Instant) -> HashSet<u64> {
    let (mut number, mut unanswered) = (0_u64, HashSet::new());
    while Instant::now() < until {
        let items = vec![NewItem { payload: number.to_string().into_bytes(), id: String::new() }];
        let request = EnqueueRequest { queue: LINE.to_owned(), items };
        if client(&nodes, number).enqueue(request).await.is_err() {
            unanswered.insert(number);
        }
        number += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    unanswered
}

/// Takes the numbers out, in the order in which they come.
pub(super) async fn read_the_line(nodes: Arc<FaultyNodes>, until: Instant) -> Vec<u64> {
    let (mut numbers, mut node) = (Vec::new(), 0);
    while Instant::now() < until {
        let max_wait = prost_types::Duration::try_from(Duration::from_secs(1)).ok();
        let take =
            TakeRequest { queue: LINE.to_owned(), consumer: "r".to_owned(), max_items: Some(10), max_wait };
        let Ok(taken) = client(&nodes, node).take(take).await else {
            node += 1;
            tokio::time::sleep(SOON_AGAIN).await;
            continue;
        };
        let items = taken.into_inner().items.into_iter();
        numbers.extend(items.map(|item| String::from_utf8(item.payload).unwrap().parse::<u64>().unwrap()));
    }
    numbers
}

/// Whatever is killed, no number comes twice, and those that were known to be in the list before the next one was put
/// come in order.
pub(super) fn check_the_line(numbers: &[u64], unanswered: &HashSet<u64>) {
    let distinct: HashSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len(), "a number came twice: {numbers:?}");
    let answered: Vec<_> = numbers.iter().filter(|number| !unanswered.contains(number)).collect();
    assert!(!answered.is_empty(), "no number came");
    for pair in answered.windows(2) {
        assert!(pair[0] < pair[1], "{} after {}, and both calls were answered", pair[1], pair[0]);
    }
    println!(
        "the list: {} numbers in order, and {} of {} whose call had no answer",
        answered.len(),
        numbers.len() - answered.len(),
        unanswered.len()
    );
}
