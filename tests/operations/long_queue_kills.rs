//! A queue while workers, nodes of Weir and a Redis with `appendfsync always` are killed at random: no accepted item is
//! lost, and each delivery above the first has a cause that somebody has noted.
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

use self::account::Account;
use self::cast::{Nodes, QUEUE, SOON_AGAIN, check_the_line, consume, produce, read_the_line, write_the_line};
use crate::support::RedisServer;

/// How many workers take items.
const WORKERS: u64 = 6;

fn span() -> Duration {
    let seconds = std::env::var("WEIR_KILL_SECONDS").map_or(60, |text| text.parse().expect("seconds"));
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn nothing_is_lost_whatever_is_killed() {
    let redis = RedisServer::builder();
    let redis = Arc::new(redis.arg("--appendonly").arg("yes").arg("--appendfsync").arg("always").start());
    let nodes = Arc::new(Nodes::start(&redis));
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
    let mut kills = [0; 3];
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(random.random_range(50..1_200))).await;
        match random.random_range(0..10) {
            0..5 => {
                let index = random.random_range(0..workers.len());
                account.note("a worker was killed");
                workers[index].abort();
                workers[index] = work(next_worker);
                next_worker += 1;
                kills[0] += 1;
            }
            5..8 => {
                account.note("a node of Weir was killed");
                let (nodes, index) = (Arc::clone(&nodes), random.random_range(0..2));
                spawn_blocking(move || nodes.kill_one(index)).await.unwrap();
                kills[1] += 1;
            }
            _ => {
                account.note("Redis was killed");
                redis.kill();
                tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
                let redis = Arc::clone(&redis);
                spawn_blocking(move || redis.restart()).await.unwrap();
                kills[2] += 1;
            }
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
    println!("killed: {} workers, {} times Weir, {} times Redis", kills[0], kills[1], kills[2]);
    let log = spawn_blocking(move || nodes.stop()).await.unwrap();
    account.check(&stats, &log);
}

/// How the queue stands once all its work is done.
async fn drained(nodes: &Nodes) -> StatsResponse {
    let began = Instant::now();
    loop {
        let request = StatsRequest { queue: QUEUE.to_owned(), outcomes: 0 };
        if let Ok(stats) = nodes.client(0).await.stats(request).await {
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
async fn bury(nodes: &Nodes) -> Vec<String> {
    let queue = format!("{QUEUE}:dead");
    let mut payloads = Vec::new();
    let mut client = nodes.client(0).await;
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
