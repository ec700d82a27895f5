//! Leases and adaptive limits: the pure state machine, the memory store, a real Redis and a real cluster answer alike.

mod bounds;
mod clock_steps;
mod crowd;
mod differential;
mod memory;
mod operator;
mod redis;
mod rows;
mod service;
mod slower;

use crate::support::leases as world;
