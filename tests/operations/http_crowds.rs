//! A crowd of silent and slow callers at the HTTP listener of a real process.

mod long_crowds;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_testing::usage;

use tonic::transport::Endpoint;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_time::clock::monotonic;

use crate::support::command::Serve;
use crate::support::server::ask;
use crate::support::{SOON, eventually};

/// The callers, and the seconds in which each of them sends a byte.
const CALLERS: usize = 1_100;
const SECONDS: u32 = 4;

/// The share of a core that they may cost.
const SHARE: f64 = 0.1;

/// The longest gRPC call beside them.
const CALL: Duration = Duration::from_millis(50);

/// Bytes that the node counts for each connection.
const CONNECTION_BYTES: f64 = 12.0 * 1024.0;

#[tokio::test]
async fn a_crowd_of_slow_callers_costs_little_and_keeps_nobody_waiting() {
    // Beside other tests a call may take longer; `long_crowds` holds its bound.
    crowd(SOON).await;
}

/// All gRPC calls beside the crowd are answered within `longest`.
async fn crowd(longest: Duration) {
    weir_node::server::raise_open_files();
    let serve = Serve::start(&["--http", "127.0.0.1:0"]);
    let http: SocketAddr = serve.http().parse().unwrap();
    let mut crowd: Vec<TcpStream> = (0..CALLERS).map(|_| TcpStream::connect(http).unwrap()).collect();
    eventually(SOON, "all callers are connected", || serve.metric("weir_http_connections") >= CALLERS as u64);
    let held = serve.metric("weir_buffered_bytes") as f64;
    assert!(held >= CALLERS as f64 * CONNECTION_BYTES, "only {held} bytes are counted");

    let channel = Endpoint::from_shared(serve.server.clone()).unwrap().connect().await.unwrap();
    let mut client = RateLimitServiceClient::new(channel);
    let request = b"POST /weir.v1.RateLimitService/ShouldAllow HTTP/1.1\r\n";
    let (begun, cpu_before) = (monotonic(), usage::cpu_time(serve.pid()));
    let mut slowest = Duration::ZERO;
    for second in 0..SECONDS {
        // Half of them say nothing at all.
        for stream in crowd.iter_mut().step_by(2) {
            stream.write_all(&request[second as usize..=second as usize]).unwrap();
        }
        while monotonic() - begun < Duration::from_secs(1) * (second + 1) {
            slowest = slowest.max(call(&mut client).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(is_served(http), "no answer by HTTP in second {second}");
    }
    let spent = usage::cpu_time(serve.pid()) - cpu_before;
    let share = spent.as_secs_f64() / begun.elapsed().as_secs_f64();
    println!("{CALLERS} callers: {share:.3} of a core, {held} bytes, the slowest call took {slowest:?}");
    assert!(share <= SHARE, "{share}");
    assert!(slowest <= longest, "{slowest:?}");
    eventually(SOON, "the headers of all callers were too slow", || {
        serve.metric("weir_http_refused_total{reason=\"slow_headers\"}") >= CALLERS as u64
    });
    assert_eq!(serve.metric("weir_http_connections"), 0);
    drop(crowd);
}

async fn call(client: &mut RateLimitServiceClient<tonic::transport::Channel>) -> Duration {
    let begun = Instant::now();
    let peek = ShouldAllowRequest { peek: true, ..ask("zewtopia.com/tigerfeeding", "bob") };
    client.should_allow(peek).await.unwrap();
    begun.elapsed()
}

/// True if an honest caller gets an answer.
fn is_served(http: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).is_ok() && answer.starts_with(b"HTTP/1.1 200 ")
}
