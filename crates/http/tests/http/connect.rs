//! Connect's unary protocol, rule by rule.

use serde_json::json;

use super::support::{STRATEGIES, TestNode, parsed};

const ALLOW: &str = "/weir.v1.RateLimitService/ShouldAllow";
const JSON: &str = "Content-Type: application/json\r\n";
const BOB: &str = r#"{"resource":"two","consumer":"bob"}"#;

#[test]
fn a_denial_is_an_answer() {
    let node = TestNode::start(STRATEGIES);
    let first = node.call("RateLimitService/ShouldAllow", BOB);
    assert_eq!((first.status, first.header("content-type")), (200, Some("application/json")));
    assert_eq!(first.header("x-content-type-options"), Some("nosniff"));
    assert!(first.header("date").is_some() && first.header("server").is_none(), "{first:?}");
    assert_eq!((&first.json()["allowed"], &first.json()["remaining"]), (&json!(true), &json!("1")));
    node.call("RateLimitService/ShouldAllow", BOB);
    let denied = node.call("RateLimitService/ShouldAllow", BOB);
    assert_eq!(denied.status, 200);
    assert!(
        denied.body.starts_with(r#"{"allowed":false,"limit":"2","remaining":"0","retryAfter":"1800s""#),
        "{denied:?}"
    );
    assert_eq!(
        (&denied.json()["reason"], &denied.json()["deniedBy"]),
        (&json!("REASON_LIMITED"), &json!(["each"]))
    );
    // Fields without a value that is set are left out, those that always have one are not.
    assert_eq!((denied.json().get("granted"), &denied.json()["degraded"]), (None, &json!(false)));
}

#[test]
fn every_service_that_is_on_is_served() {
    let node = TestNode::start(
        "strategies:
  two: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 2/1h, burst: 2 } }] }
  permits: { concurrency: { limit: 1, per: [consumer] } }
queues: { jobs: { capacity: 3 } }
",
    );
    let batch = node.call(
        "RateLimitService/ShouldAllowBatch",
        r#"{"requests":[{"resource":"x","consumer":"a","strategy":"two"},{"strategy":"none"}]}"#,
    );
    assert_eq!(batch.status, 200, "{batch:?}");
    let lease = r#"{"resource":"r","consumer":"c","strategy":"permits","id":"one"}"#;
    let acquired = node.call("ConcurrencyService/Acquire", lease);
    assert_eq!(acquired.status, 200, "{acquired:?}");
    assert_eq!(acquired.json()["allowed"], json!(true), "{acquired:?}");
    let put = node.call("QueueService/Enqueue", r#"{"queue":"jobs","items":[{"payload":"aGVsbG8="}]}"#);
    assert_eq!(put.status, 200, "{put:?}");
    let taken = node.call("QueueService/Take", r#"{"queue":"jobs","consumer":"worker","max_wait":"1s"}"#);
    assert!(taken.body.contains("aGVsbG8="), "{taken:?}");
    let usage = node.call("UsageService/ListNodes", "{}");
    assert_eq!(usage.status, 200, "{usage:?}");
    let reset = node.call("AdminService/Reset", r#"{"resource":"x","consumer":"a","strategy":"two"}"#);
    assert_eq!(reset.status, 200, "{reset:?}");
}

#[test]
fn paths_methods_and_types() {
    let node = TestNode::start(STRATEGIES);
    let status = |path: &str, headers: &str| node.post(path, headers, BOB).status;
    assert_eq!(status("/weir.v1.RateLimitService/Nothing", JSON), 404);
    assert_eq!(status("/", JSON), 404);
    let stream = node.post("/weir.v1.RateLimitService/ShouldAllowStream", JSON, "");
    assert_eq!((stream.status, stream.body.contains("gRPC")), (404, true), "{stream:?}");
    let off = node.post("/weir.v1.ControlService/ListBans", JSON, "{}");
    assert_eq!((off.status, off.header("content-type")), (404, Some("text/plain; charset=utf-8")), "{off:?}");
    let get = node.raw(format!("GET {ALLOW} HTTP/1.0\r\n\r\n"));
    assert!(get.starts_with("HTTP/1.0 405 ") && get.contains("allow: POST\r\n"), "{get}");
    let options = node.raw(format!("OPTIONS {ALLOW} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert!(options.starts_with("HTTP/1.1 405 ") && !options.contains("access-control"), "{options}");
    for good in ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=\"UTF-8\""]
    {
        assert_eq!(status(ALLOW, &format!("Content-Type: {good}\r\n")), 200, "{good}");
    }
    for bad in
        ["text/plain", "application/json; charset=latin1", "application/connect+json", "application/jsonx"]
    {
        let refused = node.post(ALLOW, &format!("Content-Type: {bad}\r\n"), BOB);
        assert_eq!(
            (refused.status, refused.header("accept-post")),
            (415, Some("application/json, application/proto"))
        );
    }
    assert_eq!(status(ALLOW, ""), 415);
}

/// Pages in browsers are refused, by preflight and without one, and before their bodies are read.
#[test]
fn requests_of_browsers_are_refused() {
    let node = TestNode::start(STRATEGIES);
    let plain = "Content-Type: text/plain\r\n";
    let proto = "Content-Type: application/proto\r\n";
    for (origin, content_type) in [
        ("https://evil.example", JSON),
        ("http://127.0.0.1:8082", JSON),
        ("null", JSON),
        ("", JSON),
        ("https://evil.example", proto),
        // A form of a page needs no preflight.
        ("https://evil.example", plain),
        ("https://evil.example", ""),
    ] {
        let refused = node.post(ALLOW, &format!("{content_type}Origin: {origin}\r\n"), BOB);
        assert_eq!((refused.status, refused.code()), (403, "permission_denied".to_owned()), "{origin:?}");
        assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
        let cors = refused.headers.iter().find(|(name, _)| name.starts_with("access-control"));
        assert_eq!(cors, None);
    }
    let preflight = "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
    let refused =
        node.raw(format!("OPTIONS {ALLOW} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{preflight}\r\n"));
    assert!(refused.starts_with("HTTP/1.1 405 ") && !refused.contains("access-control"), "{refused}");
    // Nothing was charged.
    assert_eq!(node.call("RateLimitService/ShouldAllow", BOB).json()["remaining"], "1");
}

#[test]
fn protocol_headers() {
    let node = TestNode::start(STRATEGIES);
    let answer = |headers: &str| {
        let answer = node.post(ALLOW, &format!("{JSON}{headers}\r\n"), BOB);
        (answer.status, if answer.status == 200 { String::new() } else { answer.code() })
    };
    let ok = (200, String::new());
    let error = |status, code: &str| (status, code.to_owned());
    assert_eq!(answer("Connect-Protocol-Version: 1"), ok);
    assert_eq!(answer("Connect-Protocol-Version: 2"), error(400, "invalid_argument"));
    assert_eq!(answer("Content-Encoding: identity"), ok);
    assert_eq!(answer("Content-Encoding: gzip"), error(501, "unimplemented"));
    assert_eq!(answer("Connect-Timeout-Ms: 1000"), ok);
    assert_eq!(answer("Connect-Timeout-Ms: 9999999999"), ok);
    assert_eq!(answer("Connect-Timeout-Ms: 0"), error(504, "deadline_exceeded"));
    for bad in ["", "1s", "-1", "+1", "1.5", "10000000000"] {
        assert_eq!(answer(&format!("Connect-Timeout-Ms: {bad}")), error(400, "invalid_argument"), "{bad}");
    }
    // A deadline of gRPC says nothing here.
    assert_eq!(answer("grpc-timeout: 0n"), ok);
}

#[test]
fn errors_have_code_message_and_details() {
    let node = TestNode::start(STRATEGIES);
    let unknown =
        node.call("RateLimitService/ShouldAllow", r#"{"resource":"two","consumer":"b","strategy":"towo"}"#);
    assert_eq!((unknown.status, unknown.code()), (404, "not_found".to_owned()));
    let error = unknown.json();
    assert!(error["message"].as_str().unwrap().contains("towo"), "{error}");
    assert_eq!(error["details"][0]["type"], "google.rpc.ErrorInfo");
    assert!(!error["details"][0]["value"].as_str().unwrap().ends_with('='), "{error}");
    let missing = node.call("RateLimitService/ShouldAllow", r#"{"resource":"two"}"#);
    assert_eq!((missing.status, missing.code()), (400, "invalid_argument".to_owned()));
    assert_eq!(missing.json()["details"][0]["type"], "google.rpc.BadRequest");
}

#[test]
fn json_of_people_is_read_strictly() {
    let node = TestNode::start(STRATEGIES);
    let message = |body: &str, headers: &str| {
        let answer = node.post(ALLOW, &format!("{JSON}{headers}"), body);
        assert_eq!(
            (answer.status, answer.code()),
            (400, "invalid_argument".to_owned()),
            "{body}: {answer:?}"
        );
        answer.json()["message"].as_str().unwrap().to_owned()
    };
    let unknown = r#"{"resource":"two","consumr":"bob","consumer":"bob"}"#;
    let refused = message(unknown, "");
    assert_eq!(refused, "the body: unknown field `consumr`; did you mean `consumer`? at line 1 column 27");
    // A client that is newer than the server sends its version.
    assert_eq!(node.post(ALLOW, &format!("{JSON}Connect-Protocol-Version: 1\r\n"), unknown).status, 200);
    let cases = [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "expected an object with the fields of the message at line 1 column 0"),
        (r#"{"resource":"a","resource":"b"}"#, "field `resource` is given twice"),
        (r#"{"attributes":{"a":"1","a":"2"}}"#, "`a` is given twice in `attributes`"),
        (r#"{"cost":1.5}"#, "`cost`: 1.5 is not a whole number of 64 bits, from 0 on at line 1 column"),
        (r#"{"cost":1e3}"#, "`cost`: 1000 is not a whole number"),
        (r#"{"cost":18446744073709551616}"#, "is not a whole number"),
        (r#"{"cost":"-1"}"#, "`cost`: -1 is not a whole number"),
        (r#"{"cost":true}"#, "`cost`: true is not a whole number"),
        (r#"{"resource":"a"} x"#, "trailing characters at line 1 column 18"),
        (r#"{"inline":{"tokenBucket":{},"fixedWindow":{}}}"#, "only one of its choice may be given"),
        (
            r#"{"inline":{"onStoreFailure":"STORE_FAILURE_POLICY_ALOW"}}"#,
            "did you mean `STORE_FAILURE_POLICY_ALLOW`?",
        ),
        (r#"{"inline":{"fixedWindow":{"window":"5"}}}"#, "`window`: 5 is not a duration, such as"),
    ];
    for (body, part) in cases {
        let text = message(body, "");
        assert!(text.contains(part), "{body}: {text}");
    }
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    assert!(message(&deep, "Connect-Protocol-Version: 1\r\n").contains("recursion limit"));
    let long = message(&format!("\"{}\"", "x".repeat(9_000)), "");
    assert!(long.len() < 300 && long.ends_with(" at line 1 column 9002"), "{long}");
    // Both spellings, numbers as texts, and null.
    let good = r#"{ "resource": "two", "consumer": "carol", "at_most": true, "cost": "1", "id": null, "inline": null }"#;
    assert_eq!(node.call("RateLimitService/ShouldAllow", good).status, 200);
}

#[test]
fn a_body_above_its_bound_is_the_only_429() {
    let node = TestNode::start(STRATEGIES);
    let large = format!(r#"{{"resource":"{}"}}"#, "x".repeat(64 << 10));
    let refused = node.call("RateLimitService/ShouldAllow", &large);
    assert_eq!((refused.status, refused.code()), (429, "resource_exhausted".to_owned()));
    let chunked = format!(
        "POST {ALLOW} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    assert!(node.raw(chunked).starts_with("HTTP/1.1 429 "));
}

#[test]
fn mistakes_in_the_section_are_reported() {
    let mistakes = |section: &str| parsed(&format!("{STRATEGIES}http: {section}")).unwrap_err();
    assert!(mistakes("{ listn: 127.0.0.1:1 }").contains("did you mean `listen`?"));
    assert!(mistakes("{ limits: { idle_timeout: 1s } }").contains("http.listen: is missing"));
    assert!(mistakes("{ listen: 127.0.0.1:8081 }").contains("is the address of `server.listen` too"));
    assert!(
        mistakes("{ listen: 127.0.0.1:1, limits: { idle_timeout: 0s } }")
            .contains("http.limits.idle_timeout")
    );
    let config = parsed(&format!("{STRATEGIES}http: {{ listen: 0.0.0.0:8082 }}")).unwrap();
    assert!(config.exposure().unwrap().contains("http.listen 0.0.0.0:8082"));
    let other = parsed(&format!("{STRATEGIES}http: {{ listen: 0.0.0.0:8083 }}")).unwrap();
    let changes: Vec<String> = config.setting_changes(&other).iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["http.listen: 0.0.0.0:8082 -> 0.0.0.0:8083"]);
}

#[test]
fn requests_are_counted_by_method_and_status() {
    let node = TestNode::start(STRATEGIES);
    node.call("RateLimitService/ShouldAllow", BOB);
    node.call("RateLimitService/ShouldAllow", "{");
    node.post("/", JSON, "");
    let page = node.metrics();
    for line in [
        "weir_http_requests_total{route=\"ShouldAllow\",status=\"200\"} 1",
        "weir_http_requests_total{route=\"ShouldAllow\",status=\"400\"} 1",
        "weir_http_requests_total{route=\"other\",status=\"404\"} 1",
        "weir_http_request_duration_seconds_count{route=\"ShouldAllow\"} 2",
        "weir_http_refused_total{reason=\"slow_headers\"} 0",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}
