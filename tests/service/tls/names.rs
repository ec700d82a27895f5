//! Callers that their certificates name, and what they may do.

use super::*;

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
