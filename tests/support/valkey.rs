//! Tests once more on Valkey: by this very program, to which `redis-server` is Valkey's server.

use std::path::PathBuf;

use weir_testing::clients::{environment, files, run};
use weir_testing::{Process, scratch};

/// Runs the tests of this program whose names begin like these.
pub(crate) fn passes(tests: &[&str]) {
    let Some(environment) = environment() else { return };
    let found = files(&environment.join("python/lib"), "/valkey-server");
    let [server] = found.as_slice() else { panic!("tests/clients/requirements.txt brings one: {found:?}") };
    let programs = scratch::dir("valkey-");
    std::os::unix::fs::symlink(server, programs.path().join("redis-server")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(PathBuf::from(programs.path())).chain(std::env::split_paths(&path));
    let this = std::env::current_exe().unwrap();
    let mut command = Process::command(this.to_str().unwrap());
    command.args(tests).args(["--test-threads", "2"]);
    command.env("PATH", std::env::join_paths(paths).unwrap());
    let output = String::from_utf8(run(command).stdout).unwrap();
    for test in tests {
        assert!(output.contains(&format!("test {test}")), "{test} has not run:\n{output}");
    }
}
