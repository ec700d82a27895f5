//! Tests of Envoy's rate limits: the files, and a service in this process that filters ask.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time

mod envoy_config;
mod rls;
mod support;
