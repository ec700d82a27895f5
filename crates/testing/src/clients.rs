//! Programs that scripts/install-clients.sh puts into `.cache/clients`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use super::process::Process;

/// The root of the sources.
pub fn root() -> &'static Path {
    const ROOT: &str = env!("CARGO_MANIFEST_DIR");
    Path::new(ROOT.strip_suffix("/crates/testing").expect("the crate lies in the workspace"))
}

/// Returns the files below `folder` whose names end in `end`.
pub fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry, end));
        } else if entry.to_string_lossy().ends_with(end) {
            found.push(entry);
        }
    }
    found
}

/// The clients' environment. `None` only where SKIP_CLIENTS=1 asks for it; one that is missing or out
/// of date fails the test, because a test that has not run has shown nothing.
#[track_caller]
pub fn environment() -> Option<PathBuf> {
    static CHECKED: OnceLock<Result<(), String>> = OnceLock::new();
    installed(&CHECKED, "SKIP_CLIENTS", "clients")
}

/// Returns the folder that the installer of `name` fills, unless `variable` skips the test. Panics if the installer finds
/// that the folder is missing or out of date.
#[track_caller]
pub(crate) fn installed(
    checked: &OnceLock<Result<(), String>>,
    variable: &str,
    name: &str,
) -> Option<PathBuf> {
    if is_skipped(variable) {
        return None;
    }
    let check = || {
        let script = format!("scripts/install-{name}.sh");
        let checked = Command::new(&script).arg("--check").current_dir(root()).output();
        let checked = checked.map_err(|error| format!("{script} cannot be run: {error}"))?;
        if checked.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&checked.stderr).into()) }
    };
    if let Err(reason) = checked.get_or_init(check) {
        panic!("{reason}");
    }
    Some(root().join(".cache").join(name))
}

/// True if this variable is set to skip a test, which is printed.
pub fn is_skipped(variable: &str) -> bool {
    let is_skipped = std::env::var_os(variable).is_some_and(|value| value == "1");
    if is_skipped {
        // Not with eprintln, which the test harness keeps to itself when a test passes.
        let _ = writeln!(std::io::stderr(), "{variable}=1: a test has NOT run");
    }
    is_skipped
}

/// Python with every package of tests/clients/requirements.txt and the stubs of our protos.
pub fn python(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("python/bin/python"));
    command.env("PYTHONPATH", environment.join("stubs")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Node with the packages of tests/clients/package.json.
pub fn node(environment: &Path) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", environment.join("node/node_modules"));
    command
}

/// The program of tests/clients/go, tied to the life of the test. `None` where SKIP_GO=1 or SKIP_CLIENTS=1.
#[track_caller]
pub fn go() -> Option<Command> {
    go_program("client")
}

/// A program in Go that scripts/install-clients.sh has built.
#[track_caller]
pub fn go_program(name: &str) -> Option<Command> {
    let environment = environment().filter(|_| !is_skipped("SKIP_GO"))?;
    Some(Process::command(environment.join("go").join(name).to_str().unwrap()))
}

/// The program of tests/clients/java, tied to the life of the test. `None` where SKIP_JAVA=1 or SKIP_CLIENTS=1.
#[track_caller]
pub fn java() -> Option<Command> {
    let java = environment().filter(|_| !is_skipped("SKIP_JAVA"))?.join("java");
    let path = format!("{0}/classes:{0}/lib/*", java.display());
    let mut command = Process::command("java");
    // It runs for seconds: the second compiler would not pay for itself.
    command.args(["-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", &path, "Client"]);
    Some(command)
}

/// Runs the command to its end.
#[track_caller]
pub fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null()).current_dir(root());
    // No proxy between a test and a server on the same machine.
    for proxy in ["http_proxy", "https_proxy", "grpc_proxy", "all_proxy"] {
        command.env_remove(proxy).env_remove(proxy.to_uppercase());
    }
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
