//! The shapes that gateways send, over xDS and as files: the same answers.

use weir_proto::ratelimit::config::ratelimit::v3::{RateLimitConfig, RateLimitDescriptor};

use super::{Ads, start};
use crate::ratelimit::{Ratelimit, files};
use crate::support::as_messages::as_messages;

/// A document for each domain.
const GOLDEN: [&str; 3] = [
    include_str!("golden/routes.yaml"),
    include_str!("golden/quota.yaml"),
    include_str!("golden/shapes.yaml"),
];

/// Every path to a limit, with a value of its own where any value counts, and one that matches nothing.
fn requests(config: &RateLimitConfig) -> Vec<Vec<(String, String)>> {
    fn below(level: &[RateLimitDescriptor], path: &[(String, String)], all: &mut Vec<Vec<(String, String)>>) {
        for one in level {
            let value = if one.value.is_empty() { "any".to_owned() } else { one.value.clone() };
            let mut path = path.to_vec();
            path.push((one.key.clone(), value));
            all.push(path.clone());
            below(&one.descriptors, &path, all);
            path.push(("nobody".to_owned(), "knows".to_owned()));
            all.push(path);
        }
    }
    let mut all = Vec::new();
    below(&config.descriptors, &[], &mut all);
    all
}

#[test]
fn each_golden_shape_answers_as_a_file_of_it_does() {
    let texts: Vec<&str> = GOLDEN.iter().flat_map(|text| text.split("\n---\n")).collect();
    assert!(texts.len() >= 30, "{}", texts.len());
    let configs = as_messages(texts.iter().copied());
    let folder = files(texts[0]);
    let config = folder.path().join("data/ratelimit/config");
    for (index, text) in texts.iter().enumerate().skip(1) {
        std::fs::write(config.join(format!("more{index}.yaml")), text).unwrap();
    }
    let root = folder.path().join("data").display().to_string();
    let from_files = Ratelimit::start(&[("RUNTIME_ROOT", &root)]);
    let ads = Ads::start();
    ads.set("1", &configs);
    let from_xds = start(&ads.address.to_string(), &[]);
    let mut limits = 0;
    for config in &configs {
        for entries in requests(config) {
            let entries: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            // The two do not ask in the same second: whether a limit is used up may differ, but not which one it is.
            let limit = |started: &Ratelimit| {
                let answer = started.json(&config.domain, &entries);
                answer.split_once(' ').unwrap().1.to_owned()
            };
            let expected = limit(&from_files);
            assert_eq!(limit(&from_xds), expected, "{} {entries:?}", config.domain);
            limits += usize::from(expected.contains('/'));
        }
    }
    assert!(limits >= 44, "{limits}");
    let lines = |started: &Ratelimit| {
        let (_, page) = started.get(6070, "/rlconfig").unwrap();
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&from_xds), lines(&from_files));
}
