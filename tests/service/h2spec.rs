//! h2spec, the public conformance suite for HTTP/2, against the transport `fast`. The cases that may fail stand in
//! `crates/grpc/README.md`, each with its reason. `tonic` fails them too, and others now and then.

use weir_testing::certificates::Authority;

use crate::support::clients::{go_program, root};
use crate::support::command::Serve;
use crate::support::scratch;

/// Cases that may fail: their sections and names.
const KNOWN: [(&str, &str); 4] = [
    ("generic/2", "Sends a WINDOW_UPDATE frame on half-closed (remote) stream"),
    ("generic/2", "Sends a PRIORITY frame on half-closed (remote) stream"),
    ("http2/3.5", "Sends invalid connection preface"),
    (
        "http2/5.1.2",
        "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",
    ),
];

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

#[test]
fn fast_passes_all_but_four_cases() {
    passes_on(&Serve::start(&["--transport", "fast"]), &[]);
}

#[test]
fn fast_passes_the_same_cases_over_tls() {
    let authority = Authority::create();
    let issued = authority.issue("server", &["weir.test"]);
    let folder = scratch::dir("h2spec-");
    let (cert, key) = (issued.cert.display(), issued.key.display());
    let tls = format!("server: {{ tls: {{ cert_file: {cert}, key_file: {key} }} }}");
    let strategies = weir_config::EXAMPLE.split_once("strategies:").unwrap().1;
    let config = scratch::file(folder.path(), "weir.yaml", format!("{tls}\nstrategies:{strategies}"));
    let serve = Serve::start(&["--transport", "fast", "--config", config.to_str().unwrap()]);
    passes_on(&serve, &["--tls", "--insecure"]);
}

fn passes_on(serve: &Serve, more: &[&str]) {
    let Some(mut h2spec) = go_program("h2spec") else { return };
    let folder = scratch::dir("h2spec-");
    let report = folder.path().join("report.xml");
    let (_, address) = serve.server.split_once("://").unwrap();
    let (host, port) = address.split_once(':').unwrap();
    // It exits with 1, because some cases fail.
    h2spec.args(["--strict", "--timeout", "5", "-h", host, "-p", port, "-j"]).arg(&report).args(more);
    h2spec.current_dir(root()).output().unwrap();
    let cases = cases(&std::fs::read_to_string(&report).unwrap());
    assert_eq!(cases.len(), CASES, "all of them ran");
    let failed: Vec<_> = cases.iter().filter(|case| !case.is_fine).collect();
    println!("{} of {CASES} cases fail", failed.len());
    let unknown = failed.iter().filter(|case| !KNOWN.contains(&(&case.section, &case.name)));
    let unknown: Vec<String> = unknown.map(|case| format!("{}: {}", case.section, case.name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
