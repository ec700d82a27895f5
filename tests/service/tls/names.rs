//! Callers that their certificates name, and what they may do.

use super::*;
use weir_testing::eventually_async;

/// The rights of the callers in these tests.
const RULES: &str = "authorize:
  - { callers: ['spiffe://prod/shop'], may: [decide], consumers: [anna] }
  - { callers: [dns:billing.test], may: [debit] }
";

fn authorized(transport: TransportKind, tls: TlsConfig) -> Server {
    let text = format!("{RULES}{}", weir_config::EXAMPLE);
    let authorize = Config::parse(&text, "rules", &ConfigOverrides::default()).unwrap().authorize;
    Server::ready(Config { authorize, ..with_tls(transport, tls) })
}

/// Calls over a new connection.
async fn call_as(
    server: &Server,
    authority: &Authority,
    issued: &Issued,
    consumer: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = connect(server, authority, Some(issued)).await?;
    client.should_allow(ask("burst/x", consumer)).await?;
    Ok(())
}

async fn outcome(
    server: &Server,
    authority: &Authority,
    issued: Option<&Issued>,
    consumer: &str,
) -> &'static str {
    let mut client = connect(server, authority, issued).await.unwrap();
    match client.should_allow(ask("burst/x", consumer)).await {
        Ok(_) => "OK",
        Err(ClientError::Refused { code, .. }) => code,
        Err(error) => panic!("{error}"),
    }
}

/// Each caller may do what the rules say of the name in its certificate, and nothing of it is charged otherwise.
#[tokio::test]
async fn certificates_name_callers() {
    let authority = Authority::create();
    let shop = authority.issue("shop", &["spiffe://prod/shop"]);
    let evil = authority.issue("evil", &["spiffe://prod/shop/evil"]);
    let billing = authority.issue("billing", &["billing.test"]);
    for transport in TRANSPORTS {
        let server = authorized(transport, mutual(&authority, ClientAuth::Optional));
        let outcome = async |issued, consumer| outcome(&server, &authority, issued, consumer).await;
        assert_eq!(outcome(Some(&shop), "anna").await, "OK", "{transport:?}");
        assert_eq!(outcome(Some(&shop), "bob").await, "PERMISSION_DENIED", "{transport:?}");
        assert_eq!(outcome(Some(&evil), "anna").await, "PERMISSION_DENIED", "{transport:?}");
        assert_eq!(outcome(Some(&billing), "anna").await, "PERMISSION_DENIED", "{transport:?}");
        assert_eq!(outcome(None, "anna").await, "UNAUTHENTICATED", "{transport:?}");
        let decided = metric(&server, "weir_decisions_total{strategy=\"burst\",outcome=\"allowed\"}");
        assert!((decided - 1.0).abs() < f64::EPSILON, "{transport:?}: {decided}");
    }
}

/// A certificate is no credential without a name, and its connection ends before a call is answered.
#[tokio::test]
async fn a_certificate_without_a_name_ends_its_connection() {
    let authority = Authority::create();
    // An address is a name of no kind.
    let nameless = authority.issue("nameless", &["192.0.2.1"]);
    for transport in TRANSPORTS {
        let server = serve(transport, mutual(&authority, ClientAuth::Required));
        assert!(call_as(&server, &authority, &nameless, "anna").await.is_err(), "{transport:?}");
        assert!(metric(&server, "weir_refused_calls_total{reason=\"no_name\"}") >= 1.0, "{transport:?}");
        let decided = metric(&server, "weir_decisions_total{strategy=\"burst\",outcome=\"allowed\"}");
        assert!(decided < 1.0, "{transport:?}: {decided}");
    }
}

/// Returns the certificates of both authorities, in one file.
fn both(one: &Authority, other: &Authority) -> Vec<u8> {
    [one, other].map(|authority| std::fs::read(authority.ca_file()).unwrap()).concat()
}

/// An ID of a trust domain needs an authority of that domain, and IDs of unknown domains are refused. DNS names have no
/// domain.
#[tokio::test]
async fn a_trust_domain_has_its_own_authorities() {
    let (own, other) = (Authority::named("prod"), Authority::named("other"));
    let dir = weir_testing::scratch::dir("trust domains");
    let (all, domain) = (dir.path().join("all.pem"), dir.path().join("prod.pem"));
    std::fs::write(&all, both(&own, &other)).unwrap();
    let shop = own.issue("shop", &["spiffe://prod/shop"]);
    let forged = other.issue("shop", &["spiffe://prod/shop"]);
    let unknown = own.issue("dev", &["spiffe://dev/shop"]);
    let billing = other.issue("billing", &["billing.test"]);
    for transport in TRANSPORTS {
        std::fs::copy(own.ca_file(), &domain).unwrap();
        let server = authorized(
            transport,
            TlsConfig {
                client_ca_file: Some(all.clone()),
                trust_domains: [("prod".to_owned(), domain.clone())].into(),
                ..mutual(&own, ClientAuth::Required)
            },
        );
        assert_eq!(outcome(&server, &own, Some(&shop), "anna").await, "OK", "{transport:?}");
        assert_eq!(
            outcome(&server, &own, Some(&billing), "anna").await,
            "PERMISSION_DENIED",
            "{transport:?}"
        );
        for refused in [&forged, &unknown] {
            let served = async || call_as(&server, &own, refused, "anna").await.is_ok();
            assert!(!served().await, "{transport:?}");
        }
        assert!(handshakes(&server, "refused") >= 2.0, "{transport:?}");
        // The domain gets another authority: its connections end, and certificates of that one are valid.
        let mut open = connect(&server, &own, Some(&shop)).await.unwrap();
        open.should_allow(ask("burst/x", "anna")).await.unwrap();
        std::fs::copy(other.ca_file(), &domain).unwrap();
        eventually_async(SOON, "the connection ends", async || {
            open.should_allow(ask("burst/x", "anna")).await.is_err()
        })
        .await;
        assert_eq!(outcome(&server, &own, Some(&forged), "anna").await, "OK", "{transport:?}");
    }
}
