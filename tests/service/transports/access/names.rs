//! Names and credentials: what is presented decides alone, and ends when its file says so.

use weir_testing::{SOON, eventually_async};
use weir_units::Micros;

use super::super::client::{Call, Ends};
use super::super::{CHECK, REFLECTION, SHOULD_ALLOW, STREAM, TRANSPORTS, unary};
use super::Guarded;
use crate::support::grpc::framed;
use crate::support::server::{BASE, ask};

const RULES: &str = "authorize:
  - { callers: [token:admin], may: [decide, inspect] }
  - { callers: [token:shop], may: [decide], consumers: [$caller] }
  - { callers: ['spiffe://prod/*'], may: [decide], consumers: [$caller] }
";

/// A question that only this caller may ask.
fn own(name: &str) -> Call {
    unary(SHOULD_ALLOW, &ask("burst/x", name))
}

#[tokio::test]
async fn a_bad_credential_is_nobody() {
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], "", RULES);
        let good = guarded.bearer("shop");
        let token = good.strip_prefix("Bearer ").unwrap();
        let mut client = guarded.client().await;
        let first = client.call(&own("token:shop")).await;
        assert_eq!(first.code, Some(16), "{transport:?}");
        for value in [
            "",
            "Bearer",
            token,
            &format!("Basic {token}"),
            &format!("Bearer {token},"),
            &format!("Bearer {token}, Bearer {token}"),
            &format!("Bearer {token} x"),
            &format!("Bearer {}", &token[1..]),
            &format!("Bearer {token}x"),
            "Bearer token:shop",
            "Bearer spiffe://prod/shop",
            &format!("Bearer {}", "x".repeat(8 << 10)),
        ] {
            let outcome = client.call(&own("token:shop").with("authorization", value)).await;
            assert_eq!(outcome, first, "{transport:?} {value}");
        }
        let twice = own("token:shop").with("authorization", &good).with("authorization", &good);
        assert_eq!(client.call(&twice).await, first, "{transport:?}");
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let call = own("token:shop").with("authorization", &format!("{scheme} {token}"));
            assert_eq!(client.call(&call).await.code, Some(0), "{transport:?} {scheme}");
        }
        // Neither is the header of a proxy read from others, nor does a token hold for another name.
        let forged = own("spiffe://prod/shop").with("x-forwarded-client-cert", "URI=spiffe://prod/shop");
        assert_eq!(client.call(&forged).await.code, Some(16), "{transport:?}");
        let other = own("token:admin").with("authorization", &good);
        assert_eq!(client.call(&other).await.code, Some(7), "{transport:?}");
        // Health is open, reflection is not.
        assert_eq!(client.call(&Call::new(CHECK, framed(0, b""))).await.code, Some(0), "{transport:?}");
        let reflection = Call::new(REFLECTION, framed(0, b"\x3a\x00"));
        assert_eq!(client.call(&reflection).await.code, Some(16), "{transport:?}");
        let known = client.call(&reflection.with("authorization", &good)).await;
        assert_eq!(known.code, Some(0), "{transport:?}");
    }
}

#[tokio::test]
async fn a_proxy_names_its_callers() {
    let identity = "forwarded_client_cert: { from: [127.0.0.1/32] }";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], identity, RULES);
        let mut client = guarded.client().await;
        let forwarded = |uri: &str, name: &str| own(name).with("x-forwarded-client-cert", uri);
        for (uri, name, code) in [
            ("Hash=1;URI=spiffe://prod/shop", "spiffe://prod/shop", 0),
            ("URI=spiffe://evil/x,URI=spiffe://prod/shop", "spiffe://prod/shop", 0),
            ("URI=spiffe://prod/shop,URI=spiffe://evil/x", "spiffe://prod/shop", 7),
            ("URI=spiffe://prod.evil/shop", "spiffe://prod.evil/shop", 7),
            ("URI=token:shop", "token:shop", 16),
            ("URI=anonymous", "token:shop", 16),
            ("Hash=1", "spiffe://prod/shop", 16),
        ] {
            let outcome = client.call(&forwarded(uri, name)).await;
            assert_eq!(outcome.code, Some(code), "{transport:?} {uri}: {outcome:?}");
        }
        // What one header has proved is no credential in the other.
        let uri = "URI=spiffe://prod/shop";
        assert_eq!(client.call(&forwarded(uri, "spiffe://prod/shop")).await.code, Some(0));
        let swapped = own("spiffe://prod/shop").with("authorization", uri);
        assert_eq!(client.call(&swapped).await.code, Some(16), "{transport:?}");
        // A token decides alone.
        let both = forwarded(uri, "spiffe://prod/shop").with("authorization", &guarded.bearer("shop"));
        assert_eq!(client.call(&both).await.code, Some(7), "{transport:?}");
    }
}

#[tokio::test]
async fn a_token_ends_with_its_line_also_in_an_open_stream() {
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], "", RULES);
        let mut client = guarded.client().await;
        let call = own("token:shop").with("authorization", &guarded.bearer("shop"));
        assert_eq!(client.call(&call).await.code, Some(0), "{transport:?}");
        let stream = Call::new(STREAM, vec![]).with("authorization", &guarded.bearer("shop"));
        let open = client.begin(&Call { ends: Ends::Never, ..stream }).await.unwrap();
        let file = guarded.dir.path().join("tokens");
        let lines = std::fs::read_to_string(&file).unwrap();
        // A mistake keeps the old ones.
        std::fs::write(&file, format!("{lines}nonsense\n")).unwrap();
        std::fs::write(&file, "").unwrap();
        let without: String =
            lines.lines().filter(|line| !line.starts_with("shop")).map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, without).unwrap();
        assert_eq!(open.outcome().await.code, Some(16), "{transport:?}: the stream ends by itself");
        assert_eq!(client.call(&call).await.code, Some(16), "{transport:?}");
        // Two lines of one name overlap; an end is an end.
        let (_, line) = weir_node::access::new_token("shop").unwrap();
        let end = "2024-01-01T01:00:00Z";
        let with_end = lines.replace("shop ", &format!("{line}\nshop ")).replace('\n', &format!(" {end}\n"));
        std::fs::write(&file, with_end).unwrap();
        let is_read = async || client.call(&call).await.code == Some(0);
        eventually_async(SOON, "the file is read again", is_read).await;
        guarded.server.clock.set(Micros(BASE.0 + 3_600_000_000));
        assert_eq!(client.call(&call).await.code, Some(16), "{transport:?}");
    }
}

#[tokio::test]
async fn more_than_a_hundred_failures_a_second_end_a_connection() {
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin"], "", RULES);
        let mut client = guarded.client().await;
        let bad = own("x").with("authorization", "Bearer x");
        let mut refused = 0;
        // A slow machine needs more than one second for them, and is told so.
        while client.call(&bad).await.code == Some(16) {
            refused += 1;
            assert!(refused < 100_000, "{transport:?}: it ends");
        }
        assert!(refused >= 100, "{transport:?}: {refused}");
    }
}

#[tokio::test]
async fn without_rules_whoever_is_known_may_do_all() {
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin"], "", "");
        let mut client = guarded.client().await;
        assert_eq!(client.call(&own("x")).await.code, Some(16), "{transport:?}");
        let known = own("x").with("authorization", &guarded.bearer("admin"));
        assert_eq!(client.call(&known).await.code, Some(0), "{transport:?}");
        let rules = "authorize: [{ callers: [token:admin], may: [inspect] }, { callers: [anonymous], may: [decide], resources: [burst/*] }]";
        let guarded = Guarded::start(transport, &["admin"], "", rules);
        let mut client = guarded.client().await;
        assert_eq!(client.call(&own("x")).await.code, Some(0), "{transport:?}: a rule names anonymous");
        let beyond = unary(SHOULD_ALLOW, &ask("other/x", "x"));
        assert_eq!(client.call(&beyond).await.code, Some(16), "{transport:?}: nobody else is told of rights");
    }
}

#[test]
fn the_admin_port_is_closed_where_the_server_has_identity() {
    let rules = "authorize:
  - { callers: [token:admin], may: [inspect, usage] }
  - { callers: [token:shop], may: [usage], strategies: [burst] }
";
    let guarded = Guarded::start(TRANSPORTS[0], &["admin", "shop"], "", rules);
    let server = &guarded.server;
    for open in ["/livez", "/readyz", "/ui", "/ui/page.js", "/ui/page.css"] {
        assert_eq!(server.get(open).0, 200, "{open}");
    }
    for closed in ["/", "/metrics", "/ui/data", "/nothing"] {
        assert_eq!(server.get(closed).0, 401, "{closed}");
    }
    let as_holder = |path: &str, name: &str| server.get_as(path, &guarded.bearer(name)).0;
    assert_eq!((as_holder("/metrics", "admin"), as_holder("/ui/data", "admin")), (200, 200));
    assert_eq!((as_holder("/metrics", "shop"), as_holder("/ui/data", "shop")), (403, 200));
    assert_eq!(server.get_as("/metrics", "Bearer x").0, 401);
}
