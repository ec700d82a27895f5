//! Tests once more on another server: by this very program, to which `redis-server` is that one.

use std::path::{Path, PathBuf};

use weir_testing::clients::{environment, files, is_skipped, root, run};
use weir_testing::{Process, scratch};

/// Runs the tests of this program whose names begin like these, on Valkey.
pub(crate) fn passes_on_valkey(tests: &[&str]) {
    let Some(environment) = environment() else { return };
    let found = files(&environment.join("python/lib"), "/valkey-server");
    let [server] = found.as_slice() else { panic!("tests/clients/requirements.txt brings one: {found:?}") };
    passes(server, tests, SKIPPED);
}

/// The same on Redis 6.2.
pub(crate) fn passes_on_redis_6(tests: &[&str]) {
    if is_skipped("SKIP_REDIS_6") {
        return;
    }
    let server = root().join(".cache/redis-6/redis-server");
    assert!(
        server.exists(),
        "Redis 6.2 is not installed: run `make test-long`, or scripts/install-redis-6.sh, or go without it with \
         SKIP_REDIS_6=1"
    );
    passes(&server, tests, SKIPPED);
}

/// The tests that take the right to a subcommand away, which Redis 6.2 cannot do.
const SKIPPED: &[&str] = &["accelerated_cluster"];

/// Runs tests of this program on `server`, except those that have a word of `skipped` in their names.
pub(crate) fn passes(server: &Path, tests: &[&str], skipped: &[&str]) {
    let programs = scratch::dir("server-");
    std::os::unix::fs::symlink(server, programs.path().join("redis-server")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(PathBuf::from(programs.path())).chain(std::env::split_paths(&path));
    let this = std::env::current_exe().unwrap();
    let mut command = Process::command(this.to_str().unwrap());
    command.args(tests).args(["--test-threads", "2"]);
    command.args(skipped.iter().flat_map(|word| ["--skip", word]));
    command.env("PATH", std::env::join_paths(paths).unwrap());
    let output = String::from_utf8(run(command).stdout).unwrap();
    for test in tests {
        assert!(output.contains(&format!("test {test}")), "{test} has not run:\n{output}");
    }
}
