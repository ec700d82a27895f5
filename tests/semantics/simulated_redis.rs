//! The servers of weir-simulator are what they stand for: they decide as the pure driver does, and reply as a real Redis does.
//!
//! A program that takes the place of `redis-server` serves one on a socket. It is this program again.

mod commands;
#[path = "../support/simulated_redis.rs"]
mod front;

use self::front::FrontMode;

/// The tests that use scripts and plain commands only.
const TESTS: [&str; 5] =
    ["approximate::", "denials::", "differential::redis", "differential::a_", "vectors::"];

#[test]
fn it_decides_as_redis_does() {
    front::passes("it_decides_as_redis_does", FrontMode::Alone, &TESTS);
}

/// Each request of these goes to both, and an answer that differs is an error. They tell the scripts the time: the clocks of
/// two servers differ by microseconds.
#[test]
fn it_replies_to_scripts_as_redis_does() {
    front::passes("it_replies_to_scripts_as_redis_does", FrontMode::Beside, &["differential::redis"]);
}
