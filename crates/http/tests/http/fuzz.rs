//! Random mistakes in bodies, headers and questions of proxies, from seeds: nothing panics, and answers are within bounds.
//! `WEIR_FUZZ_SECONDS` says how long, for both together; `WEIR_FUZZ_SEED` which seed comes first.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use weir_http::json::UnknownFields;
use weir_testing::{SOON, eventually};
use weir_time::clock::monotonic;

use super::same_answers::Numbers;
use super::support::{STRATEGIES, TestNode};

/// However fast the machine is, this many seeds are tried at least.
const FEWEST: u64 = 300;

/// The longest text about a mistake, and the longest answer to a request (the description of the API), in bytes.
const LONGEST_MISTAKE: usize = 600;
const LONGEST_ANSWER: usize = 1 << 19;

const BODIES: [&str; 6] = [
    r#"{"resource":"two","consumer":"bob","cost":"12","attributes":{"k":"v","r":"eu"},"peek":true,"id":"x"}"#,
    r#"{"resource":"a","inline":{"fixedWindow":{"limit":3,"window":"1.5s"},"onStoreFailure":"STORE_FAILURE_POLICY_ALLOW"}}"#,
    r#"{"requests":[{"resource":"two","consumer":"a"},{"resource":"\u00e9\ud83d\ude00","consumer":"\n"},{}]}"#,
    r#"{"queue":"jobs","items":[{"payload":"aGVsbG8=","priority":1,"delay":"3.000000001s"}]}"#,
    r#"{"since":"2026-01-31T23:59:59.999999999Z","limit":18446744073709551615,"x":[1,2.5e10,null,{"a":[]}]}"#,
    "{}",
];

const HEADS: [&str; 7] = [
    "POST /weir.v1.RateLimitService/ShouldAllow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json; charset=utf-8\r\nConnect-Protocol-Version: 1\r\nConnect-Timeout-Ms: 1000\r\n",
    "POST /weir.v1.RateLimitService/ShouldAllowBatch HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer x\r\n",
    "POST /weir.v1.RateLimitService/ShouldAllow HTTP/1.1\r\nHost: a\r\nContent-Type: application/proto\r\nExpect: 100-continue\r\n",
    "POST /weir.v1.QueueService/Take HTTP/1.0\r\nContent-Type: application/json\r\nOrigin: null\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
    "GET /check/api?x=/.. HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, [2001:db8::1]:443\r\nX-Forwarded-Uri: /a/%2e./b%73?q=1\r\nX-Forwarded-Host: A.example:80\r\nX-Cost: 2\r\n",
    "HEAD /check/api HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: fe80::1%eth0\r\nX-Forwarded-Uri: //x/../y\r\nX-Cost: 1\r\n",
    "GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n",
];

/// Words that mean something, put where they are not expected.
const WORDS: [&str; 16] = [
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\0",
    "Content-Length: 7\r\n",
    "Transfer-Encoding: chunked\r\n",
    "0\r\n\r\n",
    "fffffffffffffffff\r\n",
    "{",
    "[[[[[[[[",
    "\"",
    "\\ud800",
    "1e999",
    "%2F",
    ",",
    "\u{e9}",
];

/// Changes, cuts, doubles and moves parts.
fn mutated(mut bytes: Vec<u8>, numbers: &mut Numbers) -> Vec<u8> {
    let below = |numbers: &mut Numbers, bound: usize| numbers.below(bound.max(1) as u64) as usize;
    for _ in 0..below(numbers, 6) {
        let (at, length) = (below(numbers, bytes.len()), below(numbers, 40));
        let end = (at + length).min(bytes.len());
        match numbers.below(6) {
            0 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            1 => drop(bytes.drain(at..end)),
            2 => bytes.truncate(at),
            3 => {
                let (part, to) =
                    (bytes[at..end].repeat(1 + below(numbers, 30)), below(numbers, bytes.len() + 1));
                bytes.splice(to..to, part);
            }
            _ => {
                let word = WORDS[below(numbers, WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
        }
    }
    bytes
}

/// Tries seeds for half of the time. `attempt` returns true if something was accepted.
#[allow(clippy::disallowed_methods)] // the time it takes is set from outside
fn fuzz(what: &str, attempt: impl Fn(&mut Numbers) -> bool) {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (seconds, first) = (number("WEIR_FUZZ_SECONDS", 2), number("WEIR_FUZZ_SEED", 1));
    let end = monotonic() + Duration::from_secs(seconds) / 2;
    let (mut seed, mut good) = (first, 0_u64);
    while seed < first + FEWEST || monotonic() < end {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        match catch_unwind(AssertUnwindSafe(|| attempt(&mut numbers))) {
            Ok(is_good) => good += u64::from(is_good),
            Err(_) => panic!("{what}: the seed is {seed}"),
        }
        seed += 1;
    }
    println!("{what}: {} seeds, {good} of them were accepted", seed - first);
    assert!(good > 0 && good < seed - first, "{what}: the samples are too much alike");
}

/// A body of each method is a message within its bound, or a mistake in a few words.
#[test]
fn bodies_with_random_mistakes() {
    let shapes = weir_http::shapes().unwrap();
    let methods: Vec<_> = shapes.methods().filter(|method| !method.is_stream).collect();
    fuzz("bodies", |numbers| {
        let method = methods[numbers.below(methods.len() as u64) as usize];
        let body = mutated(BODIES[numbers.below(6) as usize].into(), numbers);
        let unknown = if numbers.below(2) == 0 { UnknownFields::Ignore } else { UnknownFields::Refuse };
        let read = shapes.read(method, &body, unknown);
        // An answer may be any bytes, too: whatever they are, they are written or refused.
        let _ = shapes.write(method, read.as_deref().unwrap_or(&body));
        match read {
            Ok(ref message) => assert!(message.len() <= 2 * body.len() + 16, "{} bytes", message.len()),
            Err(ref mistake) => assert!(mistake.to_string().len() <= LONGEST_MISTAKE, "{mistake}"),
        }
        read.is_ok()
    });
}

/// Counts the panics of all threads of this process from now on.
fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, before) = (Arc::clone(&count), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Relaxed);
        before(info);
    }));
    count
}

/// Connections to a node: each answer is one of HTTP, the node goes on, and nothing that a connection held is left.
#[test]
fn connections_with_random_mistakes() {
    let panics = count_panics();
    let node = TestNode::start(&format!(
        "{STRATEGIES}queues: {{ jobs: {{ capacity: 3 }} }}
http: {{ listen: '127.0.0.1:0', checks: {{ api: {{ proxy: caddy, resource: path, strategy: two, consumer: address, cost: 'header:x-cost', attributes: {{ host: host }} }} }} }}"
    ));
    fuzz("connections", |numbers| {
        let mut bytes = Vec::new();
        for _ in 0..=numbers.below(3) {
            let body = BODIES[numbers.below(6) as usize];
            let length = format!("Content-Length: {}\r\n\r\n", body.len());
            let request = [HEADS[numbers.below(7) as usize], &length, body].concat();
            bytes.extend(mutated(request.into(), numbers));
        }
        let answers = converse(&node, &bytes, numbers);
        // Mistakes may double requests: three for the description alone are more than a megabyte.
        let requests = bytes.windows(7).filter(|part| part == b"HTTP/1.").count().max(1);
        assert!(answers.len() <= requests * LONGEST_ANSWER, "{} bytes to {requests} requests", answers.len());
        let text = String::from_utf8_lossy(&answers);
        let is_answer = text.is_empty() || text.starts_with("HTTP/1.1 ") || text.starts_with("HTTP/1.0 ");
        assert!(is_answer, "{text}\nto {:?}", String::from_utf8_lossy(&bytes));
        // A check passes by a decision alone.
        for head in text.split("HTTP/1.").filter(|head| head.contains("weir-decision: ")) {
            assert_eq!(head[2..].starts_with("200"), head.contains("weir-decision: allowed"), "{head}");
        }
        text.contains(" 200 OK\r\n")
    });
    assert_eq!(panics.load(Relaxed), 0, "threads of the node have panicked");
    assert_eq!(node.call("RateLimitService/ShouldAllow", r#"{"resource":"two","consumer":"q"}"#).status, 200);
    eventually(SOON, "nothing is left of the connections", || {
        let page = node.metrics();
        page.contains("weir_http_connections 0\n") && page.contains("weir_buffered_bytes 0\n")
    });
}

/// Sends the bytes in up to three pieces, and reads to the end.
fn converse(node: &TestNode, bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut stream = TcpStream::connect(node.http).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let (first, rest) = bytes.split_at(numbers.below(bytes.len() as u64 + 1) as usize);
    let (second, third) = rest.split_at(numbers.below(rest.len() as u64 + 1) as usize);
    // The node may have closed the connection already, and then it may be reset.
    for piece in [first, second, third] {
        let _ = stream.write_all(piece);
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answers = Vec::new();
    let read = stream.read_to_end(&mut answers);
    assert!(
        read.is_ok() || read.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock),
        "it hangs"
    );
    answers
}
