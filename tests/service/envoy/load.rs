//! Many clients through several Envoys at once. How fast that is says `cargo bench --bench envoy`.

use std::net::SocketAddr;

use crate::support::envoy::EnvoyProcess;
use crate::support::http::Http;
use crate::support::scratch;

use super::weir;

const CLIENTS: usize = 20;
const CALLS: usize = 100;
const LIMIT: usize = 1_500;

const RULES: &str = "domain: edge
descriptors: [{ key: remote_address, rate_limit: { unit: day, requests_per_unit: 1500 } }]
";

/// Two Envoys with a connection each to one Weir: of 4,000 requests as many pass as the limit says, not one
/// more or less, and every one is answered by Weir.
#[tokio::test]
async fn exactly_the_limit_passes_through_all_envoys() {
    let dir = scratch::dir("limits");
    std::fs::write(dir.path().join("edge.yaml"), RULES).unwrap();
    let weir = weir(dir.path().to_owned());
    let Some(one) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let Some(two) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let clients: Vec<_> =
        (0..CLIENTS).flat_map(|_| [&one, &two]).map(|envoy| tokio::spawn(client(envoy.front))).collect();
    let mut passed = 0;
    for client in clients {
        passed += client.await.unwrap();
    }
    assert_eq!(passed, LIMIT);
    let stat = async |name: &str| {
        let name = format!("cluster.app.ratelimit.{name}");
        usize::try_from(one.stat(&name).await + two.stat(&name).await).unwrap()
    };
    assert_eq!((stat("ok").await, stat("error").await), (LIMIT, 0));
    assert_eq!(stat("over_limit").await, 2 * CLIENTS * CALLS - LIMIT);
}

/// How many of its calls pass.
async fn client(front: SocketAddr) -> usize {
    let mut client = Http::connect(front).await;
    let mut passed = 0;
    for _ in 0..CALLS {
        match client.get("/hello", &[]).await.status {
            200 => passed += 1,
            429 => {}
            other => panic!("status {other}"),
        }
    }
    passed
}
