//! The settings that make a server ask who calls, and the headers that it reads.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use weir_config::{Config, ConfigOverrides};
use weir_grpc::{Intercept, KeptHeaders, Peer, PeerAddress, PeerCertificate};
use weir_node::access::{AccessMetrics, CallerAccess, RefusalReason};
use weir_testing::certificates::{Authority, SanType, certificate_with, dns, uri};
use weir_time::clock::Clock;

use super::super::SHOULD_ALLOW;
use crate::support::scratch;

const STRATEGIES: &str =
    "strategies: { a: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/s, burst: 5 } }] } }";

fn parse(text: &str) -> Config {
    let text = format!("{text}\n{STRATEGIES}");
    Config::parse(&text, "identity", &ConfigOverrides::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Any of three sections gives a server identity.
#[test]
fn a_server_has_identity_by_three_sections() {
    let authority = Authority::create();
    let issued = authority.issue("server", &["weir.test"]);
    let tls = |auth: &str| {
        let (cert, key, ca) = (issued.cert.display(), issued.key.display(), authority.ca_file());
        format!(
            "{{ cert_file: {cert}, key_file: {key}, client_ca_file: {}, client_auth: {auth} }}",
            ca.display()
        )
    };
    let plain = format!("{{ cert_file: {}, key_file: {} }}", issued.cert.display(), issued.key.display());
    for (text, expected) in [
        (String::new(), false),
        (format!("server: {{ tls: {plain} }}"), false),
        ("server: { identity: { forwarded_client_cert: { from: [127.0.0.1/32] } } }".to_owned(), true),
        ("authorize: [{ callers: [anonymous], may: [decide] }]".to_owned(), true),
        (format!("server: {{ tls: {} }}", tls("optional")), true),
        (format!("server: {{ tls: {} }}", tls("required")), true),
        (format!("server: {{ admin_tls: {} }}", tls("optional")), true),
    ] {
        let config = parse(&text);
        assert_eq!(config.has_identity(), expected, "{text}");
        let access = CallerAccess::from_config(&config, Clock::System, Arc::default()).unwrap();
        assert_eq!(access.is_some(), expected, "{text}");
    }
}

/// The checks of one connection, with a certificate for these names or without one.
fn is_allowed(config: &Config, sans: Option<Vec<SanType>>, headers: &[(&'static str, &str)]) -> bool {
    let access = CallerAccess::from_config(config, Clock::System, Arc::default()).unwrap().unwrap();
    let intercept: Arc<dyn Intercept> = access.intercept();
    let mut peer = Peer::new(PeerAddress::Tcp(([127, 0, 0, 1], 1).into()));
    if let Some(sans) = sans {
        let certificate = PeerCertificate::new([certificate_with("x", sans)]).unwrap();
        peer = peer.with_certificate(Arc::new(certificate));
    }
    let check = intercept.connected(Arc::new(peer));
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    let headers = KeptHeaders::from_headers(&HeaderMap::from_iter(headers), intercept.names());
    check.check(SHOULD_ALLOW, &headers).is_ok()
}

/// Without tokens and JWTs `authorization` is nobody's credential, and with them a bad one is refused.
#[test]
fn authorization_is_read_only_where_something_can_be_in_it() {
    let bad = [("authorization", "Basic x"), ("authorization", "Bearer y")];
    let shop = || Some(vec![uri("spiffe://prod/shop")]);
    let rules = "authorize: [{ callers: ['spiffe://prod/shop', anonymous], may: [decide] }]";
    assert!(is_allowed(&parse(rules), shop(), &bad) && is_allowed(&parse(rules), None, &bad));
    let dir = scratch::dir("identity");
    let tokens = scratch::file(dir.path(), "tokens", "# none\n");
    let identity = format!("server: {{ identity: {{ tokens_file: {} }} }}\n{rules}", tokens.display());
    let config = parse(&identity);
    assert!(is_allowed(&config, shop(), &[]) && is_allowed(&config, None, &[]));
    assert!(!is_allowed(&config, shop(), &bad[1..]) && !is_allowed(&config, None, &bad[1..]));
}

/// A rule fits if it fits one of them, and `$caller` is each of them.
#[test]
fn a_caller_with_several_dns_names_has_all_of_them() {
    use weir_config::AccessRight::Decide;
    use weir_node::access::{CallerName, Explained};
    let names = vec![dns("b.example"), dns("a.example"), dns("*.pods")];
    let name = CallerName::of_certificate(&certificate_with("x", names)).unwrap();
    assert_eq!(name.shown(), "dns:*.pods", "logs show the first by bytes");
    let rules = "authorize: [{ callers: [dns:b.example], may: [decide], consumers: [$caller] }]";
    let config = parse(rules);
    let rights = weir_node::access::rights_of(config.authorize.as_deref(), &name);
    for (consumer, fits) in [
        ("dns:a.example", true),
        ("dns:b.example", true),
        ("dns:*.pods", true),
        ("dns:x.pods", false),
        ("a.example", false),
    ] {
        let explained = rights.explain(Decide, "r", consumer, "s");
        assert_eq!(matches!(explained, Explained::AllowedBy(_)), fits, "{consumer}: {explained:?}");
    }
}

/// A mistake in the claims of a JWT is found before its signature is checked, because the check costs most.
#[test]
fn claims_are_checked_before_the_signature() {
    use serde_json::json;
    use weir_testing::jwt::JwtKeyPair;
    let (known, stranger) = (JwtKeyPair::ed25519("a"), JwtKeyPair::ed25519("a"));
    let dir = scratch::dir("identity");
    let file = scratch::file(dir.path(), "jwks.json", json!({ "keys": [known.jwk()] }).to_string());
    let config = parse(&format!(
        "server: {{ identity: {{ jwt: [{{ jwks_file: {}, issuer: a, audience: weir, algorithms: [EdDSA] }}] }} }}",
        file.display()
    ));
    let metrics = Arc::<AccessMetrics>::default();
    let access = CallerAccess::from_config(&config, Clock::System, Arc::clone(&metrics)).unwrap().unwrap();
    let intercept: Arc<dyn Intercept> = access.intercept();
    let check = intercept.connected(Arc::new(Peer::new(PeerAddress::Unknown)));
    let good = json!({ "iss": "a", "aud": "weir", "sub": "shop", "exp": 253_402_300_799_u64 });
    let changed = |name: &str, value: serde_json::Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let mut refused = [0; RefusalReason::ALL.len()];
    let longest = weir_config::MAX_CALLER - "jwt:a:".len();
    for (claims, reason) in [
        (good.clone(), RefusalReason::Signature),
        (changed("aud", json!("other")), RefusalReason::Claims),
        (changed("iss", json!("other")), RefusalReason::Unknown),
        (changed("exp", json!(1)), RefusalReason::Expired),
        (changed("nbf", json!(253_402_300_799_u64)), RefusalReason::Expired),
        (changed("sub", json!("x".repeat(longest))), RefusalReason::Signature),
        // The name of a caller has a bound.
        (changed("sub", json!("x".repeat(longest + 1))), RefusalReason::Claims),
    ] {
        let value = format!("Bearer {}", stranger.sign(stranger.header(), claims));
        let headers = [(HeaderName::from_static("authorization"), HeaderValue::from_str(&value).unwrap())];
        let headers = KeptHeaders::from_headers(&HeaderMap::from_iter(headers), intercept.names());
        assert!(check.check(SHOULD_ALLOW, &headers).is_err());
        refused[reason as usize] += 1;
        assert_eq!(RefusalReason::ALL.map(|reason| metrics.refused(reason)), refused, "{reason:?}");
    }
}
