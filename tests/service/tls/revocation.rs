//! Revocation lists: the certificates that they are about, and lists that are missing or have expired.

use super::*;
use weir_config::{CrlConfig, CrlDepth, CrlExpired, CrlUnknown};
use weir_testing::scratch;

/// Serves with these lists, and tells whether a client with this certificate is served.
async fn is_served_under(
    authority: &Authority,
    lists: &[PathBuf],
    client_crl: CrlConfig,
    issued: &Issued,
) -> bool {
    let dir = scratch::dir("lists");
    let all: Vec<u8> = lists.iter().flat_map(|list| std::fs::read(list).unwrap()).collect();
    let file = scratch::file(dir.path(), "lists.pem", all);
    let server = serve(TransportKind::Fast, TlsConfig { client_crl, ..revoking(authority, file) });
    is_served(&server, authority, Some(issued)).await
}

/// By default only the client's own certificate is looked up.
#[tokio::test]
async fn the_whole_chain_is_looked_up_where_it_is_configured() {
    let root = Authority::named("root");
    let (good, revoked) = (root.intermediate("good", 7, 3600), root.intermediate("revoked", 8, 3600));
    let [by_good, by_revoked] = [&good, &revoked].map(|one| one.issue("client", &["client"]));
    let gone = good.issue("gone", &["client"]);
    let lists = [root.revoke(&[8]), good.revoke(&[gone.serial]), revoked.revoke(&[])];
    let leaf = CrlConfig::default();
    assert_eq!(leaf.depth, CrlDepth::Leaf);
    let chain = CrlConfig { depth: CrlDepth::Chain, ..leaf };
    for (config, issued, expected) in [
        (leaf, &by_good, true),
        (leaf, &by_revoked, true),
        (leaf, &gone, false),
        (chain, &by_good, true),
        (chain, &by_revoked, false),
        (chain, &gone, false),
    ] {
        let served = is_served_under(&root, &lists, config, issued).await;
        assert_eq!(served, expected, "{config:?} {:?}", issued.cert);
    }
}

#[tokio::test]
async fn a_missing_list_refuses_and_an_expired_one_warns_unless_configured_otherwise() {
    let (authority, other) = (Authority::create(), Authority::named("somebody else"));
    let issued = authority.issue("client", &["client"]);
    let unknown = [other.revoke(&[])];
    let expired = [authority.revoke_until(&[], 1_000_000_000)];
    let default = CrlConfig::default();
    for (lists, config, expected) in [
        (&unknown, default, false),
        (&unknown, CrlConfig { unknown: CrlUnknown::Allow, ..default }, true),
        (&expired, default, true),
        (&expired, CrlConfig { expired: CrlExpired::Refuse, ..default }, false),
    ] {
        let served = is_served_under(&authority, lists, config, &issued).await;
        assert_eq!(served, expected, "{config:?}");
    }
}

/// The earliest end of the chain counts, not only that of the client's own certificate.
#[tokio::test]
async fn a_connection_ends_with_an_intermediate_certificate() {
    let root = Authority::named("root");
    let short = root.intermediate("short", 9, 3);
    let issued = short.issue("client", &["client"]);
    let server = serve(TransportKind::Fast, mutual(&root, ClientAuth::Required));
    let config = client_files(&root, Some(&issued));
    let mut raw = Raw::connect(server.grpc, Arc::clone(&config)).unwrap();
    assert!(raw.ask(PREFACE).unwrap() > 0);
    let mut rest = Vec::new();
    let _ = Stream::new(&mut raw.tls, &mut raw.socket).read_to_end(&mut rest);
    assert!(rest.windows(9).any(|frame| frame[3] == 7), "no GOAWAY in {rest:?}");
    // The session of this ticket has the same chain.
    let resumed = Raw::connect(server.grpc, config).and_then(|mut raw| raw.ask(PREFACE));
    assert!(!matches!(resumed, Ok(1..)), "{resumed:?}");
}
