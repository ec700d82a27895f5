//! The `store` section: memory, or how Redis is reached.

use std::collections::HashSet;

use super::address::redis_url;
use super::errors::Report;
use super::fields::Fields;
use super::overrides::{Overrides, Setting};
use super::quantities::{duration_within, size};
use super::values::{Scalar, choice, integer_within, secret};
use super::{MemoryConfig, RedisConfig, StoreConfig, Topology, WhenFull};
use crate::key::KeySecret;
use crate::units::Micros;

/// The least memory that a store can do something useful with.
const MIN_BUDGET: usize = 1 << 20;

/// The most Redis addresses. Of a cluster a few seeds are enough; it tells the others itself.
const MAX_NODES: usize = 64;

const SHORTEST_WAIT: Micros = Micros::from_millis(1);
const LONGEST_WAIT: Micros = Micros::from_secs(60);

/// The most decisions that may wait for one node. Each holds memory, and its caller's patience.
const MAX_WAITING: usize = 1_000_000;

/// Settings that mean nothing to the other store.
const MEMORY_SETTINGS: [&str; 2] = ["budget", "when_full"];
const REDIS_SETTINGS: [&str; 4] = ["topology", "deadline", "connect_timeout", "max_waiting"];

/// The `store` section with the settings that go before it.
pub(super) fn store(
    mut fields: Fields<'_>,
    settings: &Overrides,
    report: &mut Report,
) -> (StoreConfig, Option<KeySecret>) {
    let key_secret = fields.choose("key_secret", settings.of("key_secret"), report, secret);
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
    let none = Overrides::default();
    let memory = self::memory(memory, if use_redis { &none } else { settings }, report);
    if use_redis {
        (StoreConfig::Redis(self::redis(redis, settings, report)), key_secret)
    } else {
        if redis_in_file {
            self::redis(redis, &none, report);
        }
        (StoreConfig::Memory(memory), key_secret)
    }
}

fn memory(mut fields: Fields<'_>, settings: &Overrides, report: &mut Report) -> MemoryConfig {
    let default = MemoryConfig::default();
    let budget = |s: Scalar<'_>| match size(s)? {
        bytes if bytes < MIN_BUDGET => {
            Err(format!("{bytes} bytes is out of bounds: it must be at least 1MiB"))
        }
        bytes => Ok(bytes),
    };
    let when_full = |s: Scalar<'_>| choice(s, &[("evict", WhenFull::Evict), ("refuse", WhenFull::Refuse)]);
    let memory = MemoryConfig {
        budget: fields.choose("budget", settings.of("budget"), report, budget).unwrap_or(default.budget),
        when_full: fields
            .choose("when_full", settings.of("when_full"), report, when_full)
            .unwrap_or(default.when_full),
    };
    fields.finish(report);
    memory
}

fn redis(mut fields: Fields<'_>, settings: &Overrides, report: &mut Report) -> RedisConfig {
    let default = RedisConfig::default();
    let nodes = nodes(&mut fields, settings.of("store"), report);
    let wait = |s: Scalar<'_>| duration_within(s, SHORTEST_WAIT, LONGEST_WAIT);
    let waiting = |s: Scalar<'_>| integer_within(s, 1, MAX_WAITING);
    let mut chosen = |name, report: &mut Report| fields.choose(name, settings.of(name), report, wait);
    let deadline = chosen("deadline", report).unwrap_or(default.deadline);
    let connect_timeout = chosen("connect_timeout", report).unwrap_or(default.connect_timeout);
    let max_waiting = fields.choose("max_waiting", settings.of("max_waiting"), report, waiting);
    let age = |s: Scalar<'_>| duration_within(s, Micros::ZERO, LONGEST_WAIT);
    let denials_max_age = fields.read("denials_max_age", report, age);
    // A mistaken topology is told once, and not taken for the default one.
    let given = settings.of("topology").text.is_some() || fields.take("topology").is_some();
    let chosen = fields.choose("topology", settings.of("topology"), report, topology);
    let topology = chosen.unwrap_or(default.topology);
    if topology == Topology::Single && nodes.len() > 1 && given == chosen.is_some() {
        let reason = format!(
            "{} addresses are given, but `topology: single` has one; say `topology: cluster` if they are \
             one cluster",
            nodes.len()
        );
        let setting = [settings.of("topology"), settings.of("store")].into_iter().find(|s| s.text.is_some());
        match setting {
            Some(setting) => setting.report(&fields.path_of("topology"), report, reason),
            None => fields.report("nodes", report, reason),
        }
    }
    fields.finish(report);
    let max_waiting = max_waiting.unwrap_or(default.max_waiting);
    let denials_max_age = denials_max_age.unwrap_or(default.denials_max_age);
    RedisConfig { nodes, topology, deadline, connect_timeout, max_waiting, denials_max_age }
}

fn topology(scalar: Scalar<'_>) -> Result<Topology, String> {
    if scalar.text == "sentinel" {
        return Err("`sentinel` is not supported yet".to_owned());
    }
    choice(scalar, &[("single", Topology::Single), ("cluster", Topology::Cluster)])
}

/// The addresses of the setting, else those of the file.
fn nodes(fields: &mut Fields<'_>, setting: Setting<'_>, report: &mut Report) -> Vec<String> {
    let from_file = match setting.text {
        Some(_) => fields.take("nodes"),
        None => fields.require("nodes", "list addresses, such as [\"redis://127.0.0.1:6379\"]", report),
    };
    let mut nodes = Vec::new();
    if let Some((value, items)) = from_file.and_then(|value| Some((value.clone(), value.items(report)?))) {
        if let Some(reason) = wrong_count(items.len()) {
            value.report(report, reason);
        }
        let mut seen = HashSet::new();
        for item in items.iter().take(MAX_NODES) {
            nodes.extend(item.read(report, |s| once(redis_url(s)?, &mut seen)));
        }
    }
    if let Some(text) = setting.text {
        let path = fields.path_of("nodes");
        let given: Vec<&str> = text.split(',').map(str::trim).filter(|url| !url.is_empty()).collect();
        if let Some(reason) = wrong_count(given.len()) {
            setting.report(&path, report, reason);
        }
        let mut seen = HashSet::new();
        nodes.clear();
        for text in given.into_iter().take(MAX_NODES) {
            match redis_url(Scalar { text, quoted: false }).and_then(|url| once(url, &mut seen)) {
                Ok(url) => nodes.push(url),
                Err(reason) => setting.report(&path, report, reason),
            }
        }
    }
    nodes
}

fn wrong_count(count: usize) -> Option<String> {
    match count {
        0 => Some("names no address; give at least one, such as redis://127.0.0.1:6379".to_owned()),
        count if count > MAX_NODES => Some(format!("has {count} addresses: at most {MAX_NODES}")),
        _ => None,
    }
}

fn once(url: String, seen: &mut HashSet<String>) -> Result<String, String> {
    if seen.insert(url.clone()) { Ok(url) } else { Err(format!("{url} is listed twice")) }
}
