//! A directory that changes: which files count, and what serves after each poll.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use weir_envoy::files::{EnvoyFiles, EnvoySource, FilesPoll};
use weir_node::readiness::{FileKind, RefusedFiles};
use weir_node::watch::{ReloadReport, ReloadRequests, WatchedFiles, watch};

use super::limit_of;
use crate::support::{eventually_some, scratch};

/// A watched source that reports each change: true if it was loaded.
struct Reported {
    source: EnvoySource,
    report: Sender<bool>,
}

impl WatchedFiles for Reported {
    fn kind(&self) -> FileKind {
        FileKind::new("envoy", "Envoy's files are refused")
    }

    fn poll(&mut self) -> Option<ReloadReport> {
        let found = self.source.poll();
        if !matches!(found, FilesPoll::Same) {
            let _ = self.report.send(matches!(found, FilesPoll::Loaded { .. })); // nobody listens at the end
        }
        None
    }

    fn reload(&mut self) -> ReloadReport {
        let found = self.source.reload();
        let _ = self.report.send(matches!(found, FilesPoll::Loaded { .. }));
        Ok(())
    }
}

fn file(requests: u32) -> String {
    format!(
        "{{ domain: d, descriptors: [{{ key: k, rate_limit: {{ unit: day, requests_per_unit: {requests} }} }}] }}"
    )
}

pub(super) fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

fn open(folder: &Path) -> EnvoySource {
    EnvoySource::open(folder, false, false).unwrap_or_else(|errors| panic!("{errors}")).0
}

/// The limit in force.
fn serving(source: &EnvoySource) -> Option<u32> {
    limit_of(&source.current().load(), "k=x")
}

/// The first poll sees a change, the second that it is over.
pub(super) fn settled(source: &mut EnvoySource) -> FilesPoll {
    assert!(matches!(source.poll(), FilesPoll::Same), "a change may not be over yet");
    source.poll()
}

#[test]
fn which_files_count() {
    let folder = scratch::dir("envoy-");
    let at = folder.path();
    write(at, "one.yaml", "domain: one");
    write(at, "no-extension", "domain: two");
    write(at, ".hidden.yaml", "nonsense: [");
    fs::create_dir_all(at.join("below/deeper")).unwrap();
    fs::create_dir(at.join(".git")).unwrap();
    write(at, ".git/config", "nonsense: [");
    write(at, "below/deeper/three.yaml", "domain: three");
    let elsewhere = scratch::dir("elsewhere-");
    write(elsewhere.path(), "four.yaml", "domain: four");
    symlink(elsewhere.path().join("four.yaml"), at.join("linked.yaml")).unwrap();
    let files = EnvoyFiles::load(at, false).unwrap();
    let domains: Vec<&str> = files.domains.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(domains, ["three", "four", "two", "one"], "in the order of their paths");

    symlink(at, at.join("loop")).unwrap();
    let errors = EnvoyFiles::load(at, false).unwrap_err().to_string();
    assert!(errors.contains("directories nest at most 8 deep"), "{errors}");
    fs::remove_file(at.join("loop")).unwrap();
    symlink(at.join("nowhere"), at.join("dangling.yaml")).unwrap();
    let errors = EnvoyFiles::load(at, false).unwrap_err().to_string();
    assert!(errors.starts_with(&format!("{}/dangling.yaml: cannot be read: ", at.display())), "{errors}");
}

#[test]
fn a_directory_that_is_not_there_or_is_mistaken_does_not_open() {
    let folder = scratch::dir("envoy-");
    let missing = folder.path().join("missing");
    let errors = EnvoySource::open(missing.as_path(), false, false).unwrap_err().to_string();
    assert!(errors.starts_with(&format!("{}: cannot be read: ", missing.display())), "{errors}");
    write(folder.path(), "a.yaml", "domain: a\ndescriptors: [{}]");
    write(folder.path(), "b.yaml", "");
    let errors = EnvoySource::open(folder.path(), false, false).unwrap_err();
    assert_eq!(errors.errors().len(), 2, "{errors}");
}

/// Case 46: an empty directory serves nothing, until there is something.
#[test]
fn a_file_that_is_added_replaced_or_removed_is_noticed() {
    let folder = scratch::dir("envoy-");
    let (mut source, polled) = EnvoySource::open(folder.path(), false, false).unwrap();
    let FilesPoll::Loaded { warnings } = polled else { panic!("{polled:?}") };
    let path = folder.path().display();
    assert_eq!(warnings, [format!("{path}: there are no files in it, so nothing is limited")]);
    assert_eq!(serving(&source), None);
    assert!(matches!(source.poll(), FilesPoll::Same));
    write(folder.path(), "a.yaml", &file(50));
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source), Some(50));
    // Editors write another file and rename it.
    write(folder.path(), ".a.yaml.new", &file(60));
    fs::rename(folder.path().join(".a.yaml.new"), folder.path().join("a.yaml")).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source), Some(60));
    assert!(matches!(source.poll(), FilesPoll::Same));
    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source), None);
}

/// Case 57: one bad file rejects the whole set. The old set stays in use, and the error is reported once.
#[test]
fn a_bad_set_is_kept_out_until_it_is_good_again() {
    let folder = scratch::dir("envoy-");
    write(folder.path(), "a.yaml", &file(1));
    let mut source = open(folder.path());
    write(folder.path(), "a.yaml", &file(2));
    write(folder.path(), "b.yaml", "domain: b\ndescriptors: [{ key: k, ratelimit: {} }]");
    let FilesPoll::Refused(errors) = settled(&mut source) else { panic!("it is accepted") };
    let expected =
        "b.yaml: config error, unknown key 'ratelimit'; did you mean 'rate_limit'? (line 2, column 25)";
    assert!(errors.to_string().ends_with(expected), "{errors}");
    assert_eq!(serving(&source), Some(1));
    assert!(matches!(source.poll(), FilesPoll::Same), "the error is reported once");
    assert!(matches!(source.poll(), FilesPoll::Same));
    write(folder.path(), "b.yaml", "domain: b");
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source), Some(2));

    // The directory itself may be away for a moment.
    let away = folder.path().with_extension("away");
    fs::rename(folder.path(), &away).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Refused(_)));
    assert_eq!(serving(&source), Some(2));
    fs::rename(&away, folder.path()).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
}

/// As the kubelet does it: files are links into `..data`, which is a link that is swapped.
#[test]
fn a_swapped_config_map_is_noticed() {
    let folder = scratch::dir("configmap-");
    let at = folder.path();
    for (version, requests) in [("..2026_01", 1), ("..2026_02", 2)] {
        fs::create_dir(at.join(version)).unwrap();
        write(at, &format!("{version}/a.yaml"), &file(requests));
    }
    symlink("..2026_01", at.join("..data")).unwrap();
    symlink("..data/a.yaml", at.join("a.yaml")).unwrap();
    let mut source = open(at);
    assert_eq!(serving(&source), Some(1));
    symlink("..2026_02", at.join("..data_tmp")).unwrap();
    fs::rename(at.join("..data_tmp"), at.join("..data")).unwrap();
    fs::remove_dir_all(at.join("..2026_01")).unwrap();
    assert!(matches!(settled(&mut source), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source), Some(2));
}

#[test]
fn a_file_that_is_still_being_written_is_waited_for() {
    let folder = scratch::dir("envoy-");
    let mut source = open(folder.path());
    for requests in 1..5 {
        write(folder.path(), "a.yaml", &format!("{}{}", file(requests), " ".repeat(requests as usize)));
        assert!(matches!(source.poll(), FilesPoll::Same));
    }
    assert!(matches!(source.poll(), FilesPoll::Loaded { .. }));
    assert_eq!(serving(&source), Some(4));
}

/// A lookup that is under way while the set is swapped keeps the old set to its end.
#[test]
fn a_watch_reports_and_swaps_by_itself() {
    let folder = scratch::dir("envoy-");
    write(folder.path(), "a.yaml", &file(1));
    let source = open(folder.path());
    let current = source.current();
    let held = current.load_full();
    let (report, loaded) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let watched: Box<dyn WatchedFiles> = Box::new(Reported { source, report });
        runtime.block_on(watch(
            vec![watched],
            Duration::from_millis(20),
            ReloadRequests::default(),
            RefusedFiles::default(),
        ));
    });
    write(folder.path(), "a.yaml", &file(2));
    let limit = Duration::from_secs(30);
    assert!(loaded.recv_timeout(limit).unwrap());
    assert_eq!(limit_of(&current.load(), "k=x"), Some(2));
    assert_eq!(limit_of(&held, "k=x"), Some(1));
    write(folder.path(), "a.yaml", "domain: ");
    assert!(!eventually_some(limit, "a bad set is reported", || loaded.try_recv().ok()));
    assert_eq!(limit_of(&current.load(), "k=x"), Some(2));
}
