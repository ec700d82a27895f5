//! h2spec, the public conformance suite for HTTP/2, against both transports. The cases that may fail stand in
//! `crates/grpc/README.md`, each with its reason.

use crate::support::clients::{go_program, root};
use crate::support::command::Serve;
use crate::support::scratch;

/// Cases that both transports may fail: their sections and names.
const KNOWN: [(&str, &str); 4] = [
    ("generic/2", "Sends a WINDOW_UPDATE frame on half-closed (remote) stream"),
    ("generic/2", "Sends a PRIORITY frame on half-closed (remote) stream"),
    ("http2/3.5", "Sends invalid connection preface"),
    (
        "http2/5.1.2",
        "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",
    ),
];

/// And one that `tonic` fails at times.
const ON_TONIC: [(&str, &str); 1] =
    [("http2/8.1.2.1", "Sends a HEADERS frame that contains a pseudo-header field as trailers")];

/// Cases of h2spec 2.2.1 with `--strict`.
const CASES: usize = 146;

/// A case of h2spec's report.
struct ReportedCase {
    section: String,
    name: String,
    is_fine: bool,
}

/// The cases of a report in JUnit's format.
fn cases(report: &str) -> Vec<ReportedCase> {
    let value = |case: &str, name: &str| {
        let (_, rest) = case.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let one = |case: &str| ReportedCase {
        section: value(case, "package"),
        name: value(case, "classname"),
        is_fine: !case.contains("<error>") && !case.contains("<failure>"),
    };
    report.split("<testcase").skip(1).map(one).collect()
}

fn passes_but(transport: &str, known: &[(&str, &str)]) {
    let Some(mut h2spec) = go_program("h2spec") else { return };
    let serve = Serve::start(&["--transport", transport]);
    let folder = scratch::dir("h2spec-");
    let report = folder.path().join("report.xml");
    let (host, port) = serve.server.strip_prefix("http://").unwrap().split_once(':').unwrap();
    // It exits with 1, because some cases fail.
    h2spec.args(["--strict", "--timeout", "5", "-h", host, "-p", port, "-j"]).arg(&report);
    h2spec.current_dir(root()).output().unwrap();
    let cases = cases(&std::fs::read_to_string(&report).unwrap());
    assert_eq!(cases.len(), CASES, "all of them ran");
    let failed: Vec<_> = cases.iter().filter(|case| !case.is_fine).collect();
    let unknown = failed.iter().filter(|case| !known.contains(&(&case.section, &case.name)));
    let unknown: Vec<String> = unknown.map(|case| format!("{}: {}", case.section, case.name)).collect();
    println!("{transport}: {} of {CASES} cases fail", failed.len());
    assert!(unknown.is_empty(), "{transport}: {unknown:?}");
}

#[test]
fn fast_passes_all_but_four_cases() {
    passes_but("fast", &KNOWN);
}

#[test]
fn tonic_passes_all_but_five_cases() {
    passes_but("tonic", &[&KNOWN[..], &ON_TONIC].concat());
}
