//! Behaviour of a server, without a real one beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_units::Micros;

use super::{SimulatedConnection, SimulatedRedis};

const START: u64 = 1_700_000_000_000_000;

fn server() -> (SimulatedRedis, Arc<AtomicU64>) {
    let now = Arc::new(AtomicU64::new(START));
    let own = Arc::clone(&now);
    (SimulatedRedis::new("one", Arc::new(move || Micros(own.load(Ordering::Relaxed)))), now)
}

/// Sends a request, and returns the reply as text.
fn ask(connection: &mut SimulatedConnection, words: &[&str]) -> String {
    let (mut request, mut reply) = (format!("*{}\r\n", words.len()), Vec::new());
    words.iter().for_each(|word| request.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    connection.receive(request.as_bytes(), &mut reply);
    String::from_utf8(reply).unwrap()
}

#[test]
fn keys_go_when_the_clock_of_the_server_says_so() {
    let (redis, now) = server();
    let mut connection = redis.connect();
    assert_eq!(ask(&mut connection, &["SET", "a", "1", "PX", "10"]), "+OK\r\n");
    now.store(START + 10_999, Ordering::Relaxed);
    assert_eq!(ask(&mut connection, &["GET", "a"]), "$1\r\n1\r\n");
    now.store(START + 11_000, Ordering::Relaxed);
    assert_eq!(ask(&mut connection, &["GET", "a"]), "$-1\r\n");
    assert_eq!(ask(&mut connection, &["TIME"]), "*2\r\n$10\r\n1700000000\r\n$5\r\n11000\r\n");
}

#[test]
fn scripts_run_and_errors_name_their_lines() {
    let (redis, _) = server();
    let mut connection = redis.connect();
    let mut eval = |script: &str| ask(&mut connection, &["EVAL", script, "1", "k", "7"]);
    assert_eq!(eval("return redis.call('SET', KEYS[1], ARGV[1])"), "+OK\r\n");
    assert_eq!(eval("return {1.9, false, 'x', {2}, nil, 3}"), "*4\r\n:1\r\n$-1\r\n$1\r\nx\r\n*1\r\n:2\r\n");
    let sha = "4e1f5eb4c4b8d4d7dd39a54b0a9fd1e7cbf4ecd4";
    let error = eval("\nreturn redis.call('HGET', KEYS[1], 'f')");
    assert!(
        error.starts_with("-WRONGTYPE Operation against a key holding the wrong kind of value script: "),
        "{error}"
    );
    assert!(error.ends_with(", on @user_script:2.\r\n"), "{error}");
    assert_eq!(
        ask(&mut connection, &["EVALSHA", sha, "0"]),
        "-NOSCRIPT No matching script. Please use EVAL.\r\n"
    );
}

#[test]
fn a_copy_of_the_data_stays_as_it_was() {
    let (redis, _) = server();
    let mut connection = redis.connect();
    ask(&mut connection, &["RPUSH", "list", "a", "b"]);
    let before = redis.data();
    ask(&mut connection, &["RPUSH", "list", "c"]);
    ask(&mut connection, &["SET", "other", "x"]);
    assert_eq!(ask(&mut connection, &["LLEN", "list"]), ":3\r\n");
    redis.restore(before);
    assert_eq!(ask(&mut connection, &["LLEN", "list"]), ":2\r\n");
    assert_eq!(ask(&mut connection, &["EXISTS", "other"]), ":0\r\n");
    redis.flush();
    assert!(redis.data().is_empty());
}

#[test]
fn scripts_are_watched_in_their_order_and_forgotten() {
    let (redis, _) = server();
    let runs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&runs);
    redis.on_script(Arc::new(move |run| {
        seen.lock().push((
            run.sha.to_owned(),
            run.keys.to_vec(),
            String::from_utf8_lossy(run.reply).into_owned(),
        ));
    }));
    let mut connection = redis.connect();
    let sha = ask(&mut connection, &["SCRIPT", "LOAD", "return #KEYS"])[5..45].to_owned();
    assert_eq!(ask(&mut connection, &["EVALSHA", &sha, "2", "a", "b"]), ":2\r\n");
    assert_eq!(ask(&mut connection, &["EVALSHA", &sha, "0", "a", "b"]), ":0\r\n");
    let keys = vec![b"a".to_vec(), b"b".to_vec()];
    assert_eq!(
        *runs.lock(),
        [(sha.clone(), keys, ":2\r\n".to_owned()), (sha.clone(), vec![], ":0\r\n".to_owned())]
    );
    redis.forget_scripts();
    assert!(ask(&mut connection, &["EVALSHA", &sha, "0"]).starts_with("-NOSCRIPT"));
}

#[test]
fn servers_may_be_used_from_any_thread() {
    fn is_sent<T: Send + Sync>() {}
    is_sent::<SimulatedRedis>();
    is_sent::<SimulatedConnection>();
}

/// Scripts call only the commands of the simulator, except for queues of the kind `stream`.
#[test]
fn scripts_call_nothing_else() {
    const OF_GROUPS: [&str; 5] = ["XACK", "XCLAIM", "XGROUP", "XINFO", "XREADGROUP"];
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lua")];
    let mut called = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lua") {
                called.extend(calls_of(&std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(called.len() > 15, "{called:?}"); // the trunk alone
    called.retain(|name| !OF_GROUPS.contains(&name.as_str()) && name != "TIME");
    let missing: Vec<_> =
        called.iter().filter(|name| super::commands::find(name.as_bytes()).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The words in capitals that are first arguments.
fn calls_of(script: &str) -> Vec<String> {
    let first = |rest: &str| rest.split_once('\'').map(|(word, _)| word.to_owned());
    let words =
        ["call('", "ask('", "try('"].iter().flat_map(|start| script.split(start).skip(1).filter_map(first));
    words.filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())).collect()
}

/// Equal calls leave equal traces.
#[test]
fn the_same_calls_have_the_same_replies() {
    const CALLS: u64 = 20_000;
    let trace = |_| {
        let (redis, now) = server();
        let mut connection = redis.connect();
        let text = include_str!("../../../../lua/approximate/count.lua");
        let sha = ask(&mut connection, &["SCRIPT", "LOAD", text])[5..45].to_owned();
        let mut replies = String::new();
        for number in 0..CALLS {
            now.store(START + number * 1_000, Ordering::Relaxed);
            let key = format!("key {}", number % 50);
            let call = ["EVALSHA", &sha, "1", &key, "-1", "1000000", "charge", "1", "1", "10", "2", "0", "0"];
            replies += &ask(&mut connection, &[&call[..], &["0"; 5]].concat());
        }
        (replies, redis.data().names().map(<[u8]>::to_vec).collect::<Vec<_>>())
    };
    let traces = [0, 1].map(trace);
    assert!(traces[0] == traces[1]);
}
