//! The rights that docs/redis.md lists, and a Redis whose user has them.

use std::sync::LazyLock;

use redis::Value;

use crate::RedisServer;

/// Read at run time: the image is built without docs/.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis.md")).unwrap()
});

/// The list of the document that has this right, without keys.
pub fn listed_with(right: &str) -> Vec<&'static str> {
    let lists = DOCUMENT.split('`').map(|text| text.split(' ').filter(|word| word.starts_with('+')));
    let mut lists = lists.map(Iterator::collect::<Vec<_>>);
    let found = lists.find(|list| list.len() > 1 && list.contains(&right));
    found.unwrap_or_else(|| panic!("docs/redis.md lists no {right}"))
}

/// The rights of decisions.
pub fn of_decisions() -> Vec<&'static str> {
    listed_with("+evalsha")
}

/// The rights that leases need besides.
pub fn of_leases() -> Vec<&'static str> {
    listed_with("+zscore")
}

/// The rights that queues need besides.
pub fn of_queues() -> Vec<&'static str> {
    listed_with("+xadd")
}

/// The rights that usage needs besides.
pub fn of_usage() -> Vec<&'static str> {
    listed_with("+hgetall")
}

/// The rights of strategies that nodes count on their own.
pub fn of_counters() -> Vec<&'static str> {
    listed_with("+pexpire")
}

/// The rights that the comparison of limits between nodes needs besides.
pub fn of_comparison() -> Vec<&'static str> {
    [of_usage(), vec!["+hmget"]].concat()
}

/// The rights that live control needs besides.
pub fn of_control() -> Vec<&'static str> {
    listed_with("+hscan")
}

/// Makes a user who may touch the keys of Weir, with all these rights and none besides.
pub fn add_user(redis: &RedisServer, user: &str, password: &str, rights: &[&str]) -> Value {
    let password = format!(">{password}");
    redis.cli(&[&["ACL", "SETUSER", user, "reset", "on", &password, "~weir:*"], rights].concat())
}

/// Gives a user a right, or several.
pub fn grant(redis: &RedisServer, user: &str, rights: &[&str]) {
    redis.cli(&[&["ACL", "SETUSER", user], rights].concat());
}

/// Takes one right away. Redis takes no subcommand away, but the command that it is of.
pub fn withdraw(redis: &RedisServer, user: &str, right: &str) {
    let command = right.trim_start_matches('+').split('|').next().unwrap_or_default();
    redis.cli(&["ACL", "SETUSER", user, &format!("-{command}")]);
}
