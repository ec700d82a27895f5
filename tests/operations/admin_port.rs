//! Callers that are silent or slow, at the admin port of a real process.

mod long_probes;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tonic::transport::Endpoint;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;

use crate::support::SOON;
use crate::support::command::Serve;
use crate::support::server::ask;

/// Default timeout of a probe of Kubernetes.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// True if the page is answered with 200 in time.
fn probe(admin: SocketAddr, path: &str, deadline: Duration) -> bool {
    let answered = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&admin, deadline)?;
        stream.set_read_timeout(Some(deadline))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer.starts_with(b"HTTP/1.1 200 "))
    };
    answered().unwrap_or(false)
}

/// 1,100 silent requests used to take all open files: no new gRPC connection, and no answer to a probe.
#[tokio::test]
async fn silent_and_slow_callers_keep_no_probe_and_no_client_out() {
    // Beside other tests a second may pass without this one; `long_probes` holds the deadline of probes.
    probes_beside_callers(SOON).await;
}

/// All probes are answered within `deadline`.
async fn probes_beside_callers(deadline: Duration) {
    let serve = Serve::start_with_files(100, 1024, &[]);
    let admin: SocketAddr = serve.admin().parse().unwrap();
    let attack = |request: &'static str| {
        move |_| {
            let mut stream = TcpStream::connect(admin).unwrap();
            // It may have been closed already: others came.
            let _ = stream.write_all(request.as_bytes());
            stream
        }
    };
    // Pages are asked for and never read.
    let pages = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(200).leak();
    let mut held: Vec<TcpStream> = (0..64).map(attack(pages)).collect();
    let mut answered = 0;
    for round in 0..50 {
        let request = if round % 2 == 0 { "" } else { "GET /metrics HTTP/1.1\r\nhost:" };
        held.extend((0..22).map(attack(request)));
        answered +=
            u32::from(probe(admin, "/livez", deadline)) + u32::from(probe(admin, "/readyz", deadline));
    }
    println!("{answered} of 100 probes were answered within {deadline:?}, beside {} callers", held.len());
    assert_eq!(answered, 100);

    let channel = Endpoint::from_shared(serve.server.clone()).unwrap().connect().await.unwrap();
    let peek = ShouldAllowRequest { peek: true, ..ask("zewtopia.com/tigerfeeding", "bob") };
    assert!(RateLimitServiceClient::new(channel).should_allow(peek).await.is_ok());
    let open = std::fs::read_dir(format!("/proc/{}/fd", serve.pid())).unwrap().count();
    println!("{open} files are open");
    assert!(open < 128, "{open}");
    drop(held);
    let (code, log) = serve.stop("TERM");
    assert_eq!(code, Some(0), "{log}");
}
