//! The `store` section: memory or Redis, and what is memory's.

use weir_core::key::{KeySecret, Namespace};

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::quantities::size;
use super::redis::{SETTINGS as REDIS_SETTINGS, redis};
use super::values::{Scalar, choice, quote, secret};
use super::{MemoryConfig, StoreConfig, WhenFull};

/// The least memory that a store can do something useful with.
pub(super) const MIN_BUDGET: usize = 1 << 20;

/// The least share of a strategy: about a thousand keys.
pub(super) const MIN_SHARE: usize = 64 << 10;

/// Settings that mean nothing to Redis.
const MEMORY_SETTINGS: [&str; 2] = ["budget", "when_full"];

/// What the section says.
pub(super) struct StoreSection {
    pub(super) store: StoreConfig,
    pub(super) key_secret: Option<KeySecret>,
    pub(super) namespace: Namespace,
    /// How many shards the cluster has.
    pub(super) shards: Option<u16>,
}

/// The `store` section with the settings that go before it.
pub(super) fn store(
    mut fields: Mapping<'_>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> StoreSection {
    let key_secret = fields.choose("key_secret", settings.of("key_secret"), report, secret);
    let namespace = fields.read("namespace", report, namespace).unwrap_or_default();
    let (memory, redis) = (fields.section("memory", report), fields.section("redis", report));
    if memory.is_present() && redis.is_present() {
        fields.report("redis", report, "there is a `memory` store too; a service has one store");
    }
    fields.finish(report);

    let redis_in_file = redis.is_present();
    let setting = settings.of("store");
    let use_redis = match setting.text {
        Some(text) => text.trim() != "memory",
        None => redis_in_file,
    };
    let (unused, reason): (&[&str], _) = if use_redis {
        (&MEMORY_SETTINGS, "is for the memory store, but the store is Redis")
    } else {
        (&REDIS_SETTINGS, "is for Redis, but the store is memory")
    };
    for setting in unused.iter().map(|name| settings.of(name)).filter(|setting| setting.text.is_some()) {
        setting.report("store", report, reason.to_owned());
    }
    // Both are read where both are there: a setting that picks one hides no mistake of the other.
    let none = ConfigOverrides { tls_check: settings.tls_check, ..ConfigOverrides::default() };
    let memory = self::memory(memory, if use_redis { &none } else { settings }, report);
    let redis = if use_redis {
        Some(self::redis(redis, settings, namespace.clone(), report))
    } else {
        redis_in_file.then(|| self::redis(redis, &none, namespace.clone(), report))
    };
    let shards = redis.as_ref().and_then(|redis| redis.placements.shards());
    let redis = redis.filter(|_| use_redis);
    let store = redis.map_or(StoreConfig::Memory(memory), StoreConfig::Redis);
    StoreSection { store, key_secret, namespace, shards }
}

fn namespace(scalar: Scalar<'_>) -> Result<Namespace, String> {
    Namespace::new(scalar.text).map_err(|error| format!("{} is no namespace: {error}", quote(scalar.text)))
}

fn memory(mut fields: Mapping<'_>, settings: &ConfigOverrides, report: &mut MistakeReport) -> MemoryConfig {
    let default = MemoryConfig::default();
    let budget = |s: Scalar<'_>| match size(s)? {
        bytes if bytes < MIN_BUDGET => {
            Err(format!("{bytes} bytes is out of bounds: it must be at least 1MiB"))
        }
        bytes => Ok(bytes),
    };
    let when_full = |s: Scalar<'_>| choice(s, &[("evict", WhenFull::Evict), ("refuse", WhenFull::Refuse)]);
    let budget = fields.choose("budget", settings.of("budget"), report, budget).unwrap_or(default.budget);
    let share = |s: Scalar<'_>| match size(s)? {
        bytes if !(MIN_SHARE..=budget).contains(&bytes) => Err(format!(
            "{bytes} bytes is out of bounds: it must be at least 64KiB and at most the budget, {budget} bytes"
        )),
        bytes => Ok(bytes),
    };
    let memory = MemoryConfig {
        budget,
        when_full: fields
            .choose("when_full", settings.of("when_full"), report, when_full)
            .unwrap_or(default.when_full),
        share: fields.read("share", report, share),
    };
    fields.finish(report);
    memory
}
