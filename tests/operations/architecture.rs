//! The invariants of ARCHITECTURE.md that can be read off the sources.
//!
//! Each check is a function from sources to offences, so that [`every_check_can_fail`] can show each of
//! them something to object to.

mod arrows;
mod feature_list;
mod features;
mod manifests;
mod maps;
mod names;
#[cfg(feature = "queues")]
mod queue_operations;
mod recipes;
mod source;
mod test_modules;
mod unrun_tests;

use std::collections::BTreeSet;

use weir_core::algorithm::EngineKind;

use self::source::{Source, read_all};

/// Names that stand in one place only, and these places.
const DOORS: [(&str, &[&str]); 14] = [
    ("redis::", &["crates/store/src/redis"]),
    (
        "tonic",
        &[
            "crates/node/src/service",
            "crates/node/src/server",
            "crates/control/src/service",
            "crates/envoy/src/service",
            "crates/envoy/src/xds",
            "crates/leases/src/service",
            "crates/queues/src/service",
            "crates/usage/src/service",
            "crates/load/src",
            "crates/proto/src",
            "crates/grpc/src",
        ],
    ),
    ("SystemTime", &["crates/time/src/clock"]),
    ("Instant::now", &["crates/time/src/clock"]),
    ("std::env", &["src/main", "src/cli"]),
    ("env::", &["src/main", "src/cli"]),
    // A write to a full or stalled device fails or waits: what serves uses telemetry's LineWriter.
    ("print!", &[]),
    ("eprint!", &[]),
    ("eprintln!", &[]),
    ("println!", &[]),
    ("std::io::stdout", &["crates/node/src/telemetry/decision_log/sink", "src/cli"]),
    ("io::stdout", &["crates/node/src/telemetry/decision_log/sink", "src/cli"]),
    ("std::io::stderr", &["crates/node/src/telemetry/log", "src/cli"]),
    ("io::stderr", &["crates/node/src/telemetry/log", "src/cli"]),
];

/// Parts of a decision, and the names that they do without. Units are converted from and to `Duration`, but no clock
/// is read; elsewhere time is a number, and an argument.
const PURE: [(&str, &[&str]); 6] = [
    ("crates/units/src", &["Instant", "SystemTime", "f32", "f64"]),
    ("crates/core/src", &["std::time", "core::time"]),
    ("crates/core/src/algorithm", &["f32", "f64"]),
    ("crates/control/src/model", &["std::time", "core::time"]),
    ("crates/leases/src/model", &["std::time", "core::time"]),
    ("crates/queues/src/model", &["std::time", "core::time"]),
];
/// The one engine whose curve is made of floats.
const MAY_FLOAT: &str = "crates/core/src/algorithm/warm_up.rs";
const NOT_PURE: [&str; 6] = ["tokio", "redis", "tonic", "parking_lot", "Mutex", "RwLock"];

/// The modules of its crate that each module of `crates/core`, and each model of a feature, uses. Between crates the
/// compiler sees to it.
const MAY_USE: [(&str, &[&str]); 7] = [
    ("crates/control/src/model", &["model"]),
    ("crates/core/src/algorithm", &["algorithm"]),
    ("crates/core/src/strategy", &["strategy", "algorithm", "approximate", "near"]),
    ("crates/core/src/key", &["key", "strategy", "algorithm", "approximate"]),
    ("crates/core/src/envoy", &["envoy", "strategy", "algorithm"]),
    ("crates/leases/src/model", &["model"]),
    ("crates/queues/src/model", &["model"]),
];

const PANICS: [&str; 6] = [".unwrap()", ".expect(", "panic!", "todo!", "unimplemented!", "unreachable!"];

/// The built-in example is a part of the program, and a test reads it.
const MAY_PANIC: [(&str, &str); 1] = [("crates/config/src/read.rs", "unreachable!")];

const LONGEST_FILE: usize = 400;

/// Everything that is written by hand and run.
const SOURCES: [(&str, &str); 5] =
    [("src", "rs"), ("crates", "rs"), ("tests", "rs"), ("benches", "rs"), ("lua", "lua")];

#[test]
fn the_floors_are_apart() {
    let sources = shipped();
    none(impure(&sources));
    none(upwards(&sources));
    none(doors(&sources));
    none(re_exports(&sources));
}

#[test]
fn nothing_panics_on_purpose() {
    none(panics(&shipped()));
}

#[test]
fn files_are_short_and_named_for_what_they_hold() {
    none(long_files(&read_many(&SOURCES)));
    none(mod_files(&read_many(&SOURCES)));
}

#[test]
fn no_test_is_skipped() {
    none(skipped_tests(&read_many(&[("src", "rs"), ("crates", "rs"), ("tests", "rs")])));
}

#[test]
fn every_word_of_the_wire_is_explained() {
    none(unexplained(&read_all("proto", "proto")));
}

/// The engine, its twin, and its rows: none without the others.
#[test]
fn every_engine_has_its_twin_and_its_rows() {
    let stems = |sources: Vec<Source>, besides: &[&str]| -> BTreeSet<String> {
        let stem = |source: &Source| Some(source.path.rsplit('/').next()?.split('.').next()?.to_owned());
        sources.iter().filter_map(stem).filter(|stem| !besides.contains(&stem.as_str())).collect()
    };
    let engines = engine_names();
    let driver = "abilities advice cells decide held held_parts hold_record judge near new \
                  numbers once once_record portable share state stored verdict";
    let driver: Vec<&str> = driver.split(' ').collect();
    // Another layout in Redis of what `slots.rs` decides.
    let mut algorithms = read_all("crates/core/src/algorithm", "rs");
    algorithms.retain(|source| !source.path.contains("/algorithm/budget"));
    let mut in_rust = stems(algorithms, &driver);
    assert!(in_rust.insert("sparse".to_owned()));
    assert_eq!(engines, in_rust);
    let leases = ["call", "aimd", "vegas", "gradient2", "sampling", "fixed"];
    let queues = "archive archived browse browse_list dead enqueue entries finish list make_room member \
                  outcomes pace purge put_list put_stream redrive room room_list score settle stats stream take take_list totals";
    let queues: Vec<&str> = queues.split_whitespace().collect();
    let control =
        ["bans_add", "bans_lift", "bans_position", "bans_write", "merge", "poll", "position", "put", "write"];
    let general = ["any", "decide", "held", "judge", "limit", "numbers", "once", "plain", "rights", "start"];
    let approximate = ["count", "places"];
    let besides = [&general[..], &leases[..], &queues[..], &control[..], &approximate[..]].concat();
    let mut scripts = read_all("lua", "lua");
    scripts.retain(|source| !source.path.contains("lua/budget"));
    assert_eq!(engines, stems(scripts, &besides));
    assert_eq!(engines, engines_with_rows());
}

/// The same of leases and their controllers. `held.rs` is the twin of `lua/leases/call.lua`.
#[test]
fn every_controller_has_its_twin_and_its_rows() {
    let has = |path: String| assert!(std::path::Path::new(&path).is_file(), "{path} is missing");
    for controller in ["aimd", "vegas", "gradient2"] {
        has(format!("crates/leases/src/model/{controller}.rs"));
        has(format!("lua/leases/{controller}.lua"));
        has(format!("tests/vectors/{controller}.json"));
    }
    for path in ["crates/leases/src/model/held.rs", "lua/leases/call.lua", "tests/vectors/leases.json"] {
        has(path.to_owned());
    }
}

#[test]
fn every_check_can_fail() {
    let file = |path: &str, text: &str| vec![Source::new(path, text)];
    let in_key = |text| file("src/key.rs", text);
    assert!(!re_exports(&in_key("pub use weir_core::key;")).is_empty());
    for text in [
        "use redis::Value;",
        "fn f() { std::env::var(\"A\"); }",
        "let x = Instant::now();",
        "use tonic::Code;",
        "eprintln!(\"a\");",
        "io::stderr().lock()",
    ] {
        assert!(!doors(&in_key(text)).is_empty(), "{text}");
    }
    assert!(!impure(&file("crates/core/src/algorithm/bucket.rs", "let x: f64 = 1.0;")).is_empty());
    for text in ["use std::time::Duration;", "use tokio::time;", "x: sync::Mutex<()>"] {
        assert!(!impure(&file("crates/core/src/key.rs", text)).is_empty(), "{text}");
    }
    for text in ["fn f(at: time::Instant) {}", "use std::time::{Duration, SystemTime};", "let x: f64 = 1.0;"]
    {
        assert!(!impure(&file("crates/units/src/lib.rs", text)).is_empty(), "{text}");
    }
    for module in ["algorithm/bucket", "strategy", "envoy/level"] {
        let path = format!("crates/core/src/{module}.rs");
        assert!(!upwards(&file(&path, "use crate::key::slot;")).is_empty(), "{path}");
    }
    for text in ["x.unwrap()", "panic!(\"no\")", "fn f() {} #[cfg(test)] mod tests { } fn g() { todo!() }"] {
        assert!(!panics(&in_key(text)).is_empty(), "{text}");
    }
    assert!(!long_files(&file("src/key.rs", &"\n".repeat(LONGEST_FILE + 1))).is_empty());
    assert!(!mod_files(&file("crates/store/src/mod.rs", "")).is_empty());
    assert!(!skipped_tests(&in_key("#[test]\n#[ignore]\nfn f() {}")).is_empty());
    for text in [
        "message A {",
        "// A.\nmessage A {\n  string name = 1;",
        "// S.\nservice S {\n  rpc Do(A) returns (B);",
    ] {
        assert!(!unexplained(&file("proto/a.proto", text)).is_empty(), "{text}");
    }
}

/// And what only looks like an offence is none.
#[test]
fn comments_strings_and_tests_are_free() {
    let text = "//! redis::Value, x.unwrap()\nuse crate::store::redis::RedisStore; /* panic! */\n\
                const A: &str = \"tonic \\\" todo!\"; const B: &str = r#\"Instant::now \" tonic\"#;\n\
                fn quote<'a>() -> char { '\"' } // monotonic\n\
                #[cfg(test)]\nmod tests { fn f() { panic!(\"{}\", x.unwrap()) } }\nfn monotonic() {}";
    let source = vec![Source::new("src/limiter.rs", text)];
    none(doors(&source));
    none(panics(&source));
    let bare = &source[0].code;
    assert!(
        bare.contains("fn monotonic") && bare.contains("fn quote<'a>") && !bare.contains("todo"),
        "{bare}"
    );
}

/// Returns the sources that become part of the program. Modules named `tests`, `crates/scripted` and `crates/testing`
/// are compiled for tests only, and what a crate has beside its `src` is not part of it.
fn shipped() -> Vec<Source> {
    let is_of_tests = |path: &str| ["/tests.rs", "/tests/"].iter().any(|it| path.contains(it));
    let is_shipped = |path: &str| match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, "src", ..] => !["scripted", "testing"].contains(&name),
        ["src", ..] => true,
        _ => false,
    };
    let all = read_many(&[("src", "rs"), ("crates", "rs")]).into_iter();
    all.filter(|source| is_shipped(&source.path) && !is_of_tests(&source.path)).collect()
}

fn read_many(folders: &[(&str, &str)]) -> Vec<Source> {
    folders.iter().flat_map(|(folder, extension)| read_all(folder, extension)).collect()
}

fn none(offences: Vec<String>) {
    assert!(offences.is_empty(), "{} offences:\n{}", offences.len(), offences.join("\n"));
}

fn impure(sources: &[Source]) -> Vec<String> {
    let offences = |source: &Source| {
        let is_of = |(folder, _): &&(&str, _)| source.is_of(folder);
        let words = PURE.iter().filter(is_of).map(|(_, words)| NOT_PURE.iter().chain(*words));
        let is_named = |word: &&&str| source.names(word) || source.code.contains(&format!("::{word}"));
        let named = words.flatten().filter(is_named);
        let named = named.filter(|word| source.path != MAY_FLOAT || **word != "f64");
        named.map(|word| format!("{} names {word}", source.path)).collect::<Vec<_>>()
    };
    sources.iter().flat_map(offences).collect()
}

fn upwards(sources: &[Source]) -> Vec<String> {
    let offences = |source: &Source| {
        let Some((_, may)) = MAY_USE.iter().find(|(module, _)| source.is_of(module)) else {
            return Vec::new();
        };
        let used = source.code.split("crate::").skip(1).filter(|path| {
            let first = path.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
            !first.is_some_and(|first| may.contains(&first))
        });
        used.map(|path| format!("{} uses crate::{}", source.path, path.lines().next().unwrap_or("")))
            .collect::<Vec<_>>()
    };
    sources.iter().flat_map(offences).collect()
}

fn doors(sources: &[Source]) -> Vec<String> {
    let offence = |source: &Source, (word, places): &(&str, &[&str])| {
        let elsewhere = !places.iter().any(|place| source.is_of(place));
        (elsewhere && source.names(word)).then(|| format!("{} names {word}", source.path))
    };
    sources.iter().flat_map(|source| DOORS.iter().filter_map(move |door| offence(source, door))).collect()
}

/// A reader sees at the top of a file from which crate a name is.
fn re_exports(sources: &[Source]) -> Vec<String> {
    // Tests of the simulator get features from the program, as only its manifest names their crates.
    let may = |source: &Source| source.path == "src/lib.rs";
    let offends = |source: &&Source| !may(source) && source.code.contains("pub use weir_");
    let offence = |source: &Source| format!("{} re-exports another crate", source.path);
    sources.iter().filter(offends).map(offence).collect()
}

fn panics(sources: &[Source]) -> Vec<String> {
    let offence = |source: &Source, word: &str| {
        let may = MAY_PANIC.contains(&(source.path.as_str(), word));
        (!may && source.code.contains(word)).then(|| format!("{} has {word}", source.path))
    };
    sources.iter().flat_map(|source| PANICS.iter().filter_map(move |word| offence(source, word))).collect()
}

fn long_files(sources: &[Source]) -> Vec<String> {
    let lines = |source: &Source| source.text.lines().count();
    let long = sources.iter().filter(|source| lines(source) > LONGEST_FILE);
    long.map(|source| format!("{} has {} lines", source.path, lines(source))).collect()
}

fn mod_files(sources: &[Source]) -> Vec<String> {
    let files = sources.iter().filter(|source| source.path.ends_with("/mod.rs"));
    files.map(|source| source.path.clone()).collect()
}

fn skipped_tests(sources: &[Source]) -> Vec<String> {
    let skips = |source: &&Source| attributes(source).contains("#[ignore");
    sources.iter().filter(skips).map(|source| format!("{} skips a test", source.path)).collect()
}

/// Attributes stand alone on their lines, so that no comment or string is taken for one.
fn attributes(source: &Source) -> String {
    source.text.lines().map(str::trim_start).filter(|line| line.starts_with("#[")).collect()
}

/// Messages, fields, values, services and methods without a comment above or behind them.
fn unexplained(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources {
        let mut before = "";
        for line in source.text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if is_declaration(line) && !before.starts_with("//") && !line.contains(" //") {
                offences.push(format!("{}: {line}", source.path));
            }
            before = line;
        }
    }
    offences
}

fn is_declaration(line: &str) -> bool {
    let number = line.split(" = ").nth(1).and_then(|it| it.split([';', ' ']).next());
    let is_numbered = number.is_some_and(|it| it.parse::<u32>().is_ok());
    is_numbered
        || ["message ", "enum ", "service ", "rpc ", "oneof "].iter().any(|kind| line.starts_with(kind))
}

fn engine_names() -> BTreeSet<String> {
    EngineKind::ALL.into_iter().map(|engine| engine.name().to_owned()).collect()
}

/// The engines of the algorithms that tables are about; composites and lists are built from others.
/// Rows of what is no engine of a rate limit: of whole strategies, of leases, and of queues.
const NOT_ENGINES: &str =
    "composite at_most access leases aimd vegas gradient2 bounded_queue bounded_sync budget";

fn engines_with_rows() -> BTreeSet<String> {
    let engine = |algorithm: &str| match algorithm {
        "uniform_gate" | "bucket" | "leaky_queue" | "charge_after" | "reserve" => "bucket".to_owned(),
        "fixed_window" | "calendar_window" => "window".to_owned(),
        "interval_bucket" | "cycles" | "reserve_interval" => "interval".to_owned(),
        "sliding_log" | "strict_log" | "held_log" => "log".to_owned(),
        "sliding_counter" => "sliding".to_owned(),
        "bucketed_window" | "ring_count" | "uneven_parts" => "slots".to_owned(),
        "guava_warmup" => "warm_up".to_owned(),
        "many_buckets" | "many_uneven_parts" => "sparse".to_owned(),
        other => panic!("no engine is known for the rows of `{other}`"),
    };
    let tables = read_all("tests/vectors", "json");
    let parsed =
        tables.iter().flat_map(|it| serde_json::from_str::<Vec<serde_json::Value>>(&it.text).unwrap());
    let algorithms = parsed.filter_map(|table| table["algorithm"].as_str().map(str::to_owned));
    algorithms
        .filter(|algorithm| !NOT_ENGINES.split(' ').any(|other| other == algorithm))
        .map(|algorithm| engine(&algorithm))
        .collect()
}
