//! Names of certificates: one valid SPIFFE ID, or else the DNS names, and never a name of another kind.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use weir_config::{Config, ConfigOverrides};
use weir_grpc::{Intercept, KeptHeaders, Peer, PeerAddress, PeerCertificate};
use weir_node::access::{CallerAccess, CallerName};
use weir_testing::certificates::{SanType, certificate_with, dns, email, uri};
use weir_time::clock::Clock;

use super::super::SHOULD_ALLOW;

fn names(common_name: &str, sans: Vec<SanType>) -> Option<Vec<String>> {
    let name = CallerName::of_certificate(&certificate_with(common_name, sans))?;
    Some(name.all().map(str::to_owned).collect())
}

#[test]
fn a_certificate_yields_only_names_of_its_own_kinds() {
    let one = |name: &str| Some(vec![name.to_owned()]);
    assert_eq!(names("x", vec![uri("spiffe://prod/shop")]), one("spiffe://prod/shop"));
    let mixed =
        vec![dns("b.example"), uri("https://x.example"), uri("spiffe://prod/shop"), email("a@b.example")];
    assert_eq!(names("x", mixed), one("spiffe://prod/shop"));
    let several = vec![dns("b.example"), dns("A.example"), dns("b.example"), dns("*.ns")];
    let sorted = ["dns:*.ns", "dns:a.example", "dns:b.example"].map(str::to_owned).to_vec();
    assert_eq!(names("x", several), Some(sorted));
    // Each kind's attempt at each other kind's name.
    for claimed in [
        "token:shop",
        "jwt:https://idp.example:shop",
        "uid:0",
        "anonymous",
        "spiffe://prod/shop",
        "dns:shop.example",
    ] {
        assert_eq!(names(claimed, vec![]), None, "the common name {claimed}");
        assert_eq!(names("x", vec![email(claimed)]), None, "{claimed}");
        if !claimed.starts_with("spiffe:") {
            assert_eq!(names("x", vec![uri(claimed)]), None, "{claimed}");
        }
        let of_dns = names("x", vec![dns(claimed)]).into_iter().flatten();
        assert!(of_dns.clone().all(|name| name.starts_with("dns:") && name != claimed), "{claimed}");
    }
    for bad in
        ["spiffe://Prod/shop", "spiffe://prod/../shop", "SPIFFE://prod/shop", "spiffe:prod", "spiffe://prod/"]
    {
        assert_eq!(
            names("x", vec![uri(bad), dns("shop.example")]),
            None,
            "{bad}: it is not clear who this is"
        );
    }
    let two = vec![uri("spiffe://prod/shop"), uri("spiffe://prod/other")];
    assert_eq!(names("x", two), None);
}

/// The checks of a connection with this certificate.
fn connected(intercept: &Arc<dyn Intercept>, certificate: Vec<u8>) -> (Arc<Peer>, bool) {
    let peer = Peer::new(PeerAddress::Unknown);
    let peer = Arc::new(peer.with_certificate(Arc::new(PeerCertificate::new([certificate]).unwrap())));
    let check = intercept.connected(Arc::clone(&peer));
    let allowed = check.check(SHOULD_ALLOW, &KeptHeaders::default()).is_ok();
    // A header of a proxy is ignored: this peer is none.
    let forged = HeaderValue::from_static("URI=spiffe://prod/shop");
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-forwarded-client-cert"), forged)]);
    let headers = KeptHeaders::from_headers(&headers, intercept.names());
    assert_eq!(check.check(SHOULD_ALLOW, &headers).is_ok(), allowed);
    (peer, allowed)
}

#[test]
fn a_certificate_without_a_name_ends_its_connection() {
    let rules = "authorize: [{ callers: ['spiffe://prod/*', dns:shop.example], may: [decide] }]";
    let text = format!("{rules}\n{}", weir_config::EXAMPLE);
    let config = Config::parse(&text, "rules", &ConfigOverrides::default()).unwrap();
    let access = CallerAccess::from_config(&config, Clock::System, Arc::default()).unwrap().unwrap();
    let intercept = access.intercept();
    for (sans, ends, allowed) in [
        (vec![uri("spiffe://prod/shop")], false, true),
        (vec![uri("spiffe://prod.evil/shop")], false, false),
        (vec![dns("other.example"), dns("shop.example")], false, true),
        (vec![dns("other.example")], false, false),
        (vec![email("a@shop.example")], true, false),
        (vec![], true, false),
    ] {
        let shown = format!("{sans:?}");
        let (peer, was_allowed) = connected(&intercept, certificate_with("shop.example", sans));
        assert_eq!((peer.is_disconnected(), was_allowed), (ends, allowed), "{shown}");
    }
}
