//! `weir simulate`: the same bytes for the same seed, the documented example, and mistakes with their places.

mod costs;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use weir_testing::scratch;

use serde_json::Value;

use crate::support::command::{WEIR, text, weir};

const COMPARE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples/compare.yaml");

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples/");

/// Exit code, stdout and stderr.
fn simulate(args: &[&str]) -> (Option<i32>, String, String) {
    let out = weir(&[&["simulate"], args].concat());
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &str, number: u8| {
        let file =
            |ending: &str| folder.path().join(format!("{number}.{ending}")).to_str().unwrap().to_owned();
        let (svg, html) = (file("svg"), file("html"));
        let args = ["--config", COMPARE, "--pattern", "poisson:50/s", "--consumers", "3", "--seed", seed];
        let written = ["--svg", &svg, "--html", &html];
        let outputs = ["text", "json", "csv"].map(|output| {
            let (code, out, err) = simulate(&[&args[..], &written, &["--output", output]].concat());
            assert_eq!((code, err.as_str()), (Some(0), ""));
            out
        });
        (outputs, fs::read(svg).unwrap(), fs::read(html).unwrap())
    };
    let first = run("7", 1);
    assert_eq!(first, run("7", 2));
    assert_ne!(first.0, run("8", 3).0);
}

/// Every command of docs/simulate.md prints what stands under it.
#[test]
fn the_documented_example_is_what_the_command_prints() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/simulate.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 7);
    for block in blocks {
        let (command, expected) = block.split_once('\n').unwrap();
        let args = command.strip_prefix("$ weir simulate ").unwrap().replace("docs/examples/", EXAMPLES);
        let (code, out, err) = simulate(&args.split(' ').collect::<Vec<_>>());
        assert_eq!((code, err.as_str()), (Some(0), ""), "{command}");
        assert_eq!(out, expected, "{command}");
    }
}

/// The committed pictures of docs/algorithms.md are what the script draws with this program, and the page shows all of them.
#[test]
fn the_pictures_of_the_algorithms_are_what_the_command_draws() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let folder = tempfile::tempdir().unwrap();
    let mut script = std::process::Command::new(format!("{root}scripts/pictures.sh"));
    let drawn = script.args([WEIR, folder.path().to_str().unwrap()]).output().unwrap();
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    let page = fs::read_to_string(format!("{root}docs/algorithms.md")).unwrap();
    let names = |folder: &Path| -> BTreeSet<String> {
        let files =
            fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        files.filter(|name| name.ends_with(".svg")).collect()
    };
    let committed = Path::new(root).join("docs/pictures");
    assert_eq!(names(folder.path()), names(&committed), "run `make pictures`");
    for name in names(folder.path()) {
        assert!(page.contains(&format!("](pictures/{name})")), "docs/algorithms.md does not show {name}");
        let [drawn, kept] =
            [folder.path(), &committed].map(|folder| fs::read_to_string(folder.join(&name)).unwrap());
        assert!(drawn == kept, "{name} is out of date: run `make pictures`");
    }
}

fn json(args: &[&str]) -> Value {
    let (code, out, err) = simulate(&[args, &["--output", "json"]].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""));
    serde_json::from_str(&out).unwrap()
}

/// The line of a limit of each consumer was that of one, over the bars of ten.
#[test]
fn the_drawn_limit_is_that_of_all_its_counters() {
    let drawn = |consumers: &str, strategy: &str| {
        let args = ["--config", COMPARE, "--for", "10s", "--pattern", "constant:40/s", "--column", "1s"];
        let all = json(&[&args[..], &["--consumers", consumers, "--strategy", strategy]].concat());
        let limit = &all["strategies"][0]["drawn_limit"];
        assert_eq!(all["consumers"].to_string(), consumers);
        let per_column = limit["per_column"].as_f64().unwrap();
        (limit["name"].as_str().unwrap().to_owned(), limit["counters"].as_u64().unwrap(), per_column.round())
    };
    assert_eq!(drawn("1", "gate"), ("each".to_owned(), 1, 3.0));
    assert_eq!(drawn("10", "gate"), ("each".to_owned(), 10, 33.0));
    assert_eq!(drawn("10", "first-come"), ("all".to_owned(), 1, 30.0));
    // The limit that denied most: that of the resource for many, that of the consumer for one.
    assert_eq!(drawn("100", "both"), ("all".to_owned(), 1, 30.0));
    assert_eq!(drawn("1", "both"), ("each".to_owned(), 1, 3.0));
}

/// Numbers of a consumer's own, and consumers whom no limit is asked for.
#[test]
fn the_drawn_limit_has_the_numbers_of_each_consumer() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "
strategies:
  s:
    limits: [{ name: each, per: [consumer], fixed_window: { limit: 10, window: 1s } }]
overrides:
  - { consumer: consumer-1, strategy: s, limits: { each: { fixed_window: { limit: 50, window: 1s } } } }
access: { allow: [consumer-2] }
";
    let file = scratch::file(folder.path(), "weir.yaml", rules);
    let args = ["--config", file.to_str().unwrap(), "--pattern", "constant:40/s", "--column", "1s"];
    let all = json(&[&args[..], &["--consumers", "4"]].concat());
    let limit = &all["strategies"][0]["drawn_limit"];
    assert_eq!((&limit["counters"], limit["per_column"].as_f64()), (&3.into(), Some(70.0)));
}

#[test]
fn limits_that_denied_are_named_in_text_json_and_picture() {
    let args = ["--config", COMPARE, "--for", "10s", "--pattern", "burst:40x1s", "--consumers", "4"];
    let both = [&args[..], &["--strategy", "both"]].concat();
    let all = json(&both);
    let row = &all["strategies"][0];
    let (each, of_all) = (row["denied_by"]["each"].as_u64().unwrap(), &row["denied_by"]["all"]);
    // 40 calls of 4 consumers: 12 pass, the limit of the resource is never reached.
    assert_eq!((each, row["denied"].as_u64()), (280, Some(280)));
    assert!(of_all.is_null(), "{row}");
    let (_, text, _) = simulate(&both);
    assert!(text.lines().nth(1).unwrap().ends_with("  each 280"), "{text}");
    assert!(
        text.contains("admitted over time: compare.yaml, burst:40x1s, 4 consumers; a column is "),
        "{text}"
    );
    let (_, svg, _) = simulate(&[&both[..], &["--output", "svg"]].concat());
    for part in [
        ">compare.yaml, burst:40x1s, 4 consumers; a bar is 166.66ms: both<",
        ">denied by each 280; limit each, 4 counters: 2 in 166.66ms<",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let shadow = "strategies: { s: { limits: [{ name: off, per: [consumer], mode: shadow, fixed_window: { limit: 1, window: 1h } },
        { name: on, per: [consumer], fixed_window: { limit: 2, window: 1h } }] } }";
    let folder = tempfile::tempdir().unwrap();
    let file = crate::support::scratch::file(folder.path(), "weir.yaml", shadow);
    let all = json(&["--config", file.to_str().unwrap(), "--pattern", "burst:5x1m"]);
    assert_eq!(all["strategies"][0]["denied_by"], serde_json::json!({ "on": 3 }));
}

/// One of a thousand calls passes: its bars were a pixel high, and its line of the plot as low as that of nothing.
#[test]
fn what_passes_can_be_read_where_most_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "strategies: { s: { limits: [{ name: l, per: [resource], fixed_window: { limit: 2, window: 1s } }] } }";
    let file = scratch::file(folder.path(), "weir.yaml", rules);
    let args =
        ["--config", file.to_str().unwrap(), "--pattern", "constant:2000/s", "--for", "7s", "--column", "1s"];
    let (_, text, _) = simulate(&args);
    assert!(text.contains("; a column is 1s, █ is 2, of offered 2000\n"), "{text}");
    assert!(text.contains("|███████|\n") && text.matches("|███████|").count() == 2, "{text}");
    let (_, svg, _) = simulate(&[&args[..], &["--output", "svg"]].concat());
    let bars = |class: &str, width: u32, height: u32| {
        let end = format!("width=\"{width}\" height=\"{height}\"/>");
        let begin = format!("<rect class=\"{class}\"");
        svg.lines().filter(|line| line.starts_with(&begin) && line.ends_with(&end)).count()
    };
    // Seven bars on 720 pixels have 102 each, with a gap of one.
    assert_eq!((bars("a", 101, 80), bars("n", 101, 35)), (7, 7), "{svg}");
}

/// Widths were as `7.346938775510204`.
#[test]
fn bars_are_whole_pixels_wide() {
    for column in ["1s", "700ms", "70ms", "61ms", "3s"] {
        let args = ["--config", COMPARE, "--pattern", "constant:40/s", "--for", "60s", "--column", column];
        let (code, svg, err) = simulate(&[&args[..], &["--output", "svg"]].concat());
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let rects = svg.lines().filter(|line| line.starts_with("<rect"));
        let (mut bars, mut widths) = (0, BTreeSet::new());
        for rect in rects {
            assert!(!rect.contains('.'), "{column}: {rect}");
            bars += 1;
            widths.insert(rect.split("width=\"").nth(1).unwrap().split('"').next().unwrap().to_owned());
        }
        // One of them is of the legend.
        assert!(bars > 20 && widths.len() == 2, "{column}: {widths:?}");
        let wide: usize =
            svg.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let ends = svg.lines().filter_map(|line| {
            let number = |name: &str| -> Option<usize> {
                line.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
            };
            line.starts_with("<rect").then(|| number("x").zip(number("width")))?
        });
        assert!(ends.map(|(x, width)| x + width).max().unwrap() <= wide, "{column}");
    }
}

#[test]
fn a_file_of_calls_is_simulated_at_its_own_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = scratch::file(
        folder.path(),
        "calls.csv",
        "at_s,resource,consumer,cost\n0,r,bob,1\n0.1,r,bob,1\n0.1,r,ann,2\n0.3,r,bob,1\n",
    );
    let file = file.to_str().unwrap();
    let (code, out, _) =
        simulate(&["--config", COMPARE, "--strategy", "gate", "--pattern", file, "--output", "json"]);
    assert_eq!(code, Some(0));
    let result: Value = serde_json::from_str(&out).unwrap();
    let gate = &result["strategies"][0];
    assert_eq!(
        (&result["calls"], &gate["allowed"], &gate["denied"], &gate["never"]),
        (&4.into(), &2.into(), &2.into(), &1.into())
    );
    assert_eq!(gate["longest_wait_us"], 200_000);
}

#[test]
fn a_mistake_says_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = crate::support::scratch::file(folder.path(), "calls.csv", "at_s,resource\n0,r\nsoon,r\n");
    let file = file.to_str().unwrap();
    let wrong = |pattern: &str, part: &str| {
        let (code, out, err) = simulate(&["--config", COMPARE, "--pattern", pattern]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{pattern}");
        assert!(err.contains(part), "{pattern}: {err}");
    };
    wrong(file, "line 3, column 1: at_s \"soon\" is no number of seconds");
    wrong("missing.csv", "cannot read missing.csv");
    wrong("burst:100", "column 7: write CALLSxPAUSE");
    wrong("constant:100000000/s", "\"constant:100000000/s\", column 1: it makes more than 10000000 calls");
    let binary = crate::support::scratch::file(folder.path(), "binary.csv", b"at_s,resource\n0,\xff\n");
    wrong(binary.to_str().unwrap(), "binary.csv, line 2, column 3: the byte 0xff is not UTF-8");
    let empty = crate::support::scratch::file(folder.path(), "empty.csv", "at_s,resource\n0,r\n1,\n");
    wrong(empty.to_str().unwrap(), "line 3, column 2: resource has 0 bytes; it must have 1 to 512");
    let (code, _, err) = simulate(&["--config", COMPARE, "--pattern", "constant:1/s", "--window", "0s"]);
    assert_eq!(
        (code, err.contains("'0s' for '--window <TIME>': it must be at least 1us")),
        (Some(2), true),
        "{err}"
    );
    let (code, _, err) = simulate(&["--config", COMPARE, "--strategy", "gates", "--pattern", "constant:1/s"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("there is no strategy `gates` (similar: gate"), "{err}");
    let (code, _, err) = simulate(&["--config", COMPARE, "--pattern", "constant:1/h", "--for", "0s"]);
    assert_eq!((code, err.contains("there are no calls")), (Some(2), true), "{err}");
}

/// A queue of one call a second: of four calls at once, the first starts at once, and each other one second later.
#[test]
fn calls_that_are_held_show_for_how_long() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "strategies: { queue: { limits: [{ name: each, per: [resource], leaky_queue: { rate: 1/1s, burst: 3 } }] } }";
    let file = scratch::file(folder.path(), "queue.yaml", rules);
    let args = ["--config", file.to_str().unwrap(), "--pattern", "burst:5x1m", "--for", "1m"];
    let (_, text, _) = simulate(&args);
    assert!(text.starts_with(
        "strategy  offered  allowed  denied  most in any  mean wait  longest wait  mean hold  longest hold  denied by\n\
         queue           5        4       1        4s: 4         1s            1s       1.5s            3s     each 1\n"
    ), "{text}");
    let (_, json, _) = simulate(&[&args[..], &["--output", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["strategies"][0]["mean_hold_us"], &json["strategies"][0]["longest_hold_us"]),
        (&1_500_000.into(), &3_000_000.into())
    );
    let (_, text, _) = simulate(&["--config", COMPARE, "--pattern", "burst:5x1m"]);
    assert!(!text.contains("hold"), "{text}");
}

/// A simulation has one counter, and nodes have several: the difference is said.
#[test]
fn strategies_that_nodes_count_are_simulated_exactly_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let limits = "limits: [{ name: each, per: [consumer], fixed_window: { limit: 3, window: 1m } }]";
    let rules = format!(
        "
store: {{ redis: {{ nodes: [\"redis://127.0.0.1:6379\"] }} }}
strategies:
  counted: {{ approximate: {{ max_over: 2, nodes: 3 }}, {limits} }}
  plain: {{ {limits} }}
"
    );
    let file = scratch::file(folder.path(), "weir.yaml", rules);
    let all = ["--config", file.to_str().unwrap(), "--pattern", "burst:9x1m", "--output", "csv"];
    let (code, out, err) = simulate(&all);
    assert_eq!(code, Some(0), "{err}");
    let of = |name: &str| {
        out.lines().filter(|line| line.contains(name)).map(|line| line.replace(name, "")).collect::<Vec<_>>()
    };
    assert!(!of("plain").is_empty());
    assert_eq!(of(",counted,"), of(",plain,"));
    assert!(err.starts_with("note: strategy `counted` has `approximate`"), "{err}");
    let (_, _, err) = simulate(&[&all[..], &["--strategy", "plain"]].concat());
    assert!(!err.contains("approximate"), "{err}");
}

/// One strategy that counted by an attribute ended the simulation of all.
#[test]
fn what_cannot_be_simulated_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "
strategies:
  pool: { concurrency: { limit: 2, per: [resource], ttl: 30s } }
  regional: { limits: [{ name: region, per: [region], fixed_window: { limit: 3, window: 1m } }] }
  plain: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 3, window: 1m } }] }
";
    let file = scratch::file(folder.path(), "weir.yaml", rules);
    let all = ["--config", file.to_str().unwrap(), "--pattern", "constant:1/s", "--output", "csv"];
    let (code, out, err) = simulate(&all);
    assert_eq!(code, Some(0), "{err}");
    let notes = "note: strategy `pool` is left out: permits are held while work is done, and a pattern of calls has no work\n\
                 note: strategy `regional` is left out: it counts by the attribute `region`; give it with --attribute region=VALUE\n";
    assert_eq!(err, notes);
    assert!(out.contains("plain") && !out.contains("regional"), "{out}");
    let (code, out, err) = simulate(&[&all[..], &["--attribute", "region=eu"]].concat());
    assert!(code == Some(0) && out.contains("regional") && !err.contains("regional"), "{err}");
    let (code, _, err) = simulate(&[&all[..], &["--strategy", "regional"]].concat());
    assert!(code == Some(2) && err.contains("strategy `regional` cannot be simulated"), "{err}");
}

/// `until:` calls until so many have passed, and each strategy has its own calls and its own time.
#[test]
fn a_closed_loop_goes_on_until_enough_calls_have_passed() {
    let json = |args: &[&str]| -> Value {
        let (code, out, err) = simulate(&[&["--config", COMPARE, "--output", "json"], args].concat());
        assert_eq!((code, err.as_str()), (Some(0), ""));
        serde_json::from_str(&out).unwrap()
    };
    let of = |all: &Value, name: &str| {
        all["strategies"].as_array().unwrap().iter().find(|row| row["strategy"] == name).unwrap().clone()
    };
    let all = json(&["--pattern", "until:300", "--consumers", "10"]);
    for name in ["gate", "first-come", "both"] {
        assert_eq!(of(&all, name)["allowed"], 300, "{name}");
    }
    // Ten consumers pass once each 300 ms: the last ten at 8.7 s. The logs let 30 pass each second.
    assert_eq!(of(&all, "gate")["last_call_us"], 8_700_000);
    assert_eq!(of(&all, "first-come")["last_call_us"], 9_000_000);
    let all = json(&["--pattern", "until:300:constant:40/s", "--consumers", "10", "--column", "10s"]);
    assert_eq!(of(&all, "gate")["allowed"], 300);
    assert_eq!(of(&all, "gate")["admitted"].as_array().unwrap().len(), 2, "15 s in columns of 10 s");
    assert_eq!(of(&all, "first-come")["calls"], 390);
    assert!(all["offered"].as_array().unwrap().is_empty());
}

#[test]
fn a_closed_loop_that_cannot_end_or_be_read_says_so() {
    let cases = [
        (&["until:0"][..], "column 7: the calls that must pass are 1 to 1000000"),
        (&["until:many"], "column 7: the calls that must pass are 1 to 1000000"),
        (&["until:5:often:3/s"], "column 9: \"often\" is no pattern"),
        (&["until:5:constant:0/s"], "column 18: the count must be at least 1"),
        (&["until:5", "--cost", "31", "--strategy", "first-come"], "only 0 of 5 calls pass, out of 1"),
        (&["until:300", "--column", "1ms"], "--column makes "),
    ];
    for (args, expected) in cases {
        let (code, _, err) = simulate(&[&["--config", COMPARE, "--pattern"], args].concat());
        assert_eq!(code, Some(2), "{args:?}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}
