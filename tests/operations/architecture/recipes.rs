//! Steps of the recipes in CONTRIBUTING.md that neither a compiler nor another test would miss.

use super::none;
use super::source::{Source, read_all};

/// The text of all sources whose path `is_meant`.
pub(super) fn text(sources: &[Source], is_meant: impl Fn(&str) -> bool) -> String {
    sources.iter().filter(|source| is_meant(&source.path)).map(|source| &*source.text).collect()
}

/// The tests: those of the program, and those of the crates.
pub(super) fn test_sources() -> Vec<Source> {
    let mut tests = read_all("tests", "rs");
    tests.extend(read_all("crates", "rs").into_iter().filter(|source| source.path.contains("/tests/")));
    tests
}

/// The paths of methods, and whether their answers are streams: `/weir.v1.QueueService/Subscribe`.
fn methods() -> Vec<(String, bool)> {
    let mut methods = Vec::new();
    for proto in read_all("proto/weir/v1", "proto") {
        let mut service = "";
        for line in proto.text.lines() {
            if let Some(rest) = line.strip_prefix("service ") {
                service = rest.split(' ').next().unwrap_or_default();
            } else if let Some((name, rest)) =
                line.trim().strip_prefix("rpc ").and_then(|rest| rest.split_once('('))
            {
                methods.push((format!("/weir.v1.{service}/{name}"), rest.contains("returns (stream")));
            }
        }
    }
    methods
}

fn snake_case(name: &str) -> String {
    let letter = |(at, letter): (usize, char)| {
        let begins = at > 0 && letter.is_ascii_uppercase();
        begins.then_some('_').into_iter().chain([letter.to_ascii_lowercase()])
    };
    name.char_indices().flat_map(letter).collect()
}

/// Open calls without their bytes would be free in the budget of buffers.
#[test]
fn every_stream_has_its_bytes() {
    let product = read_all("crates", "rs");
    let product = text(&product, |path| path.contains("/src/"));
    let streams = methods().into_iter().filter_map(|(path, is_stream)| is_stream.then_some(path));
    let hot = "/weir.v1.RateLimitService/ShouldAllowStream";
    // Its `MethodSpec` has the rights, its entry in `streams` the bytes.
    let has_both = |path: &str| product.matches(&format!("(\"{path}\", ")).count() > 1;
    let free = streams.filter(|path| path != hot && !has_both(path));
    none(free.map(|path| format!("no `streams` has the bytes of {path}")).collect());
}

#[test]
fn every_method_is_called_by_a_test() {
    let tests = text(&test_sources(), |_| true);
    let called = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        tests.contains(&format!(".{}(", snake_case(name)))
    };
    let methods = methods();
    assert!(methods.len() > 20, "{methods:?}");
    let uncalled = methods.into_iter().filter(|(path, _)| !called(path));
    none(uncalled.map(|(path, _)| format!("no test calls {path}")).collect());
}

/// A metric is described on some page, whatever setting it takes to see it.
#[test]
fn every_metric_is_on_a_page() {
    let docs: String = read_all("docs", "md").into_iter().map(|page| page.text).collect();
    let mut sources = read_all("crates", "rs");
    sources.retain(|source| source.path.contains("/src/"));
    let mut unknown = Vec::new();
    for source in &sources {
        for (at, _) in source.text.match_indices("\"weir_") {
            let name = source.text[at + 1..].split('"').next().unwrap_or_default();
            let is_name =
                name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte));
            if is_name && !docs.contains(name) {
                unknown.push(format!("{} shows {name}, and no page of docs/ describes it", source.path));
            }
        }
    }
    none(unknown);
}
