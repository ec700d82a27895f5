//! The process as launchers start it.

use std::os::unix::fs::symlink;
use std::path::Path;

use tonic::transport::Endpoint;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient as WeirClient;

use super::{Ratelimit, request};
use crate::support::command::WEIR;
use crate::support::scratch;

/// Launchers give arguments to it that the reference does not read.
#[tokio::test]
async fn its_name_is_that_of_the_program_or_of_the_first_argument() {
    let bin = scratch::dir("bin-");
    let named = bin.path().join("ratelimit");
    symlink(WEIR, &named).unwrap();
    let starts: [(&Path, &[&str], bool); 4] = [
        (&named, &[], false),
        (&named, &["-config", "F", "--explain"], true),
        (Path::new(WEIR), &["/bin/ratelimit", "--quotaRateLimitServiceAddr=x"], true),
        (Path::new(WEIR), &["ratelimit", "-config", "F"], true),
    ];
    for (program, args, is_told) in starts {
        let started = Ratelimit::start_as(program, args, &[]);
        let answers = [started.asks("v").await, started.asks("v").await, started.asks("v").await];
        assert_eq!(answers, [Code::Ok, Code::Ok, Code::OverLimit], "{args:?}");
        let (code, log) = started.stop();
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(log.matches("ignoring arguments").count(), usize::from(is_told), "{args:?}\n{log}");
    }
}

/// It used to say that it serves, and to end then.
#[test]
fn it_is_refused_before_it_says_that_it_serves() {
    let files = super::files(super::FILE);
    let limited = format!("ulimit -n 64 && exec {WEIR} ratelimit");
    let variables = super::variables(files.path(), super::host());
    let ended = super::command(Path::new("sh"), &["-c", &limited], &variables).output().unwrap();
    let (announced, log) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(1), "{log}");
    assert!(log.contains("the limit of open files is 64, and Weir needs at least "), "{log}");
    assert!(announced.is_empty() && !log.contains(r#""serving""#), "{announced}{log}");
}

#[tokio::test]
async fn only_envoys_service_and_health_are_on_its_port() {
    let started = Ratelimit::start(&[]);
    let mut native = WeirClient::new(started.channel(8081).await);
    let refused = native.should_allow(ShouldAllowRequest::default()).await.unwrap_err();
    assert_eq!(refused.message(), "there is no method `/weir.v1.RateLimitService/ShouldAllow`");
    let mut health = tonic_health::pb::health_client::HealthClient::new(started.channel(8081).await);
    for (service, expected) in [("", 1), ("ratelimit", 1)] {
        let asked = tonic_health::pb::HealthCheckRequest { service: service.to_owned() };
        assert_eq!(health.check(asked).await.unwrap().into_inner().status, expected, "{service}");
    }
    let asked = tonic_health::pb::HealthCheckRequest { service: "weir.v1.RateLimitService".to_owned() };
    assert_eq!(health.check(asked).await.unwrap_err().code(), tonic::Code::NotFound);
    for path in ["/ui", "/readyz", "/"] {
        assert_eq!(started.get(8080, path).unwrap().0, 404, "{path}");
    }
    assert_eq!(started.get(6070, "/ui").unwrap().0, 404);
}

#[tokio::test]
async fn its_ports_are_those_of_the_variables() {
    let prometheus = [("USE_PROMETHEUS", "true"), ("PROMETHEUS_PATH", "/scrape")];
    let started =
        Ratelimit::start(&[prometheus[0], prometheus[1], ("GRPC_PORT", "0x2328"), ("DEBUG_PORT", "")]);
    let mut client = RateLimitServiceClient::new(started.channel(9000).await);
    let answer = client.should_rate_limit(request("v")).await;
    assert_eq!(answer.unwrap().into_inner().overall_code(), Code::Ok);
    let page = started.get(9090, "/scrape").unwrap();
    assert!(page.0 == 200 && page.1.contains("weir_envoy_hits_total"), "{page:?}");
    assert_eq!(started.get(9090, "/metrics").unwrap().0, 404);
    assert_eq!(started.get(6070, "/metrics").unwrap().0, 200);
}

#[tokio::test]
async fn it_listens_on_a_unix_socket() {
    let folder = scratch::dir("uds-");
    let path = folder.path().join("ratelimit.sock");
    let started = Ratelimit::start(&[("GRPC_UDS", path.to_str().unwrap())]);
    assert!(std::net::TcpStream::connect(started.at(8081)).is_err(), "the port is not open");
    let channel = Endpoint::from_shared(format!("unix:{}", path.display())).unwrap().connect().await.unwrap();
    let answer = RateLimitServiceClient::new(channel).should_rate_limit(request("v")).await.unwrap();
    assert_eq!(answer.into_inner().overall_code(), Code::Ok);
}
