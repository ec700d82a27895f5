//! `weir load` against real servers: what it counts is what they count.

#[cfg(feature = "envoy")]
mod envoy;
mod errors;
#[cfg(feature = "http")]
mod http;
mod schema;

use std::process::Output;
use weir_testing::metrics;

use serde_json::Value;

use crate::support::command::{Serve, text, weir};
use crate::support::scratch;
use crate::support::server::{Server, config};

/// Runs `weir load` with `args` against `server`; its report, and its exit code.
fn load(server: &Server, args: &[&str]) -> (Value, Option<i32>) {
    let out = run(&server.grpc.to_string(), args);
    let report = serde_json::from_slice(&out.stdout);
    (report.unwrap_or_else(|error| panic!("{error}: {}", text(&out.stderr))), out.status.code())
}

fn run(server: &str, args: &[&str]) -> Output {
    let always = ["load", "--server", server, "--output", "json", "--quiet"];
    weir(&[&always, args].concat())
}

/// Decisions that the server has counted for the strategy `burst`: allowed and denied.
fn counted(server: &Server) -> (u64, u64) {
    let page = server.get("/metrics").1;
    let value = |outcome: &str| {
        metrics::value(&page, &format!("weir_decisions_total{{strategy=\"burst\",outcome=\"{outcome}\"}}"))
    };
    (value("allowed"), value("denied"))
}

fn totals(report: &Value) -> (u64, u64) {
    let decisions = &report["decisions"];
    assert_eq!(decisions["failed"], 0);
    assert_eq!(report["errors"], serde_json::json!({}));
    let (allowed, denied) = (decisions["allowed"].as_u64().unwrap(), decisions["denied"].as_u64().unwrap());
    assert_eq!(decisions["asked"], allowed + denied);
    (allowed, denied)
}

/// `burst` lets five pass for each consumer, and the clock stands still.
const BURST: [&str; 4] = ["--strategy", "burst", "--resource", "x"];

#[test]
fn counts_are_the_servers_own() {
    let server = Server::start(config());
    let (report, code) =
        load(&server, &[&BURST[..], &["--requests", "3000", "--warm-up", "0s", "--keys", "100"]].concat());
    assert_eq!(code, Some(0));
    assert_eq!(totals(&report), (500, 2_500));
    assert_eq!(counted(&server), (500, 2_500));
    assert_eq!(report["calls"]["made"], 3_000);
    let latency = |name: &str| report["latency_us"][name].as_f64().unwrap();
    assert!(0.0 < latency("min") && latency("min") <= latency("p50") && latency("p99") <= latency("max"));
}

#[test]
fn batches_are_counted_by_decision() {
    let server = Server::start(config());
    let batch = ["--mode", "batch", "--batch", "70", "--requests", "50", "--warm-up", "0s", "--keys", "100"];
    let (report, _) = load(&server, &[&BURST[..], &batch].concat());
    assert_eq!(totals(&report), (500, 3_000));
    assert_eq!(counted(&server), (500, 3_000));
    assert_eq!((&report["calls"]["made"], &report["batch"]), (&50.into(), &70.into()));
}

/// A message on a stream is a call; however the server cuts its answers, every question gets its own.
#[test]
fn streams_are_counted_by_decision() {
    for batch in ["1", "70"] {
        let server = Server::start(config());
        let stream =
            ["--mode", "stream", "--batch", batch, "--requests", "500", "--warm-up", "0s", "--keys", "100"];
        let (report, code) = load(&server, &[&BURST[..], &stream].concat());
        let (allowed, denied) = totals(&report);
        assert_eq!((allowed, denied), counted(&server));
        assert_eq!(allowed + denied, 500 * batch.parse::<u64>().unwrap());
        assert!(allowed <= 500);
        assert_eq!((&report["calls"]["made"], code), (&500.into(), Some(0)));
    }
}

/// A thousand requests have more bytes than HTTP/2's first windows.
#[test]
fn batches_may_be_as_large_as_the_server_takes() {
    let server = Server::start(config());
    let long = "x".repeat(400);
    let batch = ["--mode", "batch", "--batch", "1000", "--requests", "20", "--warm-up", "0s", "--keys", "9"];
    let (report, _) = load(&server, &[&["--strategy", "burst", "--resource", &long], &batch[..]].concat());
    assert_eq!(totals(&report), (45, 19_955));
}

#[test]
fn the_warm_up_is_made_and_not_counted() {
    let server = Server::start(config());
    let (report, _) = load(
        &server,
        &[
            &BURST[..],
            &["--duration", "300ms", "--warm-up", "2s", "--keys", "1", "--in-flight", "2"],
            &["--threads", "2", "--connections", "2"],
        ]
        .concat(),
    );
    let (allowed, denied) = counted(&server);
    let warm_up = report["warm_up_calls"].as_u64().unwrap();
    assert!(warm_up > 0);
    assert_eq!(report["calls"]["made"].as_u64().unwrap() + warm_up, allowed + denied);
    assert_eq!((allowed, totals(&report).0), (5, 0), "the warm-up took all that there was");
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let server = Server::start(config());
    let (report, code) =
        load(&server, &[&BURST[..], &["--rate", "2000", "--duration", "1s", "--warm-up", "100ms"]].concat());
    assert_eq!(code, Some(0));
    assert_eq!(
        report["calls"]["made"].as_u64().unwrap() + report["open_loop"]["missed"].as_u64().unwrap(),
        2_000
    );
    assert_eq!(report["warm_up_calls"], 200);
    // The last call is due half a millisecond before the second is over; the run may end with its answer.
    let elapsed = report["elapsed_s"].as_f64().unwrap();
    assert!((0.9995..=1.0).contains(&elapsed), "{elapsed}");
}

/// One call at a time can be made, and each waits for the clock of a server that takes longer than they
/// are apart: those that come late are charged from when they were due.
#[test]
fn calls_that_have_no_room_are_late_and_not_forgotten() {
    let server = Server::start(config());
    let narrow =
        ["--rate", "1e6", "--duration", "200ms", "--warm-up", "0s", "--connections", "1", "--in-flight", "1"];
    let half = || {
        let (report, code) = load(&server, &[&BURST[..], &narrow].concat());
        let (made, missed) = (&report["calls"]["made"], &report["open_loop"]["missed"]);
        let (made, missed) = (made.as_u64().unwrap(), missed.as_u64().unwrap());
        assert_eq!((made + missed, code), (200_000, Some(0)));
        assert!(missed > 100_000, "{missed}");
        report["latency_us"]["p50"].as_f64().unwrap()
    };
    // Had they been measured from when they were sent, they would take some hundred microseconds, every
    // time. A machine that stalls early in a run makes most of its calls before.
    assert!((0..20).any(|_| half() > 50_000.0), "late calls are charged from when they were sent");
}

#[test]
fn keys_are_spread_as_asked() {
    let server = Server::start(config());
    let file = scratch::dir("load-").keep().join("record.csv");
    let path = file.to_str().unwrap();
    let args =
        ["--requests", "20000", "--warm-up", "0s", "--keys", "1000", "--spread", "zipf", "--record", path];
    load(&server, &[&BURST[..], &args].concat());
    let record = std::fs::read_to_string(&file).unwrap();
    let mut lines = record.lines();
    assert_eq!(lines.next(), Some("sent_us,answered_us,key,result"));
    let mut seen = vec![(0_u32, 0_u32); 1_000];
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let (sent, answered): (u64, u64) = (fields[0].parse().unwrap(), fields[1].parse().unwrap());
        assert!(sent <= answered);
        let (asked, allowed) = &mut seen[fields[2].parse::<usize>().unwrap()];
        *asked += 1;
        *allowed += u32::from(fields[3] == "allowed");
    }
    assert_eq!(seen.iter().map(|it| it.0).sum::<u32>(), 20_000);
    assert!(seen.iter().all(|&(asked, allowed)| allowed == asked.min(5)));
    // 20,000 over the thousandth harmonic number, 7.49; and half of it.
    assert!(seen[0].0.abs_diff(2_672) < 300 && seen[1].0.abs_diff(1_336) < 200, "{:?}", &seen[..3]);
}

#[test]
fn a_process_tells_its_cpu_time() {
    let server = Server::start(config());
    let this = std::process::id().to_string();
    // The system counts in hundredths of a second, which is what some thousand calls take.
    let args = ["--requests", "100000", "--warm-up", "0s", "--pid", &this];
    let (report, _) = load(&server, &[&BURST[..], &args].concat());
    let server = &report["cpu"]["servers"][0];
    assert_eq!(server["pid"], std::process::id());
    assert!(server["us_per_decision"].as_f64().unwrap() > 0.0);
    assert!(server["rss_bytes"].as_u64().unwrap() > 1 << 20);
    assert!(report["cpu"]["generator_us_per_call"].as_f64().unwrap() > 0.0);
}

/// A loop against a server is that of a simulation, on a real clock.
#[test]
fn a_loop_goes_on_until_enough_calls_are_allowed_as_in_a_simulation() {
    let rules = "strategies:
  gate: { limits: [{ name: each, per: [resource, consumer], uniform: { interval: 30ms } }] }
  crowd: { limits: [{ name: all, per: [resource], sliding_log: { limit: 5, window: 100ms } }] }
";
    let folder = scratch::dir("until-");
    let file = scratch::file(folder.path(), "weir.yaml", rules);
    let file = file.to_str().unwrap();
    let server = Serve::start(&["--config", file]);
    let strategies = ["--strategy", "gate", "--strategy", "crowd", "--resource", "zoo", "--window", "100ms"];
    let looped = |output: &str| {
        let args = ["load", "--server", &server.server, "--quiet", "--until-allowed", "20", "--keys", "3"];
        let out = weir(&[&args[..], &["--output", output], &strategies[..]].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let simulated = |output: &str| {
        let args = ["simulate", "--config", file, "--pattern", "until:20", "--consumers", "3"];
        text(&weir(&[&args[..], &["--output", output], &strategies[..]].concat()).stdout)
    };
    let [live, model] =
        [looped("json"), simulated("json")].map(|report| -> Value { serde_json::from_str(&report).unwrap() });
    for (live, model) in
        live["strategies"].as_array().unwrap().iter().zip(model["strategies"].as_array().unwrap())
    {
        for same in ["strategy", "allowed", "allowed_cost", "never", "window_us"] {
            assert_eq!(live[same], model[same], "{same}");
        }
        let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
        // Nothing passes earlier than where time is exact.
        assert!(number(live, "last_call_us") + 1_000 >= number(model, "last_call_us"), "{live}");
        assert_eq!(number(live, "calls"), number(live, "allowed") + number(live, "denied"));
        assert!(number(live, "denied") > 0);
    }
    let labels = |shown: &str| -> Vec<String> {
        shown.lines().map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(labels(&looped("text")), labels(&simulated("text")));
    // The table of both has the same strategies and the same numbers of allowed calls.
    let allowed = |shown: &str| -> Vec<String> {
        let rows = shown.lines().skip(1).take_while(|line| !line.is_empty());
        rows.map(|row| row.split_whitespace().step_by(2).take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    let (live, model) = (looped("text"), simulated("text"));
    assert_eq!(
        (allowed(&live), allowed(&model)),
        (vec!["gate 20".into(), "crowd 20".into()], allowed(&live))
    );
    // So have the pictures: each strategy has a title that begins with its allowed calls, and bars.
    let titles = |picture: &str| -> Vec<String> {
        let titles = picture.split("<text x=\"8\" y=\"").skip(2).filter_map(|text| text.split('>').nth(1));
        titles.filter_map(|title| Some(title.split_once(" of ")?.0.to_owned())).collect()
    };
    let [live, model] = [looped("svg"), simulated("svg")];
    assert_eq!(titles(&live), ["gate: 20", "crowd: 20"], "{live}");
    assert_eq!(titles(&live), titles(&model), "{model}");
    assert!(live.starts_with("<svg") && live.trim_end().ends_with("</svg>"), "{live}");
    let bars = |picture: &str| picture.matches("<rect class=\"a\"").count();
    assert!(bars(&live) > 2 && bars(&model) > 2, "{live}");
}
