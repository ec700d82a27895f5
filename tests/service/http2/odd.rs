//! Odd calls that proxies forward: they are answered, and they end nothing of anybody else's.

use super::ground::Ground;
use super::requests::{ONE, body, fields, headers, plain, question};

/// Far more than once ended the connection. Each was reset, and the count of resets never went down.
const CALLS: u32 = 3000;

#[test]
fn a_path_that_is_no_uri_is_that_of_no_method() {
    let ground = Ground::new();
    let mut session = ground.open();
    let mut first = fields(ONE);
    first[2].1 = "/weir.v1.RateLimitService/<script>";
    let block = plain(&first);
    for stream in (0..CALLS).map(|at| 1 + 2 * at) {
        session.send(&headers(stream, 1, &block));
        assert_eq!(session.ended(stream).code(), "12", "UNIMPLEMENTED");
    }
    let stream = 1 + 2 * CALLS;
    session.send(&[headers(stream, 0, &plain(&fields(ONE))), body(stream, &question())].concat());
    session.allow(&[stream]);
}

/// RFC 9113, 8.2.1 calls such values malformed; Envoy forwards them.
#[test]
fn blanks_around_a_value_are_trimmed() {
    let ground = Ground::new();
    let mut session = ground.open();
    for (at, (name, value)) in [
        ("x-request-id", " a"),
        ("user-agent", "b \t"),
        ("content-type", " application/grpc "),
        ("te", " trailers"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut block = fields(ONE);
        block.retain(|field| field.0 != name);
        block.push((name, value));
        let stream = 1 + 2 * u32::try_from(at).unwrap();
        session.send(&[headers(stream, 0, &plain(&block)), body(stream, &question())].concat());
        session.allow(&[stream]);
    }
}
