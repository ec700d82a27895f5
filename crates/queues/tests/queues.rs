//! Bounded queues: the pure state machine, the memory store, a real Redis and a real cluster answer alike.

mod archive;
mod clock_steps;
mod differential;
mod operate;
mod operators;
mod redis;
mod rows;
mod service;
mod steps;
mod waiting;

use crate::support::queues as world;
