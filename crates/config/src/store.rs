//! The `store` section: memory or Redis, and the settings of memory.

use weir_core::key::{KeySecret, Namespace};

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::redis::redis;
use super::table::{MIN_SHARE, MemoryConfig, RedisConfig, redis as redis_keys, store as store_keys};

/// The store of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // a process has one of these
pub enum StoreConfig {
    /// The memory of this process.
    Memory(MemoryConfig),
    /// Redis or Valkey.
    Redis(RedisConfig),
}

/// The parsed section.
pub(super) struct StoreSection {
    pub(super) store: StoreConfig,
    pub(super) key_secret: Option<KeySecret>,
    pub(super) namespace: Namespace,
    /// Number of shards of the cluster.
    pub(super) shards: Option<u16>,
}

/// Reads the `store` section, with the settings that override it.
pub(super) fn store(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> StoreSection {
    let key_secret = fields.value(store_keys::KEY_SECRET, &overrides.given, report);
    let namespace = fields.value(store_keys::NAMESPACE, &overrides.given, report);
    let (memory, redis) = (fields.section("memory", report), fields.section("redis", report));
    if memory.is_present() && redis.is_present() {
        fields.report("redis", report, "there is a `memory` store too; a service has one store");
    }
    fields.finish(report);

    let redis_in_file = redis.is_present();
    let use_redis = match overrides.given.get(&store_keys::STORE).text {
        Some(text) => text.trim() != "memory",
        None => redis_in_file,
    };
    let (unused, reason) = if use_redis {
        (MemoryConfig::rows(), "is for the memory store, but the store is Redis")
    } else {
        let redis = RedisConfig::rows().into_iter().chain(redis_keys::tls_rows());
        (redis.collect(), "is for Redis, but the store is memory")
    };
    for setting in unused {
        let given = overrides.given.get(&setting.outside);
        if given.text.is_some() {
            given.report("store", report, reason.to_owned());
        }
    }
    // Both are read if both are present, so that choosing one hides no mistake of the other.
    let none = overrides.without_values();
    let memory = self::memory(memory, if use_redis { &none } else { overrides }, report);
    let redis = if use_redis {
        Some(self::redis(redis, overrides, namespace.clone(), report))
    } else {
        redis_in_file.then(|| self::redis(redis, &none, namespace.clone(), report))
    };
    let shards = redis.as_ref().and_then(|redis| redis.placements.shards());
    let redis = redis.filter(|_| use_redis);
    let store = redis.map_or(StoreConfig::Memory(memory), StoreConfig::Redis);
    StoreSection { store, key_secret, namespace, shards }
}

fn memory(mut fields: Mapping<'_>, overrides: &ConfigOverrides, report: &mut MistakeReport) -> MemoryConfig {
    let memory = MemoryConfig::read(&mut fields, &overrides.given, report);
    let budget = memory.budget;
    if let Some(share) = memory.share.filter(|share| !(MIN_SHARE..=budget).contains(share)) {
        let reason = format!(
            "{share} bytes is out of bounds: it must be at least 64KiB and at most the budget, {budget} bytes"
        );
        fields.report("share", report, reason);
    }
    if let Some(share) = memory.id_share.filter(|share| !(MIN_SHARE..=budget / 2).contains(share)) {
        let half = budget / 2;
        let reason = format!(
            "{share} bytes is out of bounds: it must be at least 64KiB and at most half of the budget, {half} bytes"
        );
        fields.report("id_share", report, reason);
    }
    fields.finish(report);
    memory
}
