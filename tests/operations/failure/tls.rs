//! Redis over TLS: trusted, or refused with a reason; never in the clear.

use weir_config::{ClientFiles, Identity};
use weir_config::{RedisConfig, Topology};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_units::Micros;

use super::{allow, charge, config, shared, store_unwatched};
use crate::support::certificates::{Authority, Issued};
use crate::support::{RedisServer, SOON, eventually, ports, watched};

/// A server with TLS on a second port; the first is the test's own way in.
struct Secured {
    redis: RedisServer,
    url: String,
}

fn secured(authority: &Authority, issued: &Issued, clients: bool, more: &[&str]) -> Secured {
    let port = ports::free();
    let mut builder = RedisServer::builder();
    for arg in authority.redis_args(port, issued, clients) {
        builder = builder.arg(arg);
    }
    let builder = more.iter().fold(builder, |builder, arg| builder.arg(*arg));
    Secured { redis: builder.start(), url: format!("rediss://127.0.0.1:{port}") }
}

fn trusting(authority: &Authority, url: &str) -> RedisConfig {
    let files = ClientFiles { ca_file: Some(authority.ca_file()), identity: None };
    RedisConfig { tls: Some(files), ..config(vec![url.to_owned()], Topology::Single) }
}

async fn refused(config: &RedisConfig) -> String {
    let store = store_unwatched(config);
    match allow(&store, "r").await {
        Err(StoreError::Unavailable(why)) => why.to_string(),
        other => panic!("{other:?} instead of a refusal"),
    }
}

#[tokio::test]
async fn a_trusted_server_decides() {
    let authority = Authority::create();
    let issued = authority.issue("server", &["127.0.0.1", "localhost"]);
    let secured = secured(&authority, &issued, false, &[]);
    let store = watched(&shared(&trusting(&authority, &secured.url))).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    let by_name = secured.url.replace("127.0.0.1", "localhost");
    let store = watched(&shared(&trusting(&authority, &by_name))).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_998));
}

#[tokio::test]
async fn a_server_that_wants_to_know_us() {
    let authority = Authority::create();
    let issued = authority.issue("server", &["127.0.0.1"]);
    let secured = secured(&authority, &issued, true, &[]);
    let anonymous = trusting(&authority, &secured.url);
    let why = refused(&anonymous).await;
    assert!(!why.is_empty(), "{why}");
    let Issued { cert, key, .. } = authority.issue("client", &["weir"]);
    let identity = Some(Identity { cert_file: cert, key_file: key });
    let files = ClientFiles { ca_file: Some(authority.ca_file()), identity };
    let store = watched(&shared(&RedisConfig { tls: Some(files), ..anonymous })).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
}

#[tokio::test]
async fn what_is_not_trusted_is_refused() {
    let (authority, other) = (Authority::create(), Authority::create());
    let issued = authority.issue("server", &["127.0.0.1"]);
    let server = secured(&authority, &issued, false, &[]);
    let why = refused(&trusting(&other, &server.url)).await;
    assert!(why.contains("TLS handshake failed: invalid peer certificate"), "{why}");

    let expired = authority.issue_until("expired", &["127.0.0.1"], 2020);
    let old = secured(&authority, &expired, false, &[]);
    let why = refused(&trusting(&authority, &old.url)).await;
    assert!(why.contains("TLS handshake failed: invalid peer certificate: certificate expired"), "{why}");

    let elsewhere = authority.issue("elsewhere", &["redis.example"]);
    let misnamed = secured(&authority, &elsewhere, false, &[]);
    let why = refused(&trusting(&authority, &misnamed.url)).await;
    assert!(
        why.contains("TLS handshake failed: invalid peer certificate: certificate not valid for name"),
        "{why}"
    );
    assert!(server.redis.keys().is_empty() && old.redis.keys().is_empty());
}

/// Without the check of the name, the chain and the dates are still checked.
#[tokio::test]
async fn a_certificate_for_another_name_if_that_is_wanted() {
    let (authority, other) = (Authority::create(), Authority::create());
    let elsewhere = authority.issue("elsewhere", &["redis.example"]);
    let misnamed = secured(&authority, &elsewhere, false, &[]);
    let lenient = |of: &Authority, url: &str| RedisConfig { check_host_name: false, ..trusting(of, url) };
    let store = watched(&shared(&lenient(&authority, &misnamed.url))).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    let why = refused(&lenient(&other, &misnamed.url)).await;
    assert!(why.contains("invalid peer certificate"), "{why}");
    let expired = authority.issue_until("expired", &["redis.example"], 2020);
    let old = secured(&authority, &expired, false, &[]);
    let why = refused(&lenient(&authority, &old.url)).await;
    assert!(why.contains("certificate expired"), "{why}");
}

/// No fallback: a server that speaks no TLS gets no command.
#[tokio::test]
async fn a_plaintext_server_is_refused() {
    let (redis, authority) = (RedisServer::start(), Authority::create());
    let config = trusting(&authority, &redis.url().replace("redis://", "rediss://"));
    let config = RedisConfig { connect_timeout: Micros::from_millis(50), ..config };
    let why = refused(&config).await;
    assert!(why.contains("no answer within 50ms; does this port speak TLS?"), "{why}");
    assert!(redis.keys().is_empty());
    assert_eq!(redis.script_calls(), 0);
}

/// Certificates are replaced while we run: the next connection uses the new ones.
#[tokio::test]
async fn replaced_files_are_read_again() {
    let (authority, other) = (Authority::create(), Authority::create());
    let secured = secured(&authority, &authority.issue("server", &["127.0.0.1"]), false, &[]);
    let config = trusting(&other, &secured.url);
    let shared = shared(&config);
    let store = shared.store();
    assert!(allow(&store, "r").await.is_err());
    std::fs::copy(authority.ca_file(), other.ca_file()).unwrap();
    let answers = async || allow(&store, "r").await == Ok(true);
    crate::support::eventually_async(SOON, "decisions", answers).await;
}

/// The nodes that `CLUSTER SLOTS` tells are dialled with TLS too: those ports speak nothing else.
#[tokio::test]
async fn a_cluster_over_tls() {
    let authority = Authority::create();
    let issued = authority.issue("server", &["127.0.0.1"]);
    let more = ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-announce-ip", "127.0.0.1"];
    let nodes = [(0, 8191), (8192, 16383)].map(|(first, last)| {
        let node = secured(&authority, &issued, false, &more);
        node.redis.cli(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
        node
    });
    let port = nodes[1].url.rsplit_once(':').unwrap().1;
    nodes[0].redis.cli(&["CLUSTER", "SET-CONFIG-EPOCH", "1"]);
    nodes[0].redis.cli(&["CLUSTER", "MEET", "127.0.0.1", port]);
    eventually(SOON, "the cluster is formed", || {
        let ok =
            |node: &Secured| node.redis.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        nodes.iter().all(ok)
    });
    let config = RedisConfig { topology: Topology::Cluster, ..trusting(&authority, &nodes[0].url) };
    let store: RedisStore = watched(&shared(&config)).await;
    for resource in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        assert_eq!(charge(&store, resource, 1).await, Ok(99_999), "{resource}");
    }
    assert!(nodes.iter().all(|node| !node.redis.keys().is_empty()), "both nodes were used");
}
