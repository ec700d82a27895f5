//! The shell commands of the README and of the pages of docs/: each block is run as it is written, or stands in a list with
//! the test that runs it, or with the reason why none does. The blocks run in a network of their own, so that the documented
//! ports are free.

mod blocks;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use self::blocks::{BLOCKS, Block, How};
use crate::support::clients::root;
use crate::support::command::WEIR;
use crate::support::{clients::is_skipped, scratch};

/// Folders with pages.
const FOLDERS: [&str; 5] = ["", "docs", "docs/clients", "docs/coming-from", "docs/configuration"];

/// Pages of the root that have no commands for users.
const OF_ENGINEERS: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md", "CHANGELOG.md"];

/// Starts what a block needs, and waits until it serves.
const BEGIN: &str = r#"
set -eu
ip link set lo up
ready() {
    for _ in $(seq 200); do
        curl --silent --fail --output /dev/null http://127.0.0.1:8080/readyz && return
        sleep 0.05
    done
    echo "weir is not ready" >&2
    exit 1
}
# The pages' times are those of a machine that does nothing else.
sleep() { command sleep "$(awk "BEGIN { print 3 * $1 }")"; }
"#;

/// All shell blocks, with the page of each.
fn all_blocks() -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    for folder in FOLDERS {
        let mut pages: Vec<_> =
            fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        pages.sort();
        for page in pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
            let name = page.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            if OF_ENGINEERS.contains(&name.as_str()) {
                continue;
            }
            let text = fs::read_to_string(page).unwrap();
            let of_shell = text.split("\n```").filter_map(|part| {
                let (kind, block) = part.split_once('\n')?;
                ["sh", "bash"].contains(&kind).then(|| block.to_owned())
            });
            blocks.extend(of_shell.map(|block| (name.clone(), block)));
        }
    }
    blocks
}

fn entry(page: &str, block: &str) -> Option<&'static Block> {
    BLOCKS.iter().find(|entry| entry.page == page && block.starts_with(entry.begins))
}

#[test]
fn each_block_is_run_or_has_a_reason() {
    let blocks = all_blocks();
    assert!(blocks.len() > 40, "{blocks:?}");
    let unknown: Vec<_> = blocks.iter().filter(|(page, block)| entry(page, block).is_none()).collect();
    assert!(unknown.is_empty(), "add these to {}: {unknown:#?}", file!());
    let used: BTreeSet<_> = blocks
        .iter()
        .filter_map(|(page, block)| entry(page, block))
        .map(|entry| (entry.page, entry.begins))
        .collect();
    let stale: Vec<_> = BLOCKS.iter().filter(|entry| !used.contains(&(entry.page, entry.begins))).collect();
    assert!(stale.is_empty(), "the pages have no such block: {stale:#?}");
    // A test that is named exists.
    for entry in BLOCKS {
        if let How::Test(file) = entry.how {
            assert!(root().join(file).exists(), "{}: there is no {file}", entry.page);
        }
    }
}

#[test]
fn blocks_run_as_they_are_written() {
    let own_network = ["--map-root-user", "--net", "--pid", "--fork", "--kill-child"];
    let can = Command::new("unshare").args(own_network).args(["ip", "link", "set", "lo", "up"]).output();
    if !can.is_ok_and(|out| out.status.success()) {
        eprintln!(
            "this machine allows no network of our own (unshare, ip): the commands of the pages have NOT run"
        );
        return;
    }
    let mut failed = Vec::new();
    for (page, block) in all_blocks() {
        let Some(Block { how: How::Run { before, after }, needs, .. }) = entry(&page, &block) else {
            continue;
        };
        if needs.iter().any(|variable| is_skipped(variable)) {
            continue;
        }
        let script = format!("{BEGIN}{before}\n{}\n{after}\n", in_background(&block));
        let folder = folder_of_a_reader();
        let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "5", "120", "unshare"]).args(own_network).args(["bash", "-c", &script]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WEIR_")) {
            command.env_remove(name);
        }
        command.current_dir(folder.path()).env("PATH", &path).env("WEIR_DRAIN_DELAY", "0s");
        let out = command.output().unwrap();
        if !out.status.success() {
            let said =
                [&out.stdout[..], &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            failed.push(format!("{page}: {}\n{block}\n{}", out.status, said.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// The root of the sources as a reader has it, with `weir` on the path and built. What is written there is lost.
fn folder_of_a_reader() -> tempfile::TempDir {
    let folder = scratch::dir("page-");
    for name in ["docs", "deploy", "proto", "scripts", "tests", ".cache"] {
        symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    for place in ["bin", "target/release"] {
        fs::create_dir_all(folder.path().join(place)).unwrap();
        symlink(Path::new(WEIR), folder.path().join(place).join("weir")).unwrap();
    }
    folder
}

/// Readers start a server in another terminal. Where a line does not end, the next one would never come.
fn in_background(block: &str) -> String {
    let line = |line: &str| {
        let is_server = line.contains("weir serve") && !line.trim_end().ends_with('&');
        if is_server { format!("{line} &\nready") } else { line.to_owned() }
    };
    block.lines().map(line).collect::<Vec<_>>().join("\n")
}
