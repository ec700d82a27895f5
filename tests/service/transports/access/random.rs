//! Random tokens, JWTs, headers, names and rules: they are read or refused, and nothing panics.

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::json;
use weir_config::{Config, ConfigOverrides, is_spiffe_id};
use weir_grpc::{CheckCalls, KeptHeaders, Peer, PeerAddress};
use weir_node::access::{CallerAccess, CallerName};
use weir_testing::certificates::{certificate_with, dns, uri};
use weir_testing::jwt::JwtKeyPair;
use weir_time::clock::Clock;

use super::super::SHOULD_ALLOW;
use crate::support::scratch;

/// A connection of a proxy, and what its headers are called.
fn proxy() -> (Arc<dyn CheckCalls>, Vec<HeaderName>) {
    static ACCESS: OnceLock<Arc<CallerAccess>> = OnceLock::new();
    let access = ACCESS.get_or_init(|| {
        let dir = scratch::dir("random");
        std::fs::write(dir.path().join("tokens"), "# none\n").unwrap();
        let keys = json!({ "keys": [JwtKeyPair::ed25519("a").jwk()] });
        std::fs::write(dir.path().join("jwks"), keys.to_string()).unwrap();
        let text = "server:
  identity:
    tokens_file: tokens
    jwt: [{ jwks_file: jwks, issuer: a, audience: b, algorithms: [EdDSA] }]
    forwarded_client_cert: { from: [0.0.0.0/0] }
";
        let file = scratch::file(
            dir.path(),
            "weir.yaml",
            format!("{text}{}", weir_config::EXAMPLE.replace("server:", "#")),
        );
        let config =
            Config::load(&file, &ConfigOverrides::default()).unwrap_or_else(|errors| panic!("{errors}"));
        CallerAccess::from_config(&config, Clock::System, Arc::default()).unwrap().unwrap()
    });
    let intercept = access.intercept();
    let peer = Peer::new(PeerAddress::Tcp(([127, 0, 0, 1], 1).into()));
    (intercept.connected(Arc::new(peer)), intercept.names().to_vec())
}

fn is_allowed(name: &'static str, value: &[u8]) -> bool {
    let (check, names) = proxy();
    let Ok(value) = HeaderValue::from_bytes(value) else { return false };
    let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value)]);
    check.check(SHOULD_ALLOW, &KeptHeaders::from_headers(&headers, &names)).is_ok()
}

fn part() -> impl Strategy<Value = String> {
    let claims = prop_oneof![
        "[a-z{}\":,\\[\\]0-9]{0,40}",
        Just("{\"alg\":\"EdDSA\"}".to_owned()),
        Just("{\"iss\":\"a\",\"aud\":\"b\",\"sub\":\"c\",\"exp\":253402300799}".to_owned()),
        Just("{\"iss\":\"a\",\"aud\":[[[]]],\"sub\":{},\"exp\":1e999}".to_owned()),
    ];
    prop_oneof!["[A-Za-z0-9_=-]{0,30}", claims.prop_map(|text| base64url(text.as_bytes()))]
}

fn base64url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

proptest! {
    #[test]
    fn random_credentials_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!is_allowed("authorization", &bytes));
        let with_scheme = [b"Bearer ", &bytes[..]].concat();
        prop_assert!(!is_allowed("authorization", &with_scheme));
    }

    #[test]
    fn random_jwts_are_refused(parts in proptest::collection::vec(part(), 0..6)) {
        let value = format!("Bearer {}", parts.join("."));
        prop_assert!(!is_allowed("authorization", value.as_bytes()));
    }

    #[test]
    fn random_headers_of_proxies_name_only_spiffe_ids(text in "[A-Za-z=;,:/\"\\\\. ]{0,60}|(URI=\"?(spiffe://[a-z./]{0,12})\"?[;,]?){1,3}") {
        if let Some(name) = CallerName::of_forwarded(text.as_bytes()) {
            prop_assert!(is_spiffe_id(name.shown()), "{}: {}", text, name.shown());
        }
    }

    #[test]
    fn damaged_certificates_yield_no_name_of_another_kind(
        at in any::<proptest::sample::Index>(),
        to in any::<u8>(),
        cut in any::<proptest::sample::Index>(),
    ) {
        static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
        let good = GOOD.get_or_init(|| {
            certificate_with("token:x", vec![dns("shop.example"), uri("spiffe://prod/shop"), dns("uid:0")])
        });
        let mut damaged = good.clone();
        let at = at.index(damaged.len());
        damaged[at] = to;
        for bytes in [&damaged[..], &good[..cut.index(good.len())]] {
            for name in CallerName::of_certificate(bytes).iter().flat_map(CallerName::all) {
                prop_assert!(is_spiffe_id(name) || name.starts_with("dns:"), "{}", name);
            }
        }
    }

    #[test]
    fn random_rules_are_read_or_refused(
        callers in proptest::collection::vec("[a-z:/*.$ -]{0,12}|spiffe://[a-z]{1,3}/[*a-z]{0,3}|token:[a-z*]{0,4}", 0..3),
        may in proptest::collection::vec("decide|lease|envoy|refund|control|[a-z]{1,4}", 0..3),
        entries in proptest::collection::vec("[a-z*$]{0,6}|\\$caller", 0..3),
        caller in "[a-z:/*.]{0,12}|spiffe://[a-z]{1,3}/[a-z]{0,3}",
    ) {
        let list = |items: &[String]| items.iter().map(|item| format!("'{item}'")).collect::<Vec<_>>().join(", ");
        let text = format!(
            "authorize: [{{ callers: [{}], may: [{}], consumers: [{}] }}]\n{}",
            list(&callers), list(&may), list(&entries), weir_config::EXAMPLE
        );
        if let Ok(config) = Config::parse(&text, "rules", &ConfigOverrides::default()) {
            let rights = weir_node::access::rights_of(config.authorize.as_deref(), &CallerName::one(&caller));
            let _ = rights.explain(weir_config::AccessRight::Decide, "r", &caller, "s");
        }
    }
}
