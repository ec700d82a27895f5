//! What is true on Redis is true on Valkey: tests of the scripts, of clusters and of what fails, once more,
//! by this very program, to which `redis-server` is Valkey's server.

use std::path::PathBuf;

use crate::support::clients::{environment, files, run};
use crate::support::{Process, scratch};

/// Those that would tell the two servers apart, and do not measure time.
const TESTS: [&str; 6] =
    ["vectors::", "differential::", "undo::", "failure::spans::", "failure::cluster::", "denials::"];

#[test]
fn it_decides_as_redis_does() {
    let Some(environment) = environment() else { return };
    let found = files(&environment.join("python/lib"), "/valkey-server");
    let [server] = found.as_slice() else { panic!("tests/clients/requirements.txt brings one: {found:?}") };
    let programs = scratch::dir("valkey-");
    std::os::unix::fs::symlink(server, programs.path().join("redis-server")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(PathBuf::from(programs.path())).chain(std::env::split_paths(&path));
    let this = std::env::current_exe().unwrap();
    let mut command = Process::command(this.to_str().unwrap());
    command.args(TESTS).args(["--test-threads", "2"]);
    command.env("PATH", std::env::join_paths(paths).unwrap());
    let told = String::from_utf8(run(command).stdout).unwrap();
    for test in TESTS {
        assert!(told.contains(&format!("test {test}")), "{test} has not run:\n{told}");
    }
}
