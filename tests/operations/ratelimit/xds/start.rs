//! The start, with and without a first configuration.

use std::net::TcpStream;

use super::{Ads, config, leaf, spawn, start};
use crate::support::{SOON, eventually};

const FORCE: (&str, &str) = ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true");
const PROMETHEUS: (&str, &str) = ("USE_PROMETHEUS", "true");

#[test]
fn a_forced_start_serves_errors_until_there_is_a_configuration() {
    let ads = Ads::start();
    let started = start(&ads.address.to_string(), &[FORCE]);
    eventually(SOON, "it asks", || !ads.requests().is_empty());
    let refused = started.json("d", &[("k", "v")]);
    assert!(refused.contains("no rate limit configuration loaded"), "{refused}");
    assert_eq!(started.get(8080, "/healthcheck").unwrap().0, 200);
    assert_eq!(started.metric(6070, "weir_xds_connected"), Some(1.0));
    ads.set("1", &[config("d", vec![leaf("k", "v", 2)])]);
    ads.accepted("1");
    assert_eq!(started.json("d", &[("k", "v")]), "OK 2/DAY");
}

#[test]
fn no_port_is_open_before_the_first_configuration() {
    let ads = Ads::start();
    let started = spawn(&ads.address.to_string(), &[PROMETHEUS]);
    eventually(SOON, "it is connected", || started.metric(9090, "weir_xds_connected") == Some(1.0));
    let (_, reason) = started.get(9090, "/").unwrap();
    assert!(reason.starts_with("waiting for the first configuration: connected to "), "{reason}");
    for port in [8080, 8081, 6070] {
        assert!(TcpStream::connect(started.at(port)).is_err(), "{port} is open");
    }
    // A bad one is a first one, too.
    ads.set("1", &[config("d", vec![leaf("", "v", 2)])]);
    eventually(SOON, "it is healthy", || {
        started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == 200)
    });
    let refused = started.json("d", &[("k", "v")]);
    assert!(refused.contains("no rate limit configuration loaded"), "{refused}");
    assert_eq!(started.metric(9090, "weir_xds_connected"), Some(1.0));
    assert_eq!(started.metric(9090, "weir_envoy_config_loads_total{result=\"error\"}"), Some(1.0));
    assert_eq!(started.stop().0, Some(0));
}

#[test]
fn it_may_be_unhealthy_while_there_is_no_domain() {
    let ads = Ads::start();
    let needs = ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true");
    let started = spawn(&ads.address.to_string(), &[FORCE, needs]);
    let health = |expected: u16| {
        eventually(SOON, "its health", || {
            started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == expected)
        });
    };
    health(500);
    ads.set("1", &[config("d", vec![leaf("k", "v", 2)])]);
    health(200);
    ads.set("2", &[]);
    health(500);
    assert_eq!(started.stop().0, Some(0));
}

#[test]
fn a_service_that_waits_can_be_stopped() {
    let ads = Ads::start();
    let started = spawn(&ads.address.to_string(), &[PROMETHEUS]);
    eventually(SOON, "it waits", || started.metric(9090, "weir_xds_connected").is_some());
    let (code, log) = started.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("waiting for the first configuration of the control plane; no port is open until then"),
        "{log}"
    );
}

/// The reason is logged once, not with each attempt.
#[test]
fn a_server_that_is_away_is_said_once() {
    let gone = Ads::start().address.to_string();
    let started = start(&gone, &[FORCE]);
    let refused = started.json("d", &[("k", "v")]);
    assert!(refused.contains("no rate limit configuration loaded"), "{refused}");
    let ads = Ads::start_at(gone.parse().unwrap());
    ads.set("1", &[config("d", vec![leaf("k", "v", 2)])]);
    ads.accepted("1");
    let (_, log) = started.stop();
    assert_eq!(log.matches("control plane sends nothing").count(), 1, "{log}");
}
