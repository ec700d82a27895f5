//! Callers, rights and TLS: those of gRPC.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use weir_testing::{SOON, eventually};

use super::support::{STRATEGIES, TestAnswer, TestNode};

const ALLOW: &str = "/weir.v1.RateLimitService/ShouldAllow";
const BOB: &str = r#"{"resource":"two","consumer":"bob"}"#;

const RULES: &str = "
authorize:
  - { callers: ['token:shop'], may: [decide], consumers: [bob] }
  - { callers: ['token:ops'], may: [inspect, usage] }
";

/// Writes a file of tokens, and returns the token of each name.
fn tokens<const N: usize>(folder: &Path, names: [&str; N]) -> (String, [String; N]) {
    let made = names.map(|name| weir_node::access::new_token(name).unwrap());
    let file = folder.join("tokens");
    let lines: Vec<&str> = made.iter().map(|(_, line)| line.as_str()).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    (file.display().to_string(), made.map(|(token, _)| token))
}

#[test]
fn rights_are_those_of_grpc() {
    let folder = tempfile::tempdir().unwrap();
    let (file, [shop, ops]) = tokens(folder.path(), ["shop", "ops"]);
    let node = TestNode::start(&format!(
        "server: {{ listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 0s, identity: {{ tokens_file: {file} }} }}
{STRATEGIES}{RULES}
http: {{ listen: '127.0.0.1:0', checks: {{ api: {{ proxy: caddy, resource: two, consumer: 'text:bob' }} }} }}
"
    ));
    let ask = |headers: &str, body: &str| {
        let answer = node.post(ALLOW, &format!("Content-Type: application/json\r\n{headers}"), body);
        let code = if answer.status == 200 { String::new() } else { answer.code() };
        (answer.status, code, answer.header("www-authenticate").map(str::to_owned))
    };
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let unauthenticated = (401, "unauthenticated".to_owned(), Some("Bearer".to_owned()));
    assert_eq!(ask("", BOB), unauthenticated);
    assert_eq!(ask(&bearer("wrong"), BOB), unauthenticated);
    assert_eq!(ask(&(bearer(&shop) + &bearer(&shop)), BOB), unauthenticated);
    assert_eq!(ask(&bearer(&shop), BOB), (200, String::new(), None));
    let denied = (403, "permission_denied".to_owned(), None);
    assert_eq!(ask(&bearer(&ops), BOB), denied);
    assert_eq!(ask(&bearer(&shop), r#"{"resource":"two","consumer":"carol"}"#), denied);
    // A check is asked by the proxy, with a credential of its own; it is never 401, which the proxy might pass on.
    let check = |headers: &str| {
        let request = format!("GET /check/api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
        let answer = TestAnswer::parse(&node.raw(request));
        (answer.status, answer.header("weir-decision").unwrap().to_owned())
    };
    assert_eq!(check(""), (403, "refused".to_owned()));
    assert_eq!(check("X-Forwarded-Client-Cert: URI=spiffe://prod/shop\r\n"), (403, "refused".to_owned()));
    assert_eq!(check(&bearer(&ops)), (403, "refused".to_owned()));
    assert_eq!(check(&bearer(&shop)), (200, "allowed".to_owned()));
    let open = node.raw("GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(open.starts_with("HTTP/1.1 200"), "{open}");
}

/// A token that leaves the file is refused from then on, also on a connection that was kept.
#[test]
fn a_removed_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, [shop, ops]) = tokens(folder.path(), ["shop", "ops"]);
    let config = folder.path().join("weir.yaml");
    let server = "listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 0s";
    std::fs::write(
        &config,
        format!("server: {{ {server}, identity: {{ tokens_file: {file} }} }}\nhttp: {{ listen: '127.0.0.1:0' }}\n{STRATEGIES}{RULES}"),
    )
    .unwrap();
    let node = TestNode::start_with_file(&config);
    let kept = std::net::TcpStream::connect(node.http).unwrap();
    let ask = |token: &str| {
        let head = format!(
            "POST {ALLOW} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{BOB}",
            BOB.len()
        );
        (&kept).write_all(head.as_bytes()).unwrap();
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.ends_with('}') {
            let read = (&kept).read(&mut buffer).unwrap();
            assert!(read > 0, "{text}");
            text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        TestAnswer::parse(&text).status
    };
    assert_eq!((ask(&shop), ask(&ops)), (200, 403));
    let lines = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, lines.lines().filter(|line| !line.starts_with("shop")).collect::<String>() + "\n")
        .unwrap();
    eventually(SOON, "the token is gone", || ask(&shop) == 401);
    assert_eq!(ask(&ops), 403);
}

/// The header of a trusted proxy names the caller of a call, as on gRPC; never that of a check.
#[test]
fn callers_are_named_by_their_proxy() {
    let node = |from: &str| {
        TestNode::start(&format!(
            "server: {{ listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 0s, identity: {{ forwarded_client_cert: {{ from: [{from}] }} }} }}
{STRATEGIES}authorize: [{{ callers: ['spiffe://prod/shop'], may: [decide] }}]
http: {{ listen: '127.0.0.1:0', checks: {{ api: {{ proxy: caddy, resource: two, consumer: 'text:bob' }} }} }}
"
        ))
    };
    let named = "X-Forwarded-Client-Cert: By=spiffe://mesh/weir;URI=spiffe://prod/shop\r\n";
    let ask = |node: &TestNode, headers: &str| {
        node.post(ALLOW, &format!("Content-Type: application/json\r\n{headers}"), BOB).status
    };
    let trusting = node("127.0.0.1/32");
    assert_eq!((ask(&trusting, named), ask(&trusting, "")), (200, 401));
    assert_eq!(ask(&trusting, &named.replace("shop", "other")), 403);
    assert_eq!(ask(&node("10.0.0.0/8"), named), 401);
    let check = format!("GET /check/api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{named}\r\n");
    assert!(trusting.raw(check).starts_with("HTTP/1.1 403"));
}

/// Refused calls and checks have a line in the audit, with their caller or address: those of gRPC.
#[test]
fn refusals_are_audited() {
    let folder = tempfile::tempdir().unwrap();
    let (file, [shop, ops]) = tokens(folder.path(), ["shop", "ops"]);
    let audit = folder.path().join("audit.jsonl");
    let node = TestNode::start(&format!(
        "server: {{ listen: '127.0.0.1:0', admin: '127.0.0.1:0', workers: 1, drain_delay: 0s, admin_service: true, audit_file: {}, identity: {{ tokens_file: {file} }} }}
{STRATEGIES}{RULES}
http: {{ listen: '127.0.0.1:0', checks: {{ api: {{ proxy: caddy, resource: two, consumer: 'text:carol' }} }} }}
",
        audit.display()
    ));
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let json = "Content-Type: application/json\r\n";
    let reset = "/weir.v1.AdminService/Reset";
    assert_eq!(node.post(reset, json, "{}").status, 401);
    assert_eq!(node.post(reset, &(bearer(&shop) + json), "{}").status, 403);
    // A question about somebody else's consumer, and one of a proxy whose credential may not decide.
    let carol = r#"{"resource":"two","consumer":"carol"}"#;
    assert_eq!(node.post(ALLOW, &(bearer(&shop) + json), carol).status, 403);
    let check = |token: &str| {
        node.raw(format!("GET /check/api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}\r\n", bearer(token)))
    };
    assert!(check(&ops).starts_with("HTTP/1.1 403"));
    assert!(check("wrong").starts_with("HTTP/1.1 403"));
    let wanted = [
        ("Reset", "127.0.0.1:", "anonymous"),
        ("Reset", "token:shop", "rights"),
        ("ShouldAllow", "token:shop", "rights"),
        ("ShouldAllow", "token:ops", "rights"),
        ("ShouldAllow", "127.0.0.1:", "unknown"),
    ];
    let mut lines = Vec::new();
    eventually(SOON, "the lines are written", || {
        let text = std::fs::read_to_string(&audit).unwrap();
        lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
        lines.len() >= wanted.len()
    });
    for (line, (method, by, reason)) in lines.iter().zip(wanted) {
        assert_eq!(
            (&line["audit"], &line["method"], &line["reason"]),
            (&json!("refused"), &json!(method), &json!(reason))
        );
        assert!(line["by"].as_str().unwrap().starts_with(by), "{line}");
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    }
}

/// curl verifies the certificate, and speaks HTTP/1.1, which ALPN names.
#[test]
fn tls_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let node = TestNode::start(&format!(
        "{STRATEGIES}http: {{ listen: '127.0.0.1:0', tls: {{ cert_file: {}, key_file: {} }} }}",
        cert.display(),
        key.display()
    ));
    let url = format!("https://localhost:{}{ALLOW}", node.http.port());
    let mut curl = Command::new("curl");
    curl.args([
        "-sS",
        "-v",
        "--noproxy",
        "*",
        "--resolve",
        &format!("localhost:{}:127.0.0.1", node.http.port()),
    ]);
    curl.args(["--cacert"]).arg(&cert).args(["-H", "Content-Type: application/json", "-d", BOB, &url]);
    let asked = curl.output().unwrap();
    let (answer, log) = (String::from_utf8_lossy(&asked.stdout), String::from_utf8_lossy(&asked.stderr));
    assert!(answer.starts_with("{\"allowed\":true,"), "{answer}\n{log}");
    assert!(log.contains("http/1.1"), "{log}");
    // Plain text gets no answer.
    assert_eq!(node.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "");
    let counted = |result: &str| {
        node.metrics().contains(&format!("weir_tls_handshakes_total{{result=\"{result}\"}} 1\n"))
    };
    eventually(SOON, "both handshakes are counted", || counted("done") && counted("plain_text"));
}

/// A client without a certificate of the authority is refused by the handshake, and counted.
#[test]
fn clients_without_a_certificate_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (shown, key) = (cert.display(), key.display());
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/certificates/ca.pem");
    let node = TestNode::start(&format!(
        "{STRATEGIES}authorize: [{{ callers: [anonymous], may: [inspect] }}]
http: {{ listen: '127.0.0.1:0', tls: {{ cert_file: {shown}, key_file: {key}, client_ca_file: {authority}, client_auth: required }} }}"
    ));
    let port = node.http.port();
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--noproxy", "*", "--resolve", &format!("localhost:{port}:127.0.0.1")]);
    curl.arg("--cacert").arg(&cert).arg(format!("https://localhost:{port}/openapi.json"));
    let asked = curl.output().unwrap();
    assert!(!asked.status.success() && asked.stdout.is_empty(), "{asked:?}");
    eventually(SOON, "the refusal is counted", || {
        node.metrics().contains("weir_tls_handshakes_total{result=\"refused\"} 1\n")
    });
}
