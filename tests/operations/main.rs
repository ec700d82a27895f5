//! The program as operators meet it: the command line, configuration, failures, metrics, logs, deployment; and the
//! rules of the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod access;
mod admin_port;
mod allow;
mod approximate;
mod architecture;
#[cfg(all(feature = "control", feature = "leases", feature = "queues"))]
mod audit;
mod by_hand;
mod check;
mod cli;
mod config;
#[cfg(feature = "control")]
mod control;
#[cfg(feature = "envoy")]
mod decision_log;
mod deploy;
#[cfg(feature = "envoy")]
mod envoy_config;
mod explain;
mod failure;
mod fair_waiting;
mod first_minutes;
mod gather;
mod generated;
#[cfg(feature = "http")]
mod http_crowds;
mod load;
mod local;
mod logs;
#[cfg(feature = "leases")]
mod long_faults;
mod long_floods;
mod long_hostile_files;
#[cfg(feature = "queues")]
mod long_queue_kills;
mod long_redis_6;
#[cfg(feature = "control")]
mod long_reload;
mod long_soak;
mod long_stalls;
#[cfg(feature = "control")]
mod long_swap;
#[cfg(feature = "usage")]
mod long_timeseries;
mod long_valkey;
mod metrics;
mod namespace;
mod open_files;
mod outage;
mod page_commands;
mod placement;
#[cfg(feature = "queues")]
mod queue_cli;
#[cfg(feature = "envoy")]
mod ratelimit;
mod redis_health;
mod reload;
mod replay;
mod service_manager;
mod short_deadlines;
mod simulate;
#[path = "../support/support.rs"]
mod support;
mod test_clock;
mod tls;
#[cfg(feature = "usage")]
mod ui;
#[cfg(feature = "usage")]
mod usage;
