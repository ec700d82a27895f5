//! A reader of standard output that has stalled costs lines and no decision, and the numbers show how many.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::Value;
use tonic::transport::Endpoint;
use weir_load::client::Client;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{ShouldAllowBatchRequest, ShouldAllowRequest};

use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually_async, eventually_some, ports, scratch};

const RULES: &str = "
strategies: { api: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 1, window: 1h } }] } }
log: { decisions: { keys: 1 } }
";

#[tokio::test]
async fn a_stalled_reader_costs_lines_whose_numbers_are_missing() {
    let folder = scratch::dir("decision-log-");
    let file = scratch::file(folder.path(), "weir.yaml", RULES);
    let [grpc, admin] = [(); 2].map(|()| format!("127.0.0.1:{}", ports::free()));
    let mut command = Process::command(WEIR);
    command.args(["serve", "--config", file.to_str().unwrap(), "--listen", &grpc, "--admin", &admin]);
    command.args(["--drain-delay", "0s", "--log", "off"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::spawn(command).unwrap();
    let stdout = process.child().stdout.take().unwrap();

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
    let total = batches * size as u64;
    let newest = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&newest);
    let reader = std::thread::spawn(move || {
        let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap();
        let lines = BufReader::new(stdout).lines().map(Result::unwrap).filter(|line| line.starts_with('{'));
        lines.map(|line| number(&line)).inspect(|number| seen.store(*number, Relaxed)).collect::<Vec<u64>>()
    });
    // There is space again, and what is logged now has the number that it would have had.
    let later = AtomicU64::new(0);
    let is_logged = async || {
        client.clone().should_allow(request.clone()).await.unwrap();
        later.fetch_add(1, Relaxed);
        newest.load(Relaxed) > total
    };
    eventually_async(SOON, "a later line is written", is_logged).await;
    process.signal("TERM");
    let status = eventually_some(SOON, "weir ends", || process.exited());
    assert_eq!(status.code(), Some(0));
    let numbers = reader.join().unwrap();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(numbers.len() as u64 > 2_000, "{}", numbers.len());
    let last = numbers.last().copied().unwrap();
    assert!(last > total && last <= total + later.load(Relaxed), "{last}");
    assert!((numbers.len() as u64) < last, "lines are missing");
}
