//! The transport against RFC 9113, RFC 7541 and the gRPC specification, section by section, from outside.
//!
//! A case is data: what a client sends and what must come back. See `case.rs` for the words and README.md for
//! the places where this server deviates on purpose.

#![allow(clippy::expect_used)] // all of it is a test

mod case;
mod client;
mod grpc;
mod link;
mod odd;
mod rfc7541;
mod rfc9113;

#[allow(dead_code)] // the fuzz test uses other parts of it
#[path = "../common/echo.rs"]
mod echo;
#[allow(dead_code)] // the fuzz test uses other parts of it
#[path = "../common/wire.rs"]
mod wire;

use case::Case;
use link::Link;

/// All cases, by the document whose sections they name.
fn all() -> [(&'static str, Vec<Case>); 3] {
    [("RFC 9113", rfc9113()), ("RFC 7541", rfc7541::cases()), ("gRPC", grpc::cases())]
}

fn rfc9113() -> Vec<Case> {
    let mut cases = rfc9113::cases();
    cases.extend(odd::cases());
    cases
}

fn hold(document: &str, cases: Vec<Case>, link: Link) {
    let faults: Vec<String> = cases.into_iter().filter_map(|case| case.fault(document, link)).collect();
    assert!(faults.is_empty(), "{} cases fail:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn rfc_9113() {
    hold("RFC 9113", rfc9113(), Link::Plain);
}

#[test]
fn rfc_7541() {
    hold("RFC 7541", rfc7541::cases(), Link::Plain);
}

#[test]
fn grpc_over_http2() {
    hold("gRPC", grpc::cases(), Link::Plain);
}

/// Records cut the bytes elsewhere, and a connection ends with an alert.
#[test]
fn all_of_them_over_tls() {
    for (document, cases) in all() {
        hold(document, cases, Link::Tls);
    }
}

#[test]
fn there_are_at_least_250_cases_with_names_of_their_own() {
    let mut names: Vec<(&str, &str, String)> = Vec::new();
    for (document, cases) in all() {
        println!("{document}: {} cases", cases.len());
        names.extend(cases.into_iter().map(|case| (document, case.section, case.name)));
    }
    let count = names.len();
    assert!(count >= 250, "{count} cases");
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "two cases have one name");
}
