//! A queue while workers, nodes of Weir and a Redis with `appendfsync always` are killed and frozen at random, and calls to
//! Redis and replies are lost: no accepted item is lost, and each delivery above the first has a cause that somebody has
//! noted.
//!
//! `WEIR_KILL_SECONDS` says for how long; a minute by default.

mod account;
mod cast;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::spawn_blocking;
use weir_proto::v1::{AckRequest, StatsRequest, StatsResponse, TakeRequest};

use self::account::{Account, LogLine};
use self::cast::{
    QUEUE, check_the_line, client, configuration, consume, produce, read_the_line, write_the_line,
};
use crate::support::faulty_nodes::{FAULTS, Fault, FaultyNodes, SOON_AGAIN};

/// How many workers take items.
const WORKERS: u64 = 6;

fn span() -> Duration {
    let seconds = std::env::var("WEIR_KILL_SECONDS").map_or(60, |text| text.parse().expect("seconds"));
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn nothing_is_lost_whatever_is_killed() {
    let nodes = Arc::new(FaultyNodes::start(&configuration(), LogLine::WORDS));
    let account = Arc::new(Account::default());
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let until = Instant::now() + span();

    let producers =
        [0, 1].map(|number| tokio::spawn(produce(number, Arc::clone(&nodes), Arc::clone(&account), until)));
    let line = tokio::spawn(write_the_line(Arc::clone(&nodes), until));
    let reader = tokio::spawn(read_the_line(Arc::clone(&nodes), until + Duration::from_secs(5)));
    let work = |number| tokio::spawn(consume(number, Arc::clone(&nodes), Arc::clone(&account)));
    let mut workers: Vec<_> = (0..WORKERS).map(work).collect();
    let mut next_worker = WORKERS;
    let (mut killed_workers, mut faults) = (0, [0; FAULTS.len()]);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(random.random_range(50..1_200))).await;
        if random.random_bool(0.5) {
            let index = random.random_range(0..workers.len());
            account.note("a worker was killed");
            workers[index].abort();
            workers[index] = work(next_worker);
            next_worker += 1;
            killed_workers += 1;
        } else {
            let fault = random.random_range(0..FAULTS.len());
            let is_kill = FAULTS[fault] == Fault::NodeKilled;
            account.note(if is_kill { "a node of Weir was killed" } else { "something else failed" });
            let (node, lasts) =
                (random.random_range(0..2), Duration::from_millis(random.random_range(0..800)));
            let nodes = Arc::clone(&nodes);
            spawn_blocking(move || nodes.inflict(FAULTS[fault], node, lasts)).await.unwrap();
            faults[fault] += 1;
        }
    }
    for producer in producers {
        producer.await.unwrap();
    }
    let unanswered = line.await.unwrap();
    check_the_line(&reader.await.unwrap(), &unanswered);
    let stats = drained(&nodes).await;
    for worker in &workers {
        worker.abort();
    }
    account.take_dead_letters(bury(&nodes).await);
    let faults: Vec<_> =
        FAULTS.iter().zip(faults).map(|(fault, count)| format!("{fault:?} {count}")).collect();
    println!("WorkerKilled {killed_workers}, {}", faults.join(", "));
    let log = spawn_blocking(move || nodes.stop()).await.unwrap();
    account.check(&stats, &log.iter().filter_map(|line| LogLine::read(line)).collect::<Vec<_>>());
}

/// How the queue stands once all its work is done.
async fn drained(nodes: &FaultyNodes) -> StatsResponse {
    let began = Instant::now();
    loop {
        let request = StatsRequest { queue: QUEUE.to_owned(), outcomes: 0 };
        if let Ok(stats) = client(nodes, 0).stats(request).await {
            let stats = stats.into_inner();
            if stats.depth == 0 {
                return stats;
            }
            assert!(began.elapsed() < Duration::from_secs(300), "it does not become empty: {stats:?}");
        }
        tokio::time::sleep(SOON_AGAIN).await;
    }
}

/// The payloads of all dead letters.
async fn bury(nodes: &FaultyNodes) -> Vec<String> {
    let queue = format!("{QUEUE}:dead");
    let mut payloads = Vec::new();
    let mut client = client(nodes, 0);
    loop {
        let take = TakeRequest {
            queue: queue.clone(),
            consumer: "undertaker".to_owned(),
            max_items: Some(100),
            max_wait: None,
        };
        let items = client.take(take).await.unwrap().into_inner().items;
        if items.is_empty() {
            return payloads;
        }
        let ids = items.iter().map(|item| item.id.clone()).collect();
        client
            .ack(AckRequest { tokens: Vec::new(), queue: queue.clone(), ids, outcome: String::new() })
            .await
            .unwrap();
        payloads.extend(items.into_iter().map(|item| String::from_utf8(item.payload).unwrap()));
    }
}
