//! Clients in other languages that show who they are: a certificate, a token, a JWT.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_node::access::new_token;
use weir_testing::certificates::{Authority, Issued};
use weir_testing::jwt::JwtKeyPair;

use super::address;
use crate::support::clients::{environment, go, node, python, run};
use crate::support::command::{Serve, text, weir};
use crate::support::scratch;

/// The name in the server's certificate.
const NAME: &str = "weir.test";

/// Rules that bind each caller to consumers.
const RULES: &str = "
authorize:
  - { callers: ['spiffe://prod/shop'], may: [decide], consumers: [anna] }
  - { callers: [token:mobile, 'jwt:https://idp.example:*'], may: [decide], consumers: [$caller] }
strategies: { burst: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1000/s, burst: 1000 } }] } }
resources: [{ match: burst/*, strategy: burst }]
";

/// A server of its own process, and the credentials of its callers.
struct Guarded {
    serve: Serve,
    authority: Authority,
    shop: Issued,
    token: String,
    jwt: String,
    dir: TempDir,
}

impl Guarded {
    fn start(transport: &str) -> Self {
        let authority = Authority::create();
        let (server, shop) =
            (authority.issue("server", &[NAME]), authority.issue("shop", &["spiffe://prod/shop"]));
        let dir = scratch::dir("identity");
        let (token, line) = new_token("mobile").unwrap();
        std::fs::write(dir.path().join("tokens"), line).unwrap();
        let key = JwtKeyPair::p256("ec");
        std::fs::write(dir.path().join("jwks"), json!({ "keys": [key.jwk()] }).to_string()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({ "iss": "https://idp.example", "aud": "weir", "sub": "app", "exp": now + 3600 });
        let jwt = key.sign(key.header(), claims);
        let config = format!(
            "server:
  tls: {{ cert_file: {:?}, key_file: {:?}, client_ca_file: {:?}, client_auth: optional }}
  identity:
    tokens_file: tokens
    jwt: [{{ jwks_file: jwks, issuer: https://idp.example, audience: weir, algorithms: [ES256] }}]
{RULES}",
            server.cert,
            server.key,
            authority.ca_file()
        );
        let file = scratch::file(dir.path(), "weir.yaml", config);
        std::fs::write(dir.path().join("token"), &token).unwrap();
        let serve = Serve::start(&["--config", file.to_str().unwrap(), "--transport", transport]);
        Self { serve, authority, shop, token, jwt, dir }
    }

    /// Returns the calls of the clients, and the code that each call must have.
    fn cases(&self) -> String {
        let (cert, key) = (&self.shop.cert, &self.shop.key);
        let bearer = |credential: &str| format!("Bearer {credential}");
        let (token, jwt) = (bearer(&self.token), bearer(&self.jwt));
        let of_jwt = "jwt:https://idp.example:app";
        let cases: [Value; 8] = [
            json!({ "cert": cert, "key": key, "consumer": "anna", "code": "OK" }),
            json!({ "cert": cert, "key": key, "consumer": "bob", "code": "PERMISSION_DENIED" }),
            json!({ "authorization": token, "consumer": "token:mobile", "code": "OK" }),
            json!({ "authorization": token, "consumer": "anna", "code": "PERMISSION_DENIED" }),
            json!({ "authorization": jwt, "consumer": of_jwt, "code": "OK" }),
            json!({ "authorization": jwt, "consumer": "token:mobile", "code": "PERMISSION_DENIED" }),
            // A credential that is presented decides alone.
            json!({ "cert": cert, "key": key, "authorization": bearer("x"), "consumer": "anna", "code": "UNAUTHENTICATED" }),
            json!({ "consumer": "anna", "code": "UNAUTHENTICATED" }),
        ];
        let server = address(&self.serve);
        json!({ "server": server, "ca": self.authority.ca_file(), "name": NAME, "cases": cases }).to_string()
    }
}

#[test]
fn grpcio_from_python_is_known_by_its_credentials() {
    let Some(environment) = environment() else { return };
    for transport in ["fast", "tonic"] {
        let guarded = Guarded::start(transport);
        let mut client = python(&environment);
        client.args(["tests/clients/identity.py", &guarded.cases()]);
        assert!(run(client).stdout.ends_with(b"all ok\n"), "{transport}");
    }
}

#[test]
fn grpc_js_from_node_is_known_by_its_credentials() {
    let Some(environment) = environment() else { return };
    for transport in ["fast", "tonic"] {
        let guarded = Guarded::start(transport);
        let mut client = node(&environment);
        client.args(["tests/clients/identity.js", &guarded.cases(), "proto"]);
        assert!(run(client).stdout.ends_with(b"all ok\n"), "{transport}");
    }
}

#[test]
fn grpc_go_is_known_by_its_credentials() {
    for transport in ["fast", "tonic"] {
        let Some(mut client) = go() else { return };
        let guarded = Guarded::start(transport);
        client.args(["identity", &guarded.cases()]);
        assert!(run(client).stdout.ends_with(b"all ok\n"), "{transport}");
    }
}

/// `weir load` with a certificate, a token, a JWT, and without any of them.
#[test]
fn weir_load_is_known_by_its_credentials() {
    for transport in ["fast", "tonic"] {
        let guarded = Guarded::start(transport);
        let jwt = scratch::file(guarded.dir.path(), "jwt", &guarded.jwt);
        let (shop, ca, token) =
            (&guarded.shop, guarded.authority.ca_file(), guarded.dir.path().join("token"));
        let text_of = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        let certificate =
            ["--tls-cert".to_owned(), text_of(&shop.cert), "--tls-key".to_owned(), text_of(&shop.key)];
        let of_file = |path| ["--token-file".to_owned(), text_of(path)];
        let server = format!("https://{}", address(&guarded.serve));
        let load = |credential: &[String], consumer: &str| {
            let given =
                ["load", "--server", &server, "--tls-ca", ca.to_str().unwrap(), "--tls-server-name", NAME];
            let run = [
                "--resource",
                "burst/x",
                "--consumer",
                consumer,
                "--requests",
                "200",
                "--warm-up",
                "0s",
                "--quiet",
            ];
            let credential: Vec<&str> = credential.iter().map(String::as_str).collect();
            weir(&[&given[..], &run[..], &credential[..]].concat())
        };
        for (credential, consumer) in [
            (&certificate[..], "anna"),
            (&of_file(&token)[..], "token:mobile"),
            (&of_file(&jwt)[..], "jwt:https://idp.example:app"),
        ] {
            let output = load(credential, consumer);
            assert_eq!(output.status.code(), Some(0), "{transport} {consumer}: {}", text(&output.stderr));
        }
        assert_ne!(load(&[], "anna").status.code(), Some(0), "{transport}");
    }
}
