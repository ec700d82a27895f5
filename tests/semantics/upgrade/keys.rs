//! All that is in a Redis, as JSON, and back.
//!
//! Of a key that expires only that it does: how long it lives is the subject of `ttl.rs` and of the tests of leases and
//! queues. Of an item that a worker has, the time and the count that Redis keeps itself are left out: no script reads them.

use redis::{Connection, Value};
use serde_json::{Value as Json, json};

use super::bytes::{bytes_of, json_of};
use crate::support::RedisServer;

type Bytes = Vec<u8>;

/// The id of no entry in a stream.
const NO_ID: &str = "0-0";

/// Every key, in the order of names.
pub(super) fn dump(redis: &RedisServer, connection: &mut Connection) -> Vec<Json> {
    redis.keys().iter().map(|name| dump_key(connection, name)).collect()
}

/// The same without the numbers that a node draws at random to tell parts of holds apart.
pub(super) fn without_marks(keys: &[Json]) -> Vec<Json> {
    let mut keys = keys.to_vec();
    for key in &mut keys {
        let kind = key["key"]
            .as_str()
            .and_then(|name| name.split_once('}'))
            .map(|(_, rest)| rest.trim_start_matches(':'));
        // The first number of parts, and the sixth of each entry of a record.
        let (first, every) = match kind.and_then(|rest| rest.chars().next()) {
            Some('O') => (0, usize::MAX),
            Some('T') => (12, 6),
            _ => continue,
        };
        let numbers = key["value"].as_array_mut().unwrap();
        for mark in numbers.iter_mut().skip(first).step_by(every).filter(|mark| **mark != 0) {
            *mark = json!("drawn");
        }
    }
    keys
}

fn dump_key(connection: &mut Connection, name: &str) -> Json {
    let kind: String = ask(connection, &["TYPE", name]);
    let value = match kind.as_str() {
        "string" => json_of(&ask::<Bytes>(connection, &["GET", name])),
        "list" => array(ask(connection, &["LRANGE", name, "0", "-1"])),
        "hash" => {
            let mut fields: Vec<(Bytes, Bytes)> = ask(connection, &["HGETALL", name]);
            fields.sort();
            Json::Array(fields.iter().map(|(field, value)| json!([json_of(field), json_of(value)])).collect())
        }
        "zset" => array(ask(connection, &["ZRANGE", name, "0", "-1", "WITHSCORES"])),
        "stream" => dump_stream(connection, name),
        other => panic!("{name} is a {other}"),
    };
    let expires = ask::<i64>(connection, &["PTTL", name]) >= 0;
    json!({ "key": name, "kind": kind, "value": value, "expires": expires })
}

fn dump_stream(connection: &mut Connection, name: &str) -> Json {
    let entries: Vec<(String, Vec<Bytes>)> = ask(connection, &["XRANGE", name, "-", "+"]);
    let entries: Vec<Json> = entries.into_iter().map(|(id, parts)| json!([id, array(parts)])).collect();
    let about: Vec<Value> = ask(connection, &["XINFO", "STREAM", name]);
    let groups: Vec<Vec<Value>> = ask(connection, &["XINFO", "GROUPS", name]);
    let groups: Vec<Json> = groups
        .iter()
        .map(|group| {
            let of = text_of(group, "name");
            let pending: Vec<(String, String, i64, i64)> =
                ask(connection, &["XPENDING", name, &of, "-", "+", "1000"]);
            let pending: Vec<Json> = pending.iter().map(|(id, who, _, _)| json!([id, who])).collect();
            json!({ "name": of, "last": text_of(group, "last-delivered-id"), "pending": pending })
        })
        .collect();
    json!({ "entries": entries, "last": text_of(&about, "last-generated-id"), "groups": groups })
}

/// The value of a name in a reply of names and values.
fn text_of(reply: &[Value], name: &str) -> String {
    let is_name = |value: &Value| matches!(value, Value::BulkString(bytes) if bytes == name.as_bytes());
    let place = reply.iter().position(is_name).unwrap_or_else(|| panic!("Redis says no {name}"));
    redis::from_redis_value(reply[place + 1].clone()).unwrap()
}

fn array(parts: Vec<Bytes>) -> Json {
    Json::Array(parts.iter().map(|part| json_of(part)).collect())
}

/// Writes a key of [`dump`].
pub(super) fn restore(connection: &mut Connection, key: &Json) {
    let name = key["key"].as_str().unwrap();
    let value = &key["value"];
    let each = || value.as_array().unwrap().iter();
    match key["kind"].as_str().unwrap() {
        "string" => run(connection, "SET", name, [bytes_of(value)]),
        "list" => run(connection, "RPUSH", name, each().map(bytes_of)),
        "hash" => {
            run(connection, "HSET", name, each().flat_map(|pair| [bytes_of(&pair[0]), bytes_of(&pair[1])]))
        }
        "zset" => {
            let pairs: Vec<Bytes> = each().map(bytes_of).collect();
            run(
                connection,
                "ZADD",
                name,
                pairs.chunks(2).flat_map(|pair| [pair[1].clone(), pair[0].clone()]),
            );
        }
        "stream" => restore_stream(connection, name, value),
        other => panic!("{name} is a {other}"),
    }
    if key["expires"] == true {
        run(connection, "PEXPIRE", name, [b"3600000".to_vec()]);
    }
}

fn restore_stream(connection: &mut Connection, name: &str, value: &Json) {
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    let last = text(&value["last"]);
    if last != NO_ID {
        // An entry that goes again leaves a stream without entries.
        let _: Value = ask(connection, &["XADD", name, "0-1", "p", ""]);
        let _: Value = ask(connection, &["XDEL", name, "0-1"]);
    }
    for entry in value["entries"].as_array().unwrap() {
        let parts = entry[1].as_array().unwrap().iter().map(bytes_of);
        run(connection, "XADD", name, std::iter::once(text(&entry[0]).into_bytes()).chain(parts));
    }
    for group in value["groups"].as_array().unwrap() {
        let of = text(&group["name"]);
        let _: Value = ask(connection, &["XGROUP", "CREATE", name, &of, &text(&group["last"]), "MKSTREAM"]);
        for pending in group["pending"].as_array().unwrap() {
            let (id, who) = (text(&pending[0]), text(&pending[1]));
            let claim = ["XCLAIM", name, &of, &who, "0", &id, "FORCE", "JUSTID"];
            let claimed: Vec<String> = ask(connection, &claim);
            assert_eq!(claimed, [id]);
        }
    }
    if last != NO_ID {
        let _: Value = ask(connection, &["XSETID", name, &last]);
    }
}

fn run(connection: &mut Connection, command: &str, name: &str, args: impl IntoIterator<Item = Bytes>) {
    let mut command = redis::cmd(command);
    command.arg(name);
    for arg in args {
        command.arg(arg);
    }
    let _: Value = command.query(connection).unwrap();
}

fn ask<T: redis::FromRedisValue>(connection: &mut Connection, command: &[&str]) -> T {
    redis::cmd(command[0])
        .arg(&command[1..])
        .query(connection)
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
