//! Tests of the HTTP listener, against a node of this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // failures of tests

mod bounds;
mod check;
mod connect;
mod documented;
mod fuzz;
mod identity;
mod json;
mod malformed;
mod openapi;
mod proxies;
mod same_answers;
mod support;
mod traefik;
