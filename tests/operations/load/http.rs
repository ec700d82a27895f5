//! `--http` calls the HTTP listener.

use super::errors::refused;
use super::{run, totals};
use crate::support::command::Serve;
use crate::support::scratch;

const RULES: &str = "strategies:
  burst: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 5/1h, burst: 5 } }] }
";

fn serve() -> Serve {
    let folder = scratch::dir("load-http-").keep();
    let file = scratch::file(&folder, "weir.yaml", RULES);
    Serve::start(&["--config", file.to_str().unwrap(), "--http", "127.0.0.1:0"])
}

fn load(serve: &Serve, args: &[&str]) -> serde_json::Value {
    let always = ["--http", "--strategy", "burst", "--resource", "x", "--warm-up", "0s"];
    let out = run(&serve.http(), &[&always, args].concat());
    let report = serde_json::from_slice(&out.stdout);
    report.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn decisions_by_http_are_counted() {
    let serve = serve();
    let report = load(&serve, &["--requests", "3000", "--keys", "100"]);
    assert_eq!(totals(&report), (500, 2_500));
    assert_eq!((&report["calls"]["made"], &report["protocol"]), (&3_000.into(), &"http".into()));
    let page = serve.get("/metrics");
    assert!(page.contains("weir_decisions_total{strategy=\"burst\",outcome=\"allowed\"} 500\n"), "{page}");
    assert!(page.contains("weir_http_requests_total{route=\"ShouldAllow\",status=\"200\"} 3000\n"), "{page}");
    let batch = ["--mode", "batch", "--batch", "70", "--requests", "50", "--keys", "100"];
    let batch = [&batch[..], &["--consumer", "other_{key}"]].concat();
    assert_eq!(totals(&load(&serve, &batch)), (500, 3_000));
    let report = load(&serve, &["--rate", "2000", "--duration", "500ms", "--connections", "16"]);
    let (made, missed) = (&report["calls"]["made"], &report["open_loop"]["missed"]);
    assert_eq!(made.as_u64().unwrap() + missed.as_u64().unwrap(), 1_000);
}

#[test]
fn what_is_not_the_listener_is_recognised() {
    let serve = serve();
    refused(&run(&serve.http(), &["--http", "--strategy", "brust", "--resource", "x"]), "NOT_FOUND");
    refused(&run(&serve.http(), &["--http", "--mode", "stream"]), "leave out --http");
    refused(&run(&serve.admin(), &["--http"]), "is that the port of `http.listen`?");
    refused(
        &run(serve.server.trim_start_matches("http://"), &["--http"]),
        "is that the port of `http.listen`?",
    );
    refused(&run(&serve.http(), &[]), "it closed the connection");
}
