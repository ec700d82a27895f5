//! The server of weir-simulator keeps records and bans as a real Redis does. It is this program again.

#[path = "../../../tests/support/simulated_redis.rs"]
mod front;

use self::front::FrontMode;

/// Not beside a real one: the scripts ask for the time, which is never the same on two servers.
#[test]
fn it_decides_as_redis_does() {
    let tests = ["control::bans", "control::differential"];
    front::passes("it_decides_as_redis_does", FrontMode::Alone, &tests);
}
