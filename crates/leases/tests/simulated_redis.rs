//! The server of weir-simulator keeps leases as a real Redis does. It is this program again.

#[path = "../../../tests/support/simulated_redis.rs"]
mod front;

use self::front::FrontMode;

#[test]
fn it_decides_as_redis_does() {
    let tests = ["leases::differential", "leases::rows"];
    front::passes("it_decides_as_redis_does", FrontMode::Alone, &tests);
}

/// Not the rows: the clocks of two servers differ by microseconds, and these tell the scripts the time.
#[test]
fn it_replies_to_scripts_as_redis_does() {
    front::passes("it_replies_to_scripts_as_redis_does", FrontMode::Beside, &["leases::differential"]);
}
