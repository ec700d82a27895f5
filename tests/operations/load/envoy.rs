//! `--mode envoy` asks as Envoy's filters do.

use weir_envoy::settings::{EnvoyConfig, with_envoy};

use super::{load, totals};
use crate::support::scratch;
use crate::support::server::{Server, config};
use crate::support::{SOON, eventually};

const LIMITS: &str = "domain: edge\n\
    descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 5 } }]\n";

#[test]
fn envoys_protocol_is_spoken() {
    let folder = scratch::dir("load-envoy-");
    std::fs::write(folder.path().join("edge.yaml"), LIMITS).unwrap();
    let envoy = EnvoyConfig { config: Some(folder.path().to_owned()), ..EnvoyConfig::default() };
    let server = Server::start(with_envoy(config(), envoy));
    eventually(SOON, "it is ready", || server.get("/readyz").0 == 200);
    let envoy = ["--mode", "envoy", "--domain", "edge", "--keys", "100", "--warm-up", "0s"];
    let (report, code) = load(&server, &[&envoy[..], &["--requests", "3000"]].concat());
    assert_eq!((totals(&report), code), ((500, 2_500), Some(0)));
    // A hundred hits at once are more than five.
    let (report, _) =
        load(&server, &[&envoy[..], &["--requests", "10", "--cost", "100", "--seed", "2"]].concat());
    assert_eq!(totals(&report), (0, 10));
    // A descriptor that no file describes has no limit.
    let other = ["--descriptor", "path=/a", "--requests", "10"];
    assert_eq!(totals(&load(&server, &[&envoy[..], &other].concat()).0), (10, 0));
}
