//! A server's side of the connection, byte by byte.

use super::*;
use crate::answer::CountedAnswer;
use crate::plan::{CallProtocol, PlannedQuestion, Spread};
use crate::spread::Keys;

fn ask() -> PlannedQuestion {
    PlannedQuestion {
        resources: vec!["api/{key}".to_owned()],
        consumer: "\"user\" {key}".to_owned(),
        strategy: "burst".to_owned(),
        attributes: vec![("region".to_owned(), "eu".to_owned())],
        cost: 7,
        domain: String::new(),
        descriptor: Vec::new(),
        keys: 1,
        spread: Spread::Uniform,
    }
}

fn connection(mode: CallMode) -> (HttpConnection, Vec<u8>) {
    let service = Arc::new(CallShape::new(mode, CallProtocol::Http, &ask()));
    let mut message = Vec::new();
    service.write(&mut Keys::new(1, Spread::Uniform, 1).unwrap(), &mut message);
    (HttpConnection::new(service, "weir:80", &ServerAccess::default()), message)
}

fn answered(mode: CallMode, bytes: &[u8]) -> Result<Vec<Result<CountedAnswer, Failure>>, FrameFault> {
    let (mut connection, message) = connection(mode);
    connection.call(&message, LoadCall::default());
    let mut results = Vec::new();
    connection.receive(bytes, &mut |outcome| results.push(outcome.result))?;
    assert_eq!(connection.unanswered(), 1 - results.len());
    Ok(results)
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nDate: x\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn counted(allowed: u32, denied: u32) -> CountedAnswer {
    CountedAnswer { allowed, denied, ..CountedAnswer::default() }
}

#[test]
fn requests_are_what_a_client_would_send() {
    let (mut connection, message) = connection(CallMode::Unary);
    connection.call(&message, LoadCall::default());
    let sent = String::from_utf8(connection.to_write().to_vec()).unwrap();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /weir.v1.RateLimitService/ShouldAllow HTTP/1.1\r\nhost: weir:80\r\n"));
    assert!(head.ends_with(&format!("\r\ncontent-length: {}", body.len())), "{head}");
    let one = serde_json::json!({
        "resource": "api/0", "consumer": "\"user\" 0", "strategy": "burst", "cost": 7, "attributes": { "region": "eu" },
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap(), one);
    assert!(!connection.has_room() && !connection.is_over());
    connection.written(sent.len());
    assert!(connection.to_write().is_empty());
    let (_, batch) = self::connection(CallMode::Batch(2));
    let batch: serde_json::Value = serde_json::from_slice(&batch).unwrap();
    assert_eq!(batch, serde_json::json!({ "requests": [one.clone(), one] }));
}

#[test]
fn answers_are_counted_wherever_they_are_cut() {
    let whole = answer("200 OK", r#"{"allowed":true,"remaining":"1","degraded":false}"#);
    for at in 1..whole.len() {
        let (mut connection, message) = connection(CallMode::Unary);
        connection.call(&message, LoadCall::default());
        let mut results = Vec::new();
        for part in [&whole[..at], &whole[at..]] {
            connection.receive(part, &mut |outcome| results.push(outcome.result)).unwrap();
        }
        assert_eq!(results, [Ok(counted(1, 0))]);
        assert!(connection.has_room());
    }
    let batch = r#"{"results":[{"response":{"allowed":false}},{"error":{"code":5,"message":"no"}},{"response":{"allowed":true,"degraded":true}}]}"#;
    let batch = answered(CallMode::Batch(3), &answer("200 OK", batch)).unwrap().remove(0).unwrap();
    assert_eq!((batch.allowed, batch.denied, batch.degraded), (1, 1, 1));
    assert_eq!(batch.failed.unwrap().message, "no");
}

#[test]
fn failures_have_their_code_or_status() {
    let failed =
        |status: &str, body: &str| answered(CallMode::Unary, &answer(status, body)).unwrap().remove(0);
    let error = r#"{"code":"not_found","message":"no strategy","details":[]}"#;
    assert_eq!(failed("404 Not Found", error), Err(Failure::Status(5, "no strategy".to_owned())));
    assert_eq!(failed("404 Not Found", "there is no such path\n"), Err(Failure::Http(404)));
    assert_eq!(failed("503 Service Unavailable", r#"{"code":"nonsense"}"#), Err(Failure::Http(503)));
    assert_eq!(failed("200 OK", "{}"), Err(Failure::Malformed));
    assert!(answered(CallMode::Unary, b"HTTP/1.1 OK\r\n\r\n").is_err());
    assert!(answered(CallMode::Unary, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    let two = answer("200 OK", r#"{"allowed":true}"#).repeat(2);
    assert!(answered(CallMode::Unary, &two).is_err());
}

#[test]
fn a_connection_ends_with_close_and_with_a_late_answer() {
    let (mut connection, message) = connection(CallMode::Unary);
    connection.call(&message, LoadCall::default());
    let close = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 17\r\n\r\n{\"allowed\":false}";
    let mut results = Vec::new();
    connection.receive(close, &mut |outcome| results.push(outcome.result)).unwrap();
    assert_eq!((results, connection.is_over()), (vec![Ok(counted(0, 1))], true));
    let (mut connection, message) = self::connection(CallMode::Unary);
    connection.call(&message, LoadCall { sent_ns: 5, ..LoadCall::default() });
    let mut results = Vec::new();
    connection.expire(5, &mut |outcome| results.push(outcome.result));
    assert!(results.is_empty() && !connection.is_over());
    connection.expire(6, &mut |outcome| results.push(outcome.result));
    assert_eq!((results, connection.is_over()), (vec![Err(Failure::Timeout)], true));
}

#[test]
fn other_protocols_are_recognised() {
    let (connection, _) = connection(CallMode::Unary);
    assert!(connection.foreign(b"HTTP/1.1 2").is_none() && connection.foreign(b"HT").is_none());
    assert!(connection.foreign(&[0x15, 3, 3]).is_some_and(|reason| reason.contains("TLS")));
    assert!(connection.foreign(&[0, 0, 6, 4]).is_some());
}
