//! Every configuration that the documentation shows is one, for the parser and for the schema.

use weir_config::EXAMPLE;

use super::super::{STRATEGIES, parse, section};
use super::{FULL, full_on_memory, mistakes, validator};
use crate::support::certificates::Authority;
use crate::support::clients::{files, root};
use crate::support::yaml::document;

/// Returns the blocks between ```yaml and ```, with their first lines.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        match (inside, line) {
            (false, "```yaml") => blocks.push((index + 2, String::new())),
            (true, "```") => {}
            (true, line) => blocks.last_mut().unwrap().1 += &format!("{line}\n"),
            (false, _) => continue,
        }
        inside = line != "```";
    }
    assert!(!inside, "a block has no end");
    blocks
}

/// The `strategies:` section of a block, if it has one.
fn strategies(block: &str) -> Option<String> {
    let mut lines = block.lines().skip_while(|line| !line.starts_with("strategies:"));
    let first = lines.next()?;
    let inside = lines.take_while(|line| line.starts_with([' ', '#']) || line.is_empty());
    Some([first].into_iter().chain(inside).map(|line| format!("{line}\n")).collect())
}

/// The blocks of a page as files. One without strategies reads on from the block before it that has some.
fn files_of(page: &str) -> Vec<(usize, String)> {
    let mut before = STRATEGIES.to_owned();
    let complete = |(line, block): (usize, String)| match strategies(&block) {
        Some(own) => {
            before = own;
            (line, block)
        }
        None => (line, format!("{block}{before}")),
    };
    blocks(page).into_iter().map(complete).collect()
}

/// The text with files that are there in place of those it names.
fn with_real_files(text: &str, authority: &Authority) -> String {
    let issued = authority.issue("example", &["example"]);
    let mut text = text.to_owned();
    // A password may be any text, so a certificate serves.
    for (key, file) in [
        ("ca_file: ", authority.ca_file()),
        ("cert_file: ", issued.cert.clone()),
        ("key_file: ", issued.key),
        ("password_file: ", issued.cert),
        ("crl_file: ", authority.revoke(&[])),
    ] {
        let parts: Vec<&str> = text.split(key).collect();
        let after = |part: &&str| {
            let end = part.find([',', ' ', '}', '\n']).unwrap_or(part.len());
            format!("{key}{}{}", file.display(), &part[end..])
        };
        text = parts[0].to_owned() + &parts[1..].iter().map(after).collect::<String>();
    }
    text
}

#[test]
fn every_example_is_a_configuration() {
    let mut examples = vec![
        ("the built-in example".to_owned(), EXAMPLE.to_owned()),
        ("FULL".to_owned(), FULL.to_owned()),
        ("FULL on memory".to_owned(), full_on_memory()),
    ];
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    for file in files(&root().join("docs"), ".md").into_iter().chain(pages) {
        let page = std::fs::read_to_string(&file).unwrap();
        let place = |line: usize| format!("{}:{line}", file.display());
        examples.extend(files_of(&page).into_iter().map(|(line, text)| (place(line), text)));
    }
    for folder in ["deploy", "tests"] {
        for file in files(&root().join(folder), "weir.yaml") {
            examples.push((file.display().to_string(), std::fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(examples.len() > 10, "{}", examples.len());
    let (validator, authority) = (validator(), Authority::create());
    for (place, text) in examples {
        let text = with_real_files(&text, &authority);
        parse(&text).unwrap_or_else(|errors| panic!("{place}\n{text}\nis refused:\n{errors}"));
        let mistakes = mistakes(&validator, &document(&text).unwrap());
        assert!(mistakes.is_empty(), "{place}\n{text}\nis refused by the schema:\n{mistakes:#?}");
    }
}

/// The file of a release is read for good: it stays as it was.
#[test]
fn the_configuration_of_every_release_is_still_read() {
    let folders = std::fs::read_dir(root().join("tests/releases")).unwrap();
    let mut releases: Vec<_> = folders.map(|entry| entry.unwrap().path()).collect();
    releases.sort();
    assert!(!releases.is_empty());
    for release in releases {
        let file = release.join("weir.yaml");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        parse(&text).unwrap_or_else(|errors| panic!("{file:?} is not read any more:\n{errors}"));
    }
}

/// Values that people write and YAML reads as something else than text.
#[test]
fn unusual_ways_of_writing_are_taken_by_both() {
    let validator = validator();
    let strategies = |name: &str, per: &str| {
        format!(
            "strategies: {{ {name}: {{ limits: [{{ name: {name}, per: {per}, uniform: {{ interval: 1s }} }}] }} }}"
        )
    };
    for text in [
        strategies("5", "[resource]"),
        strategies("1.5", ""),
        strategies("true", "['resource']"),
        section("server:\nstore:\nresources:\noverrides:\naccess:\nmessages:"),
        section("server: { limits: }\naccess: { allow: , deny: [5, 5.0, true, '*'] }"),
        strategies("5", "[region, true, resource]"),
        section("store: { memory: }"),
        section("store: { memory: { budget: 1048576 } }"),
        section("store: { memory: { budget: \"1_048_576\" } }"),
        section("store: { key_secret: 12345, namespace: 404 }"),
        section("store: { namespace: true }"),
        section("messages: { limited: '', never: 5 }"),
        section("resources: [{ match: 404, strategy: a, group: 1 }, { match: '*', strategy: 'a' }]"),
        section("server: { workers: 1_0, drain_timeout: 0s, listen: '[::1]:0' }"),
        section("server: { listen: unix:weir.sock, listen_mode: \"600\" }"),
        section("server: { listen: unix:/run/weir/weir.sock, listen_mode: \"0666\" }"),
        section("server: { listen: 'unix:///run/weir/weir.sock' }"),
        section("server: { workers: 08, drain_timeout: \"1_0s5ms\" }"),
    ] {
        parse(&text).unwrap_or_else(|errors| panic!("{text}\nis refused:\n{errors}"));
        let mistakes = mistakes(&validator, &document(&text).unwrap());
        assert!(mistakes.is_empty(), "{text}\nis refused by the schema:\n{mistakes:#?}");
    }
}
