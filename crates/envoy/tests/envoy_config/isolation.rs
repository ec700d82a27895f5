//! With `isolate_domains`, a mistake concerns only its own domain.

use std::fs;
use std::path::Path;

use weir_envoy::files::{EnvoyFolder, EnvoySource, FilesPoll, RefusedDomain};
use weir_envoy::settings::EnvoyLayout;

use super::reload::{settled, write};
use crate::support::scratch;

fn file(domain: &str, requests: u32) -> String {
    let limit = format!("rate_limit: {{ unit: day, requests_per_unit: {requests} }}");
    format!("{{ domain: {domain}, descriptors: [{{ key: k, {limit} }}] }}")
}

const BAD: &str = "descriptors: [{ key: '' }]";

fn open(folder: &Path) -> (EnvoySource, FilesPoll) {
    EnvoySource::open(folder, false, true).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The limit of each domain; `none` where it is missing, `-` where nobody knows it.
fn serving(source: &EnvoySource, domains: &[&str]) -> Vec<String> {
    let current = source.current().load_full();
    let one = |name: &&str| match current.find(name).map(|domain| domain.find([("k", "v")])) {
        Some(matched) => {
            let limit = matched.and_then(|matched| matched.limit.clone());
            limit.map_or_else(String::new, |limit| limit.requests_per_unit().to_string())
        }
        None if current.is_missing(name) => "none".to_owned(),
        None => "-".to_owned(),
    };
    domains.iter().map(one).collect()
}

fn refused(polled: FilesPoll) -> (String, Vec<RefusedDomain>) {
    let FilesPoll::Partly { errors, refused, .. } = polled else { panic!("{polled:?}") };
    (errors.to_string(), refused)
}

fn domain(name: &str, goes_on: bool) -> RefusedDomain {
    RefusedDomain { name: name.to_owned(), goes_on }
}

#[test]
fn a_bad_domain_keeps_its_last_good_version_while_others_change() {
    let folder = scratch::dir("isolated-");
    let at = folder.path();
    write(at, "a.yaml", &file("a", 1));
    write(at, "b.yaml", &file("b", 1));
    let (mut source, polled) = open(at);
    assert!(matches!(polled, FilesPoll::Loaded { .. }));
    write(at, "a.yaml", &file("a", 20));
    write(at, "b.yaml", &format!("domain: b\n{BAD}"));
    let (errors, bad) = refused(settled(&mut source));
    assert!(errors.ends_with("b.yaml: descriptor has empty key (line 2, column 15)"), "{errors}");
    assert_eq!(bad, [domain("b", true)]);
    assert_eq!(serving(&source, &["a", "b", "c"]), ["20", "1", "-"]);
    // It keeps it over several changes, and is served again as soon as it is good.
    write(at, "a.yaml", &file("a", 3));
    assert_eq!(refused(settled(&mut source)).1, [domain("b", true)]);
    assert_eq!(serving(&source, &["a", "b"]), ["3", "1"]);
    write(at, "b.yaml", &file("b", 400));
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source, &["a", "b"]), ["3", "400"]);
    fs::remove_file(at.join("b.yaml")).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source, &["a", "b"]), ["3", "-"], "what is removed is gone");
}

#[test]
fn of_a_domain_that_is_given_twice_all_copies_are_bad() {
    let folder = scratch::dir("isolated-");
    let at = folder.path();
    write(at, "a.yaml", &file("a", 1));
    write(at, "b.yaml", &file("b", 1));
    let (mut source, _) = open(at);
    write(at, "again.yaml", &file("a", 200));
    write(at, "b.yaml", &file("b", 30));
    write(at, "new1.yaml", &file("new", 1));
    write(at, "new2.yaml", &file("new", 20));
    let (errors, bad) = refused(settled(&mut source));
    assert!(errors.contains("again.yaml: duplicate domain 'a' in config file"), "{errors}");
    assert_eq!(bad, [domain("a", true), domain("new", false)]);
    assert_eq!(serving(&source, &["a", "b", "new", "other"]), ["1", "30", "none", "-"]);
    fs::remove_file(at.join("again.yaml")).unwrap();
    fs::remove_file(at.join("new1.yaml")).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source, &["a", "b", "new"]), ["1", "30", "20"]);
}

#[test]
fn a_file_that_does_not_parse_keeps_the_domain_that_it_had() {
    let folder = scratch::dir("isolated-");
    let at = folder.path();
    fs::create_dir(at.join("below")).unwrap();
    write(at, "below/a.yaml", &file("a", 1));
    write(at, "b.yaml", &file("b", 1));
    let (mut source, _) = open(at);
    for broken in ["{ domain: a, descriptors: [", "domain: ", "domain: a\n\u{1}", ""] {
        write(at, "below/a.yaml", broken);
        assert_eq!(refused(settled(&mut source)).1, [domain("a", true)], "{broken:?}");
        assert_eq!(serving(&source, &["a", "b", "c"]), ["1", "1", "-"], "{broken:?}");
    }
    // Another file cannot take the domain over meanwhile: nobody knows if it would be there twice.
    write(at, "other.yaml", &file("a", 200));
    assert_eq!(refused(settled(&mut source)).1, [domain("a", true)]);
    assert_eq!(serving(&source, &["a"]), ["1"]);
    fs::remove_file(at.join("below/a.yaml")).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source, &["a"]), ["200"]);
}

/// Such a file may have any domain, so none that is unknown may pass.
#[test]
fn a_file_that_was_never_read_hides_domains() {
    let folder = scratch::dir("isolated-");
    let at = folder.path();
    write(at, "a.yaml", &file("a", 1));
    write(at, "b.yaml", "domain: [");
    let (mut source, polled) = open(at);
    assert_eq!(refused(polled).1, []);
    assert_eq!(serving(&source, &["a", "anything"]), ["1", "none"]);
    write(at, "b.yaml", &file("b", 20));
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source, &["a", "b", "anything"]), ["1", "20", "-"]);
}

#[test]
fn merged_domains_are_good_or_bad_as_a_whole() {
    let folder = scratch::dir("isolated-");
    let at = folder.path();
    write(at, "1.yaml", &file("a", 1));
    write(at, "2.yaml", "{ domain: a, descriptors: [{ key: l, rate_limit: { unit: day } }] }");
    let (mut source, _) = EnvoySource::open(at, true, true).unwrap();
    write(at, "1.yaml", &file("a", 20));
    write(at, "2.yaml", "{ domain: a, descriptors: [{ key: k }] }");
    let (errors, bad) = refused(settled(&mut source));
    assert!(errors.contains("duplicate descriptor composite key 'a.k'"), "{errors}");
    assert_eq!((bad, serving(&source, &["a"])), (vec![domain("a", true)], vec!["1".to_owned()]));
}

#[test]
fn a_directory_that_is_away_changes_nothing() {
    let folder = scratch::dir("isolated-");
    let at = folder.path();
    assert!(EnvoySource::open(at.join("missing").as_path(), false, true).is_err());
    write(at, "a.yaml", &file("a", 1));
    let (mut source, _) = open(at);
    let away = at.with_extension("away");
    fs::rename(at, &away).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Refused(_)));
    assert_eq!(serving(&source, &["a"]), ["1"]);
    fs::rename(&away, at).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
}

#[test]
fn a_watched_root_has_the_files_of_one_directory_under_dotted_names() {
    let folder = scratch::dir("root-");
    let at = folder.path();
    for below in ["config/deep", "other"] {
        fs::create_dir_all(at.join(below)).unwrap();
    }
    write(at, "config/a.yaml", &file("a", 1));
    write(at, "config/deep/b.yaml", &format!("domain: b\n{BAD}"));
    write(at, "config.c.yaml", &file("c", 1));
    write(at, "other/d.yaml", "nonsense: [");
    write(at, "e.yaml", "nonsense: [");
    std::os::unix::fs::symlink(at.join("nowhere"), at.join("dangling")).unwrap();
    write(at, "config/.hidden.yaml", "nonsense: [");
    let root = EnvoyFolder::new(at, EnvoyLayout::Below("config".to_owned()));
    let (source, polled) = EnvoySource::open(root, false, true).unwrap();
    assert_eq!(refused(polled).0, "config.deep.b.yaml: descriptor has empty key (line 2, column 15)");
    assert_eq!(serving(&source, &["a", "c", "b", "d"]), ["1", "1", "none", "-"]);
    let all = EnvoyFolder::new(at.join("config"), EnvoyLayout::Dotted);
    let errors = EnvoySource::open(all, false, false).unwrap_err().to_string();
    assert_eq!(errors, "deep.b.yaml: descriptor has empty key (line 2, column 15)");
}
