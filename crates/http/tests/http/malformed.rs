//! Answers to requests that HTTP does not allow, and connections that live on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::support::{STRATEGIES, TestNode};

const PATH: &str = "/weir.v1.RateLimitService/ShouldAllow";
const BODY: &str = r#"{"resource":"two","consumer":"bob"}"#;

fn request(headers: &str) -> String {
    format!("POST {PATH} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n")
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn bad_heads() {
    let node = TestNode::start(STRATEGIES);
    let length = format!("Content-Length: {}\r\n", BODY.len());
    let close = "Host: a\r\nConnection: close\r\n";
    let cases = [
        (request("Connection: close\r\n") + &length, 400, "no Host"),
        (request(&format!("{close}Host: b\r\n")) + &length, 400, "two Hosts"),
        (request(close) + &length + "Content-Length: 3\r\n", 400, "unequal lengths"),
        (request(close) + &length + " folded: 1\r\n", 400, "a folded line"),
        (request(close) + &length + "name : 1\r\n", 400, "a space before the colon"),
        (request(close) + &length + "na\rme: 1\r\n", 400, "a bare CR"),
        (request(close) + "Transfer-Encoding: gzip\r\n", 400, "an unknown coding"),
        (request(close) + "Transfer-Encoding: chunked, gzip\r\n", 400, "chunked is not last"),
        (request(close) + &length + &format!("a: {}\r\n", "x".repeat(17 << 10)), 431, "large headers"),
        (request(close) + &length + &"a: b\r\n".repeat(101), 431, "many headers"),
        (format!("POST /{} HTTP/1.1\r\n{close}{length}", "x".repeat(8 << 10)), 414, "a long target"),
    ];
    for (head, wanted, what) in cases {
        let answer = node.raw(format!("{head}\r\n{BODY}"));
        assert_eq!(status(&answer), wanted, "{what}: {answer}");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(!body.starts_with('{'), "{what}: {answer}");
        // A sentence for what is no mistake of HTTP itself.
        let is_text = answer.contains("content-type: text/plain; charset=utf-8\r\n") && body.ends_with('\n');
        assert!(is_text || wanted == 400, "{what}: {answer}");
        if wanted == 431 {
            assert!(answer.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
        }
    }
    // Bare line feeds are accepted; of a length and chunks, the chunks are read.
    let bare = (request(close) + &length + "\r\n" + BODY).replace("\r\n", "\n");
    assert_eq!(status(&node.raw(bare)), 200);
    let both = request("Host: a\r\n") + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
    let both = node.raw(format!("{both}{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()));
    assert_eq!(status(&both), 200, "{both}");
    assert!(both.to_lowercase().contains("connection: close"), "{both}");
}

#[test]
fn continue_is_sent_and_upgrades_are_ignored() {
    let node = TestNode::start(STRATEGIES);
    let length = format!("Content-Length: {}\r\n", BODY.len());
    let close = "Host: a\r\nConnection: close\r\n";
    let answer = node.raw(request(close) + &length + "Expect: 100-continue\r\n\r\n" + BODY);
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n") && answer.contains("HTTP/1.1 200 OK"),
        "{answer}"
    );
    let upgrade = "Host: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n";
    assert_eq!(status(&node.raw(request(upgrade) + &length + "\r\n" + BODY)), 200);
}

/// Requests on one connection are answered in order, also if they are sent together.
#[test]
fn connections_are_kept() {
    let mut node = TestNode::start(STRATEGIES);
    let one = request("Host: a\r\n") + &format!("Content-Length: {}\r\n\r\n{BODY}", BODY.len());
    let mut stream = TcpStream::connect(node.http).unwrap();
    stream.write_all(one.repeat(3).as_bytes()).unwrap();
    let (mut answers, mut buffer) = (String::new(), [0; 4096]);
    while answers.matches("HTTP/1.1 200").count() < 3 || !answers.ends_with('}') {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{answers}");
        answers.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert_eq!(answers.matches("\r\n\r\n{\"allowed\":true").count(), 2, "{answers}");
    assert_eq!(answers.matches("\r\n\r\n{\"allowed\":false").count(), 1, "{answers}");
    // HTTP/1.0 ends its connection.
    let old = one.replace("HTTP/1.1", "HTTP/1.0");
    assert!(node.raw(old).starts_with("HTTP/1.0 200"));
    // A drain closes an idle connection.
    node.stop();
    assert_eq!(stream.read(&mut buffer).unwrap(), 0);
}
