//! A reader of standard output that has stalled costs lines and no decision, and the numbers show how many.

use std::io::Read as _;
use std::process::Stdio;

use serde_json::Value;
use tonic::transport::Endpoint;
use weir::client::Client;
use weir::proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir::proto::v1::{ShouldAllowBatchRequest, ShouldAllowRequest};

use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually_async, eventually_some, ports, scratch};

const RULES: &str = "
strategies: { api: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 1, window: 1h } }] } }
log: { decisions: { keys: 1 } }
";

#[tokio::test]
async fn a_stalled_reader_costs_lines_whose_numbers_are_missing() {
    let folder = scratch::dir("decision-log-");
    let file = folder.path().join("weir.yaml");
    std::fs::write(&file, RULES).unwrap();
    let [grpc, admin] = [(); 2].map(|()| format!("127.0.0.1:{}", ports::free()));
    let mut command = Process::command(WEIR);
    command.args(["serve", "--config", file.to_str().unwrap(), "--listen", &grpc, "--admin", &admin]);
    command.args(["--drain-delay", "0s", "--log", "off"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::spawn(command).unwrap();
    let mut stdout = process.child().stdout.take().unwrap();

    let url = format!("http://{grpc}");
    let connected = async || Client::connect(&url, SOON).await.is_ok();
    eventually_async(SOON, "it serves", connected).await;
    let channel = Endpoint::from_shared(url.clone()).unwrap().connect().await.unwrap();
    let mut client = RateLimitServiceClient::new(channel);
    // The pipe is not read. Two queues of 4 MiB and the pipe hold some 10,000 of these lines.
    let request = ShouldAllowRequest {
        resource: "r".repeat(500),
        consumer: "c".repeat(100),
        strategy: "api".to_owned(),
        ..ShouldAllowRequest::default()
    };
    let (batches, size) = (300, 50);
    for _ in 0..batches {
        let batch = ShouldAllowBatchRequest { requests: vec![request.clone(); size] };
        let answers = client.should_allow_batch(batch).await.expect("it is decided").into_inner().results;
        assert_eq!(answers.len(), size);
    }
    // Now the pipe is read until its end.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    process.signal("TERM");
    let status = eventually_some(SOON, "weir ends", || process.exited());
    assert_eq!(status.code(), Some(0));
    let text = reader.join().unwrap();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap();
    let numbers: Vec<u64> = lines.map(number).collect();
    let total = batches * size as u64;
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(numbers.len() as u64 > 2_000, "{}", numbers.len());
    assert!((numbers.len() as u64) < total, "lines are missing");
    assert!(numbers.last() <= Some(&total));
}
