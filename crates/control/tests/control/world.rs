//! Links to the records of live control in the servers that tests share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_config::{RedisConfig, Topology};
use weir_control::model::{ControlPut, ControlRecord};
use weir_control::store::ControlLink;
use weir_core::key::{KeySecret, Namespace};
use weir_store::redis::RedisShared;
use weir_time::clock::{Clock, ManualClock};

use crate::support;

/// 2026, so that days can be taken away.
pub const START: u64 = 1_790_000_000_000_000;

pub const HOUR: u64 = 3_600_000_000;

/// A link in a namespace that no other test uses.
pub async fn link(topology: Topology, clock: &ManualClock) -> ControlLink {
    static NAMESPACES: AtomicU64 = AtomicU64::new(0);
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    let namespace = Namespace::new(&format!("c{run:x}-{}", NAMESPACES.fetch_add(1, Relaxed))).unwrap();
    let nodes = match topology {
        Topology::Cluster => support::shared_cluster().urls(),
        _ => vec![support::shared_redis().url()],
    };
    let config = RedisConfig { namespace, ..support::redis_config(nodes, topology) };
    let shared = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::Manual(clock.clone()));
    support::watched(&shared).await;
    ControlLink::open(&shared.scripts())
}

pub fn put(key: &str, change: u64) -> ControlPut {
    let body = Some(change.to_be_bytes().into());
    ControlPut {
        key: key.into(),
        expect: None,
        change,
        expires_after: None,
        body,
        tombstone: [].into(),
        generation: None,
    }
}

pub fn record(key: &str, version: u64) -> ControlRecord {
    let body = (*b"body").into();
    ControlRecord { key: key.into(), version, change: version ^ 7, expires_at: 0, deleted: false, body }
}
