//! The load of most rows.

use std::time::Duration;

use weir_load::{CallMode, CallProtocol, Pace, Plan, PlanEnd, PlannedQuestion, ServerAccess, Spread};

use crate::Effort;
use crate::processes::Process;

/// So few calls a second that the service mostly waits.
pub const FEW: f64 = 10_000.0;

/// Calls that are made when they are due, so many a second.
pub fn open(plan: &Plan, rate: f64) -> Plan {
    Plan { pace: Pace::Open(rate), in_flight: 1_024, ..plan.clone() }
}

/// 8 connections, 128 calls in flight: enough to keep the service busy, not so many that they only wait.
pub fn plan(effort: Effort, server: &Process, redis: &[&Process], resource: &str, keys: u64) -> Plan {
    let ask = PlannedQuestion {
        resources: vec![resource.to_owned()],
        consumer: "user_{key}".to_owned(),
        strategy: String::new(),
        attributes: vec![],
        cost: 1,
        domain: "bench".to_owned(),
        descriptor: vec![("user".to_owned(), "user_{key}".to_owned())],
        keys,
        spread: Spread::Uniform,
    };
    Plan {
        address: std::net::SocketAddr::from(([127, 0, 0, 1], server.port)).into(),
        authority: server.address(),
        access: ServerAccess::default(),
        protocol: CallProtocol::Grpc,
        mode: CallMode::Unary,
        ask,
        connections: 8,
        in_flight: 128,
        threads: 1,
        pace: Pace::Closed,
        warm_up: effort.warm_up,
        end: PlanEnd::After(effort.duration),
        timeout: Duration::from_secs(10),
        seed: 1,
        record: None,
        pids: std::iter::once(server.pid()).chain(redis.iter().map(|redis| redis.pid())).collect(),
    }
}
