//! Bounds of connections, of their bytes and of their time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use weir_node::server::Shutdown;
use weir_testing::{SOON, eventually};

use super::support::{STRATEGIES, TestAnswer, TestNode};

const TAKE: &str = r#"{"queue":"jobs","consumer":"worker","maxWait":"30s"}"#;
const QUEUE: &str = "queues: { jobs: { capacity: 3 } }";

fn limits(limits: &str) -> TestNode {
    TestNode::start(&format!("{STRATEGIES}http: {{ listen: '127.0.0.1:0', limits: {{ {limits} }} }}"))
}

fn connect(node: &TestNode) -> TcpStream {
    let stream = TcpStream::connect(node.http).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn request(method: &str, body: &str) -> String {
    let length = body.len();
    let path = format!("/weir.v1.{method}");
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads one answer with a body of JSON.
fn answer(stream: &mut TcpStream) -> TestAnswer {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.ends_with('}') {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{text:?}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    TestAnswer::parse(&text)
}

fn counts(node: &TestNode, reason: &str, count: u64) -> bool {
    node.metrics().contains(&format!("weir_http_refused_total{{reason=\"{reason}\"}} {count}\n"))
}

#[test]
fn connections_above_the_bound_are_closed() {
    let node = limits("max_connections: 2");
    let mut kept = [connect(&node), connect(&node)];
    for stream in &mut kept {
        stream.write_all(request("RateLimitService/ShouldAllow", "{}").as_bytes()).unwrap();
        assert_eq!(answer(stream).status, 400);
    }
    let mut third = connect(&node);
    assert_eq!(third.read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(counts(&node, "connections", 1), "{}", node.metrics());
    assert!(node.metrics().contains("weir_http_connections 2\n"));
    drop(kept);
    eventually(SOON, "there is room again", || {
        let mut stream = connect(&node);
        let _ = stream.write_all(request("RateLimitService/ShouldAllow", "{}").as_bytes());
        stream.read(&mut [0; 1]).unwrap_or(0) == 1
    });
}

#[test]
fn idle_and_old_connections_end() {
    let node = limits("idle_timeout: 1s");
    let mut idle = connect(&node);
    idle.write_all(request("RateLimitService/ShouldAllow", "{}").as_bytes()).unwrap();
    assert_eq!(answer(&mut idle).status, 400);
    // Connections are looked at every ten seconds at the latest.
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    eventually(SOON, "it is counted", || counts(&node, "idle", 1));
    let node = limits("max_connection_age: 1s");
    let mut old = connect(&node);
    old.write_all(request("RateLimitService/ShouldAllow", "{}").as_bytes()).unwrap();
    assert_eq!(answer(&mut old).status, 400);
    assert_eq!(old.read(&mut [0; 1]).unwrap(), 0);
}

/// The bytes that connections and bodies hold are those of one budget. Without room, a call is unavailable, and not a 429,
/// which callers take for a denial.
#[test]
fn bytes_are_held_within_the_budget() {
    let node = TestNode::start(&format!(
        "server: {{ listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 0s, limits: {{ max_buffered_bytes: 2MiB }} }}
{STRATEGIES}"
    ));
    let open = (0..170).map(|_| connect(&node)).collect::<Vec<_>>();
    eventually(SOON, "all connections are open", || node.metrics().contains("weir_http_connections 170\n"));
    let mut refused = connect(&node);
    assert_eq!(refused.read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(counts(&node, "budget", 1), "{}", node.metrics());
    let mut one = &open[0];
    let body = format!(r#"{{"resource":"{}"}}"#, "x".repeat(20_000));
    one.write_all(request("RateLimitService/ShouldAllow", &body).as_bytes()).unwrap();
    let full = answer(&mut one.try_clone().unwrap());
    assert_eq!(
        (full.status, full.code(), full.header("retry-after")),
        (503, "unavailable".to_owned(), Some("1"))
    );
    drop(open);
    eventually(SOON, "the bytes are given back", || {
        let mut stream = connect(&node);
        stream.write_all(request("RateLimitService/ShouldAllow", &body).as_bytes()).unwrap();
        answer(&mut stream).status == 400
    });
}

/// A body that nobody wants is dropped, and the next request is read behind it.
#[test]
fn a_connection_outlives_an_unwanted_body() {
    let node = TestNode::start(STRATEGIES);
    let mut stream = connect(&node);
    let large = "x".repeat(100_000);
    let unwanted = request("RateLimitService/ShouldAllow", &large);
    let next = request("RateLimitService/ShouldAllow", r#"{"resource":"two","consumer":"bob"}"#);
    stream.write_all(unwanted.as_bytes()).unwrap();
    assert_eq!(answer(&mut stream).status, 429);
    stream.write_all(next.as_bytes()).unwrap();
    assert_eq!(answer(&mut stream).status, 200);
    // What is too much ends the connection, and the answer says so.
    let much = request("None/None", "").replace("Content-Length: 0", "Content-Length: 2000000");
    stream.write_all(much.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 404 ") && text.contains("connection: close\r\n"), "{text}");
}

#[test]
fn a_client_that_leaves_cancels_its_call() {
    let node = TestNode::start(&format!("{STRATEGIES}{QUEUE}"));
    let waits = |count: u64| {
        node.metrics().contains(&format!("weir_queue_waiting_takes{{queue=\"jobs\"}} {count}\n"))
    };
    let mut stream = connect(&node);
    stream.write_all(request("QueueService/Take", TAKE).as_bytes()).unwrap();
    eventually(SOON, "the call waits", || waits(1));
    drop(stream);
    eventually(SOON, "the call is cancelled", || waits(0));
}

/// A node that drains answers the call in flight, and then ends the connection.
#[test]
fn a_drain_lets_calls_finish() {
    let mut node = TestNode::start(&format!("{STRATEGIES}{QUEUE}"));
    let mut stream = connect(&node);
    stream.write_all(request("QueueService/Take", &TAKE.replace("30s", "1s")).as_bytes()).unwrap();
    eventually(SOON, "the call waits", || {
        node.metrics().contains("weir_queue_waiting_takes{queue=\"jobs\"} 1\n")
    });
    node.stop();
    let answer = answer(&mut stream);
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

/// During the drain delay calls are served, and each answer sends its client elsewhere.
#[test]
fn a_drain_ends_connections_with_their_next_answer() {
    let mut node = TestNode::start(&format!(
        "server: {{ listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 3s }}
{STRATEGIES}{QUEUE}
http: {{ listen: '127.0.0.1:0', checks: {{ api: {{ proxy: caddy, resource: two, consumer: 'text:x' }} }} }}
"
    ));
    let allow = request("RateLimitService/ShouldAllow", r#"{"resource":"two","consumer":"bob"}"#);
    let (mut kept, mut waiting, idle) = (connect(&node), connect(&node), connect(&node));
    kept.write_all(allow.as_bytes()).unwrap();
    assert_eq!(answer(&mut kept).header("connection"), None);
    waiting.write_all(request("QueueService/Take", &TAKE.replace("30s", "1s")).as_bytes()).unwrap();
    node.shut_down(Shutdown::Delayed);
    eventually(SOON, "the node drains", || node.admin_page("/readyz").contains("shutting down"));
    let check = "GET /check/api HTTP/1.1\r\nHost: a\r\n\r\n";
    for mut stream in [&kept, &connect(&node)] {
        stream.write_all(allow.as_bytes()).unwrap();
        let answer = answer(&mut stream.try_clone().unwrap());
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
    let checked = TestAnswer::parse(&node.raw(check));
    assert_eq!((checked.status, checked.header("connection")), (200, Some("close")), "{checked:?}");
    let waited = answer(&mut waiting);
    assert_eq!((waited.status, waited.header("connection")), (200, Some("close")), "{waited:?}");
    // A connection without a request ends with the delay, without an error.
    let mut idle = idle;
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    node.stop();
}
