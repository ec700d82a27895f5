//! JWTs: who they name, and each way in which they are refused.

use serde_json::{Value, json};
use weir_testing::jwt::JwtKeyPair;
use weir_testing::scratch;

use super::super::client::Call;
use super::super::{SHOULD_ALLOW, TRANSPORTS, unary};
use super::Guarded;
use crate::support::server::{BASE, ask};

const ISSUER: &str = "https://idp.example";

fn claims() -> Value {
    let now = BASE.0 / 1_000_000;
    json!({ "iss": ISSUER, "aud": ["other", "weir"], "sub": "shop", "exp": now + 60, "nbf": now })
}

fn with(claims: Value, name: &str, value: Value) -> Value {
    let mut claims = claims;
    claims[name] = value;
    claims
}

fn without(claims: Value, name: &str) -> Value {
    let mut claims = claims;
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn own() -> Call {
    unary(SHOULD_ALLOW, &ask("burst/x", "jwt:https://idp.example:shop"))
}

#[tokio::test]
async fn a_jwt_names_its_caller_and_everything_in_it_is_checked() {
    let rules = "authorize:
  - { callers: [token:admin], may: [inspect] }
  - { callers: ['jwt:https://idp.example:*'], may: [decide], consumers: [$caller] }
";
    let rsa = JwtKeyPair::rsa("rsa", include_str!("../../../certificates/rsa2048.key"));
    let keys = [JwtKeyPair::ed25519("ed"), JwtKeyPair::p256("ec"), rsa];
    let dir = crate::support::scratch::dir("jwks");
    let file = crate::support::scratch::file(
        dir.path(),
        "jwks.json",
        json!({ "keys": keys.each_ref().map(JwtKeyPair::jwk) }).to_string(),
    );
    let identity = format!(
        "jwt: [{{ jwks_file: {}, issuer: '{ISSUER}', audience: weir, algorithms: [EdDSA, ES256, RS256] }}]",
        file.display()
    );
    let now = BASE.0 / 1_000_000;
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin"], &identity, rules);
        let mut client = guarded.client().await;
        let mut code = async |token: &str| {
            client.call(&own().with("authorization", &format!("Bearer {token}"))).await.code
        };
        for key in &keys {
            assert_eq!(code(&key.sign(key.header(), claims())).await, Some(0), "{transport:?}");
            let mut header = key.header();
            header.as_object_mut().unwrap().remove("kid");
            assert_eq!(code(&key.sign(header, claims())).await, Some(0), "{transport:?}: one key fits");
        }
        let key = &keys[0];
        let sign = |claims| key.sign(key.header(), claims);
        assert_eq!(code(&sign(with(claims(), "aud", json!("weir")))).await, Some(0));
        assert_eq!(code(&sign(with(claims(), "exp", json!(now - 29)))).await, Some(0), "leeway");
        assert_eq!(code(&sign(with(claims(), "nbf", json!(now + 30)))).await, Some(0), "leeway");
        for bad in [
            with(claims(), "exp", json!(now - 30)),
            with(claims(), "exp", json!("later")),
            with(claims(), "nbf", json!(now + 31)),
            with(claims(), "nbf", json!("x")),
            with(claims(), "iss", json!("https://other.example")),
            with(claims(), "iss", json!([ISSUER])),
            with(claims(), "aud", json!("other")),
            with(claims(), "aud", json!(7)),
            with(claims(), "sub", json!(7)),
            with(claims(), "sub", json!("")),
            with(claims(), "sub", json!("a\nb")),
            without(claims(), "exp"),
            without(claims(), "iss"),
            without(claims(), "aud"),
            without(claims(), "sub"),
        ] {
            assert_eq!(code(&sign(bad.clone())).await, Some(16), "{transport:?} {bad}");
        }
        for (name, value) in [
            ("alg", json!("none")),
            ("alg", json!("HS256")),
            ("alg", json!("RS256")),
            ("alg", json!("ES256")),
            ("crit", json!(["exp"])),
            ("kid", json!("ec")),
            ("kid", json!("nobody")),
            ("kid", json!(1)),
            ("enc", json!("A256GCM")),
        ] {
            let header = with(key.header(), name, value);
            assert_eq!(code(&key.sign(header.clone(), claims())).await, Some(16), "{transport:?} {header}");
        }
        // A key that the token itself brings along is never used.
        let stranger = JwtKeyPair::ed25519("ed");
        for (name, value) in [
            ("jwk", stranger.jwk()),
            ("jku", json!("https://evil.example/jwks.json")),
            ("x5u", json!("https://evil.example/cert.pem")),
            ("x5c", json!(["AAAA"])),
        ] {
            let header = with(stranger.header(), name, value.clone());
            assert_eq!(code(&stranger.sign(header, claims())).await, Some(16), "{transport:?} {name}");
            let header = with(key.header(), name, value);
            assert_eq!(code(&key.sign(header, claims())).await, Some(0), "{transport:?} {name}: ignored");
        }
        let good = sign(claims());
        let twice = key.sign_text(
            &key.header().to_string(),
            &claims().to_string().replacen('{', "{\"sub\":\"admin\",", 1),
        );
        for bad in [
            &good[1..],
            &good[..good.len() - 2],
            &format!("{good}."),
            &format!("{good}.x.y"),
            good.rsplit_once('.').unwrap().0,
            &format!("{}.", good.rsplit_once('.').unwrap().0),
            &twice,
            "a.b.c",
            "..",
        ] {
            assert_eq!(code(bad).await, Some(16), "{transport:?} {bad}");
        }
    }
}

/// Without a `kid` it is not clear which of several keys is meant.
#[tokio::test]
async fn without_a_key_id_exactly_one_key_must_fit() {
    let rules = "authorize:
  - { callers: [token:admin], may: [inspect] }
  - { callers: ['jwt:https://idp.example:*'], may: [decide] }
";
    let (one, other, ec) = (JwtKeyPair::ed25519("one"), JwtKeyPair::ed25519("other"), JwtKeyPair::p256("ec"));
    let dir = crate::support::scratch::dir("jwks");
    let keys = json!({ "keys": [one.jwk(), other.jwk(), ec.jwk()] });
    let file = scratch::file(dir.path(), "jwks.json", keys.to_string());
    let identity = format!(
        "jwt: [{{ jwks_file: {}, issuer: '{ISSUER}', audience: weir, algorithms: [EdDSA, ES256] }}]",
        file.display()
    );
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin"], &identity, rules);
        let mut client = guarded.client().await;
        for (key, named, unnamed) in [(&one, 0, 16), (&other, 0, 16), (&ec, 0, 0)] {
            let mut header = key.header();
            for code in [named, unnamed] {
                let token = format!("Bearer {}", key.sign(header.clone(), claims()));
                let outcome = client.call(&own().with("authorization", &token)).await;
                assert_eq!(outcome.code, Some(code), "{transport:?} {header}");
                header.as_object_mut().unwrap().remove("kid");
            }
        }
    }
}

/// Tokens that a worker does not know wait for its time; one that it knows goes on.
#[tokio::test]
async fn too_many_new_signatures_are_refused_and_known_tokens_go_on() {
    const TOKENS: usize = 4000;
    let rules = "authorize:
  - { callers: [token:admin], may: [inspect] }
  - { callers: ['jwt:https://idp.example:*'], may: [decide] }
";
    let key = JwtKeyPair::p256("ec");
    let dir = crate::support::scratch::dir("jwks");
    let file =
        crate::support::scratch::file(dir.path(), "jwks.json", json!({ "keys": [key.jwk()] }).to_string());
    let identity = format!(
        "jwt: [{{ jwks_file: {}, issuer: '{ISSUER}', audience: weir, algorithms: [ES256] }}]",
        file.display()
    );
    let of = |caller: &str| {
        let token = key.sign(key.header(), with(claims(), "sub", json!(caller)));
        unary(SHOULD_ALLOW, &ask("burst/x", caller)).with("authorization", &format!("Bearer {token}"))
    };
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin"], &identity, rules);
        let mut client = guarded.client().await;
        let known = of("known");
        assert_eq!(client.call(&known).await.code, Some(0));
        let others: Vec<Call> = (0..TOKENS).map(|index| of(&format!("caller {index}"))).collect();
        let mut refused = 0;
        for some in others.chunks(50) {
            let mut open = Vec::new();
            for call in some {
                open.push(client.begin(call).await.expect("the connection stays"));
            }
            for call in open {
                let outcome = call.outcome().await;
                match outcome.code {
                    Some(0) => {}
                    Some(14) => refused += 1,
                    _ => panic!("{transport:?}: {outcome:?}"),
                }
            }
            assert_eq!(client.call(&known).await.code, Some(0), "{transport:?}");
            if refused > 0 {
                break;
            }
        }
        assert!(refused > 0, "{transport:?}: {TOKENS} signatures in a row leave no time for calls");
        assert_eq!(guarded.refused("busy"), refused, "{transport:?}");
    }
}
