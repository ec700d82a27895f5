//! Two nodes and a real Redis in the middle of 1,000 changes: a failover that loses the last ones, FLUSHALL, and a restart
//! with an older snapshot.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_config::{RedisConfig, Sentinel, Topology};
use weir_control::model::{ControlMirror, ControlPosition, ControlPut};
use weir_control::store::{ControlLink, ControlSynced};
use weir_core::key::KeySecret;
use weir_store::redis::RedisShared;
use weir_time::clock::Clock;
use weir_units::Micros;

use super::world::put;
use crate::support::sentinels::Sentinels;
use crate::support::{RedisServer, SOON, eventually, redis_config, watched};

const CHANGES: u64 = 1_000;
const KEYS: u64 = 40;

struct Node {
    link: ControlLink,
    mirror: ControlMirror,
    losses: usize,
    changes: u64,
}

impl Node {
    async fn sync(&mut self) -> Result<ControlSynced, String> {
        let Self { link, mirror, changes, .. } = self;
        let new_change = || {
            *changes += 1;
            *changes
        };
        let synced = link.sync(mirror, new_change).await?;
        self.losses += usize::from(synced.lost.is_some());
        Ok(synced)
    }

    /// Makes a change, whatever happens meanwhile. Returns what was acknowledged.
    async fn change(&mut self, number: u64) -> Option<(Box<str>, ControlPosition)> {
        let key = format!("key {}", number * 7 % KEYS);
        let body = (!number.is_multiple_of(4)).then(|| number.to_be_bytes().into());
        let change = ControlPut { body, ..put(&key, number << 20 | 1) };
        let started = Instant::now();
        let written = loop {
            match self.link.put(&change).await {
                Ok(answer) => break answer.ok()?,
                Err(why) => {
                    assert!(started.elapsed() < SOON * 2, "{why}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        self.mirror.take_acknowledged(&written);
        Some((written[0].key.clone(), written[0].position()))
    }
}

/// The server that the sentinels name.
fn master(sentinels: &Sentinels) -> &RedisServer {
    &sentinels.servers[usize::from(sentinels.name(1))]
}

fn is_master(redis: &RedisServer) -> bool {
    let role: redis::RedisResult<Vec<redis::Value>> = redis.try_query(&["ROLE"]);
    role.is_ok_and(|role| matches!(&role[0], redis::Value::BulkString(role) if role == b"master"))
}

#[tokio::test]
async fn nodes_agree_whatever_redis_loses() {
    let sentinels = Sentinels::start();
    let sentinel = Some(Sentinel { master_name: "zoo".to_owned(), login: None });
    let config = RedisConfig {
        sentinel,
        connect_timeout: Micros::from_secs(1),
        ..redis_config(sentinels.urls(), Topology::Sentinel)
    };
    let shared = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System);
    watched(&shared).await;
    let node = |number: u64| Node {
        link: ControlLink::open(&shared.scripts()),
        mirror: ControlMirror::default(),
        losses: 0,
        changes: number << 50,
    };
    let mut nodes = [node(1), node(2)];
    let mut acknowledged: BTreeMap<Box<str>, ControlPosition> = BTreeMap::new();
    for number in 1..=CHANGES {
        match number {
            // The replica gets nothing of the next 50 changes, and is then the master.
            200 => sentinels.servers[1].freeze(),
            250 => {
                sentinels.servers[0].kill();
                sentinels.servers[1].thaw();
                eventually(SOON * 2, "the replica is the master", || {
                    sentinels.name(1) && is_master(&sentinels.servers[1])
                });
            }
            500 => master(&sentinels).flush_all(),
            700 => {
                master(&sentinels).cli(&["SAVE"]);
            }
            750 => {
                // It was started as a replica.
                let master = master(&sentinels);
                master.restart();
                master.cli(&["REPLICAOF", "NO", "ONE"]);
            }
            _ => {}
        }
        let node = &mut nodes[(number % 2) as usize];
        if let Some((key, position)) = node.change(number).await {
            let newest = acknowledged.entry(key).or_default();
            *newest = position.max(*newest);
        }
        if number % 3 > 0 {
            // What fails is done with the next change.
            let _ = node.sync().await;
        }
    }
    let started = Instant::now();
    loop {
        let (one, other) = (nodes[0].sync().await, nodes[1].sync().await);
        let position = nodes[0].mirror.position();
        if one.is_ok() && other.is_ok() && position == nodes[1].mirror.position() {
            break;
        }
        assert!(started.elapsed() < SOON, "{one:?} {other:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let [one, other] = &mut nodes;
    assert!(one.mirror.records().eq(other.mirror.records()));
    let (records, position) = one.link.read_all().await.unwrap();
    assert_eq!(position, one.mirror.position());
    assert!(one.mirror.records().eq(&records));
    for (key, acknowledged) in acknowledged {
        let record = one.mirror.get(&key).unwrap();
        assert!(record.position() >= acknowledged, "{record:?} {acknowledged:?}");
    }
    println!("losses reported: {} and {}", one.losses, other.losses);
    assert!(one.losses + other.losses >= 3, "each loss is reported");
}
