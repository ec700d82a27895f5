//! `/check/NAME`, as proxies ask it.

use weir_testing::{SOON, eventually};

use super::support::{TestAnswer, TestNode, parsed};

const STRATEGIES: &str = "
strategies:
  two: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 2/1h, burst: 2 } }] }
  methods: { limits: [{ name: each, per: [consumer, method], fixed_window: { limit: 1, window: 1m } }] }
  paths: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 1, window: 1m } }] }
  slow: { limits: [{ name: each, per: [consumer], leaky_queue: { rate: 1/1h, burst: 3, delay: 0 } }] }
resources:
  - { match: /search, strategy: paths }
access: { deny: [mallory] }
";

fn node(checks: &str) -> TestNode {
    TestNode::start(&format!("{STRATEGIES}http: {{ listen: '127.0.0.1:0', checks: {{ {checks} }} }}"))
}

fn ask(node: &TestNode, name: &str, headers: &str) -> TestAnswer {
    TestAnswer::parse(
        &node.raw(format!("GET /check/{name} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n{headers}\r\n")),
    )
}

fn decided(answer: &TestAnswer) -> (u16, &str, &str) {
    let header = |name| answer.header(name).unwrap_or_default();
    (answer.status, header("weir-decision"), header("weir-reason"))
}

#[test]
fn addresses_have_limits_of_their_own() {
    let node = node("api: { proxy: haproxy, resource: site, strategy: two, consumer: address }");
    let from = |address: &str| ask(&node, "api", &format!("X-Forwarded-For: 9.9.9.9, {address}\r\n"));
    let allowed = from("1.2.3.4");
    assert_eq!(decided(&allowed), (200, "allowed", "ok"));
    assert_eq!((allowed.body.as_str(), allowed.header("cache-control")), ("", Some("no-store")));
    assert_eq!(allowed.header("x-ratelimit-remaining"), Some("1"), "{allowed:?}");
    from("1.2.3.4");
    let denied = from("1.2.3.4");
    assert_eq!(decided(&denied), (429, "limited", "limited"));
    assert_eq!(denied.header("retry-after"), Some("1800"));
    assert!(denied.body.len() > 10, "{denied:?}");
    assert_eq!(from("1.2.3.5").status, 200);
    // Addresses of one /64 are one client.
    assert_eq!(from("2001:db8::1").status, 200);
    assert_eq!(from("2001:db8::2").status, 200);
    assert_eq!(from("2001:db8::3").status, 429);
    // An address that cannot be read is absent, never the proxy's own.
    for bad in ["unknown", ""] {
        assert_eq!(decided(&from(bad)), (403, "refused", "missing"), "{bad}");
    }
    assert_eq!(decided(&ask(&node, "api", "")), (403, "refused", "missing"));
    // What a client has sent before the entry of the proxy does not make it absent, whatever it is.
    assert_eq!(
        decided(&ask(&node, "api", "X-Forwarded-For: \u{e9}, ;\r\nX-Forwarded-For: 1.2.3.6\r\n")).0,
        200
    );
    let page = node.metrics();
    assert!(page.contains("weir_http_check_total{check=\"api\",decision=\"limited\"} 2"), "{page}");
    assert!(page.contains("weir_http_requests_total{route=\"check\",status=\"429\"} 2"), "{page}");
}

#[test]
fn only_the_headers_of_the_proxy_are_read() {
    let node = node(
        "nginx: { proxy: nginx, resource: r, strategy: methods, consumer: 'text:x', attributes: { method: method }, limited_status: 401 },
         caddy: { proxy: caddy, resource: r, strategy: methods, consumer: 'text:y', attributes: { method: method } }",
    );
    let nginx = |method: &str| {
        ask(
            &node,
            "nginx",
            &format!("X-Original-Method: {method}\r\nX-Forwarded-Method: FORGED-{method}\r\n"),
        )
    };
    assert_eq!(nginx("GET").status, 200);
    let denied = nginx("GET");
    assert_eq!((denied.status, denied.header("www-authenticate")), (401, None), "{denied:?}");
    assert_eq!(nginx("PUT").status, 200);
    let caddy = |headers: &str| ask(&node, "caddy", headers).status;
    assert_eq!(caddy("X-Forwarded-Method: GET\r\nX-Original-Method: X\r\n"), 200);
    assert_eq!(caddy("X-Forwarded-Method: GET\r\nX-Original-Method: Y\r\n"), 429);
    // Two values of one header: one of them is forged.
    let two = ask(&node, "caddy", "X-Forwarded-Method: GET\r\nX-Forwarded-Method: PUT\r\n");
    assert_eq!(decided(&two), (403, "refused", "bad_request"));
    assert_eq!(decided(&ask(&node, "caddy", "X-Original-Method: GET\r\n")), (403, "refused", "missing"));
}

#[test]
fn paths_have_one_spelling() {
    let node = node("api: { proxy: caddy, resource: path, consumer: 'header:x-user' }");
    let path = |user: &str, target: &str| {
        ask(&node, "api", &format!("X-User: {user}\r\nX-Forwarded-Uri: {target}\r\n"))
    };
    assert_eq!(path("a", "/search?q=1").status, 200);
    for same in ["/search", "//search", "/%73earch", "/x/../search?q=2"] {
        assert_eq!(path("a", same).status, 429, "{same}");
    }
    for odd in ["/a%2fsearch", "search", "/a\\b"] {
        assert_eq!(decided(&path("b", odd)), (403, "refused", "bad_request"), "{odd}");
    }
    let long = "x".repeat(513);
    assert_eq!(decided(&path(&long, "/search")), (403, "refused", "bad_request"));
    assert_eq!(decided(&path("mallory", "/search")), (403, "denied", "deny_list"));
    // No strategy has this path: a mistake of the configuration.
    assert_eq!(decided(&path("b", "/other")), (500, "unavailable", "configuration"));
    // The query of the check itself, which Caddy copies from the client, says nothing.
    let answer = node.raw(
        "GET /check/api?x=1 HTTP/1.0\r\nX-User: q\r\nX-Forwarded-Uri: /search\r\nOrigin: https://a\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
}

#[test]
fn costs_and_what_is_missing() {
    let node = node(
        "cost: { proxy: caddy, resource: r, strategy: two, consumer: 'text:c', cost: 'header:x-cost' },
         open: { proxy: caddy, resource: r, strategy: two, consumer: 'header:x-user', missing: allow },
         anon: { proxy: caddy, resource: r, strategy: two, consumer: 'header:x-user', missing: 'text:nobody' }",
    );
    let cost = |value: &str| ask(&node, "cost", &format!("X-Cost: {value}\r\n"));
    for bad in ["0", "-1", "1.5", "x", "4503599627370497"] {
        assert_eq!(decided(&cost(bad)), (403, "refused", "bad_request"), "{bad}");
    }
    assert_eq!(decided(&cost("3")), (403, "never", "never"));
    assert_eq!(cost("2").status, 200);
    assert_eq!(ask(&node, "cost", "").status, 429);
    assert_eq!(decided(&ask(&node, "open", "")), (200, "allowed", "missing"));
    assert_eq!([200, 200, 429].map(|_| ask(&node, "anon", "").status), [200, 200, 429]);
}

#[test]
fn any_method_and_no_body() {
    let node = node("api: { proxy: caddy, resource: r, strategy: two, consumer: 'text:m' }");
    let head = node.raw("HEAD /check/api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let post = node.raw("POST /check/api HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nnot read!");
    assert!(post.starts_with("HTTP/1.1 200") && post.contains("connection: close"), "{post}");
    assert_eq!(ask(&node, "none", "").status, 404);
    assert_eq!(ask(&node, "API", "").status, 404);
    let counted = "weir_http_requests_total{route=\"check\",status=\"404\"} 2\n";
    assert!(node.metrics().contains(counted), "{}", node.metrics());
}

#[test]
fn strangers_may_not_ask() {
    let node =
        node("api: { proxy: caddy, resource: r, strategy: two, consumer: 'text:m', proxies: [10.0.0.0/8] }");
    assert_eq!(decided(&ask(&node, "api", "")), (403, "refused", "peer"));
}

#[test]
fn a_request_is_held_or_denied() {
    let node = node("api: { proxy: caddy, resource: r, strategy: slow, consumer: 'text:m', max_hold: 1s }");
    assert_eq!(ask(&node, "api", "").status, 200);
    assert_eq!(decided(&ask(&node, "api", "")), (429, "limited", "max_hold"));
}

/// A reload changes, adds and removes checks. One with a mistake changes nothing, and neither does the end of the section.
#[test]
fn checks_change_at_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.yaml");
    let write = |rest: &str| {
        let text = format!(
            "server: {{ listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 0s }}\n{STRATEGIES}{rest}"
        );
        std::fs::write(&file, text).unwrap();
    };
    let checks = |checks: &str| write(&format!("http: {{ listen: '127.0.0.1:0', checks: {{ {checks} }} }}"));
    let one = |status: u16| {
        format!(
            "api: {{ proxy: caddy, resource: r, strategy: two, consumer: 'header:x-user', missing: allow, never_status: {status} }}"
        )
    };
    checks(&one(403));
    let node = TestNode::start_with_file(&file);
    let api = || ask(&node, "api", "X-User: mallory\r\n").status;
    let has_other = || ask(&node, "other", "").status != 404;
    assert_eq!((api(), has_other()), (403, false));
    checks(&(one(451) + ", other: { proxy: caddy, resource: r, strategy: two, consumer: 'text:o' }"));
    eventually(SOON, "the checks are others", || api() == 451);
    assert!(has_other());
    // One change after the other, so that the second shows that the first was read.
    let reads = |result: &str| {
        let line = format!("weir_config_loads_total{{result=\"{result}\"}} ");
        let page = node.metrics();
        page.lines().find_map(|found| found.strip_prefix(&line)).map(str::to_owned).unwrap()
    };
    let refused = reads("error");
    checks(&(one(410) + ", other: { proxy: caddy, resource: r, strategy: none, consumer: 'text:o' }"));
    eventually(SOON, "the mistake is found", || reads("error") != refused);
    assert_eq!((api(), has_other()), (451, true));
    let read = reads("ok");
    write("");
    eventually(SOON, "the section is gone", || reads("ok") != read);
    assert_eq!((api(), has_other()), (451, true));
    checks(&one(410));
    eventually(SOON, "the checks are others again", || api() == 410);
    assert!(!has_other());
}

#[test]
fn mistakes_of_checks_are_reported() {
    let mistakes = |checks: &str| {
        parsed(&format!("{STRATEGIES}http: {{ listen: 127.0.0.1:1, checks: {{ {checks} }} }}")).unwrap_err()
    };
    for (checks, part) in [
        ("A: { proxy: caddy, resource: r, strategy: two, consumer: address }", "the name of a check has"),
        (
            "a: { resource: r, strategy: two, consumer: address }",
            "checks.a.proxy: says which headers are read",
        ),
        ("a: { proxy: envoy, resource: r, strategy: two, consumer: address }", "checks.a.proxy"),
        ("a: { proxy: caddy, resource: r, strategy: too, consumer: address }", "checks.a.strategy: "),
        ("a: { proxy: caddy, resource: r, consumer: address }", "checks.a.resource: "),
        ("a: { proxy: caddy, resource: r, strategy: methods, consumer: address }", "`method` is missing"),
        ("a: { proxy: caddy, resource: r, strategy: two, consumer: user }", "is none of address, method"),
        (
            "a: { proxy: nginx, resource: r, strategy: two, consumer: address }",
            "nginx answers 500 for every status",
        ),
        (
            "a: { proxy: caddy, resource: r, strategy: two, consumer: address, hops: 1, trusted: [10.0.0.0/8] }",
            "not both",
        ),
        (
            "a: { proxy: caddy, resource: r, strategy: two, consumer: address, cost: 0 }",
            "no number from 1 to 2^52",
        ),
        (
            "a: { proxy: caddy, resource: r, strategy: two, consumer: address, missing: x }",
            "none of deny, allow",
        ),
        ("a: { proxy: caddy, resource: r, strategy: two, consumer: address, limited: 1 }", "unknown key"),
        ("a: { proxy: caddy, resource: r, strategy: two, consumer: address, proxies: [x] }", "is no network"),
    ] {
        let errors = mistakes(checks);
        assert!(errors.contains(part), "{checks}: {errors}");
    }
}

/// Whatever a client sends, the answer is a decision or a refusal, and it never has the limit of another one.
#[test]
fn random_headers_are_decided_or_refused() {
    let node = node(
        "api: { proxy: caddy, resource: path, consumer: address, cost: 'header:x-cost', strategy: two }",
    );
    let mut numbers = super::same_answers::Numbers(3);
    let pieces = [
        "/", "..", "%2e", "%2F", "%", "\\", "?", "a", "\u{e9}", "1.2.3.4", ",", "::1", "[", "]", ":", "9",
        " ", "\t", "0", "~",
    ];
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..400 {
        let mut value = || -> String {
            let count = numbers.below(6);
            (0..count).map(|_| pieces[numbers.below(pieces.len() as u64) as usize]).collect()
        };
        let (forged, path, cost, other) = (value(), value(), value(), value());
        let cost = if numbers.below(2) == 0 { "1".to_owned() } else { cost };
        let headers = format!(
            "X-Forwarded-For: {forged}, 10.9.8.7\r\nX-Forwarded-Uri: /{path}\r\nX-Cost: {cost}\r\nForwarded: for={other}\r\n"
        );
        let answer = ask(&node, "api", &headers);
        let decided = decided(&answer);
        let known = [(200, "allowed"), (429, "limited"), (403, "never"), (403, "refused")];
        assert!(known.contains(&(decided.0, decided.1)), "{headers}: {answer:?}");
        *seen.entry(decided.1.to_owned()).or_insert(0) += 1;
    }
    // All are requests of one address, whose limit is 2.
    assert_eq!(seen["allowed"], 2, "{seen:?}");
    assert!(seen["refused"] > 50 && seen["limited"] > 0, "{seen:?}");
}
