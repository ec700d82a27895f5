//! The description of the listener.

use std::path::PathBuf;

use serde_json::Value;

use super::support::{STRATEGIES, TestNode};

fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json"))
}

/// `UPDATE_DOCS=1` writes it.
#[test]
#[allow(clippy::disallowed_methods)] // the switch of whoever runs the test
fn the_file_is_made_of_the_descriptors() {
    let made = format!("{:#}\n", weir_http::openapi().unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file(), &made).unwrap();
    }
    let written = std::fs::read_to_string(file()).unwrap();
    assert!(
        written == made,
        "UPDATE_DOCS=1 cargo test --workspace --test http openapi writes docs/openapi.json"
    );
}

#[test]
fn it_is_served_to_everybody() {
    let node = TestNode::start(STRATEGIES);
    let answer = node.raw("GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), weir_http::openapi().unwrap());
    assert_eq!(node.post("/openapi.json", "", "").status, 405);
}

/// Each method has a path and a comment, and each reference leads to a schema.
#[test]
fn it_is_complete() {
    let description = weir_http::openapi().unwrap();
    let paths = description["paths"].as_object().unwrap();
    let unary =
        weir_http::shapes().unwrap().methods().filter(|it| !it.is_stream && it.path.starts_with("/weir.v1."));
    for method in unary {
        let operation = &paths[&method.path]["post"];
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{}", method.path);
    }
    let text = description.to_string();
    for reference in text.split("\"#/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(description.pointer(&format!("/{reference}")).is_some(), "{reference} leads nowhere");
    }
}
