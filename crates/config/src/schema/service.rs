//! The sections of the file, and the keys of a queue.

use weir_core::queue::{MAX_CAPACITY, MAX_DELIVERIES, MAX_PAYLOAD, MAX_QUEUE_BYTES};

use super::super::table::{DenialMessages, EnvoyConfig, ServerConfig, UsageConfig, log as log_keys};
use super::kinds::ValueKind::{Boolean, Choice, Count, Defined, Duration, Rate, Section, Size};
use super::kinds::{Key, may, must};

pub(super) const ROOT: &[Key] = &[
    may("server", Section(ServerConfig::rows), "Sockets, workers and bounds."),
    may("store", Defined("store"), "Where state lives: memory (the default) or redis."),
    may("strategies", Defined("strategies"), "Named lists of limits that decide together."),
    may("resources", Defined("resources"), "Which strategy a resource has when the caller names none."),
    may("groups", Defined("groups"), "Which routing groups must lie on different shards of a cluster."),
    may("overrides", Defined("overrides"), "Other numbers for some consumers; a pattern makes a tier."),
    may("access", Defined("access"), "Who is denied or let through, whatever the strategy."),
    may("queues", Defined("queues"), "Bounded queues: work that waits for workers."),
    may("messages", Section(DenialMessages::rows), "The sentences for people on denial."),
    may("envoy", Section(EnvoyConfig::rows), "Envoy's rate limit service."),
    may("log", Section(log_keys::rows), "Logs of decisions, beside the log on stderr."),
    may("usage", Section(UsageConfig::rows), "What is kept of decisions, and who may see it."),
];

pub(super) const QUEUE: &[Key] = &[
    must("capacity", Count(1, MAX_CAPACITY), "How many items hold a place."),
    may("max_bytes", Size(MAX_PAYLOAD, MAX_QUEUE_BYTES as usize), "Bytes of their payloads.").or("64MiB"),
    may("rate", Rate, "How fast items leave; left out, as fast as they are taken."),
    may("kind", Choice(&["stream", "list"]), "At least once, with acks; or at most once, without.")
        .or("stream"),
    may(
        "visibility",
        Duration,
        "How long a worker has until its item is delivered again, and how long ids are known; 1ms to 24h.",
    )
    .or("30s"),
    may("max_deliveries", Count(1, MAX_DELIVERIES), "After so many an item goes to the dead letters.")
        .or("5"),
    may(
        "dead_letter",
        Boolean,
        "Whether there are dead letters; if not, items are delivered until they are acked.",
    )
    .or("true"),
    may("outcomes", Duration, "How long the outcomes of acked items are kept; 0s to 30d.").or("24h"),
];
