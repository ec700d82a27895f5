//! A kernel without IPv6.

use std::fs;
use std::path::Path;

use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use super::{Ratelimit, command, files, request, variables};
use crate::support::clients::root;
use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually, ports};

/// All addresses are those of IPv4 then, and one line of the log says so.
#[tokio::test]
async fn all_ports_are_served_over_ipv4() {
    for host in ["", "0.0.0.0", "::"] {
        let [http, debug, grpc, metrics] = [(); 4].map(|()| ports::free());
        let folder = files(super::FILE);
        let mut all = variables(folder.path(), [127, 0, 0, 1].into());
        all.retain(|(name, _)| !name.ends_with("HOST") && name != "PROMETHEUS_ADDR");
        all.extend(["HOST", "DEBUG_HOST", "GRPC_HOST"].map(|name| (name.to_owned(), host.to_owned())));
        let numbers = [("PORT", http), ("DEBUG_PORT", debug), ("GRPC_PORT", grpc)];
        all.extend(numbers.map(|(name, port)| (name.to_owned(), port.to_string())));
        all.extend(
            [("USE_PROMETHEUS", "true".to_owned()), ("PROMETHEUS_ADDR", format!(":{metrics}"))]
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let script = root().join("tests/operations/ratelimit/no_ipv6.py");
        let args = [script.to_str().unwrap(), WEIR, "ratelimit"];
        let process = Process::spawn(command(Path::new("python3"), &args, &all)).unwrap();
        let mut started = Ratelimit { process, host: [127, 0, 0, 1].into(), _files: folder };
        eventually(SOON, "it is healthy", || {
            if let Some(status) = started.process.exited() {
                panic!("it ended: {status}\n{}", started.log());
            }
            started.get(http, "/healthcheck").is_some_and(|(status, _)| status == 200)
        });
        assert_eq!(started.get(debug, "/rlconfig").unwrap().0, 200);
        assert_eq!(started.get(metrics, "/metrics").unwrap().0, 200);
        let mut client = RateLimitServiceClient::new(started.channel(grpc).await);
        let answer = client.should_rate_limit(request("v")).await.unwrap();
        assert_eq!(answer.into_inner().overall_code(), Code::Ok);
        let sockets = fs::read_to_string(format!("/proc/{}/net/tcp", started.process.pid())).unwrap();
        assert!(sockets.contains(&format!("00000000:{grpc:04X}")), "{sockets}");
        let (code, log) = started.stop();
        assert_eq!((code, log.matches("IPv6 is unavailable").count()), (Some(0), 1), "{host}: {log}");
    }
}
