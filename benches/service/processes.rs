//! Child processes that listen on a port.

use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use weir_testing::ports;

/// A child that is killed when it is dropped.
pub struct Process {
    child: weir_testing::Process,
    pub port: u16,
}

impl Process {
    /// Starts `command`, which is to listen on `port`, and waits until it does.
    pub fn start(mut command: Command, port: u16) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let name = command.get_program().to_string_lossy().into_owned();
        let spawned = weir_testing::Process::spawn(command);
        let child = spawned.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let process = Self { child, port };
        for _ in 0..500 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return process;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{name} does not listen on port {port}");
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Starts this program as a server with a constant answer: the ceiling of a protocol.
pub fn ceiling(argument: &str) -> Process {
    let port = ports::free();
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([argument, &port.to_string()]);
    Process::start(command, port)
}

/// throttlecrab with one protocol, `grpc` or `http`, if it is there.
pub fn throttlecrab(protocol: &str) -> Option<Process> {
    const PROGRAM: &str = "throttlecrab-server";
    if !is_on_path(PROGRAM) {
        println!("{PROGRAM} is not on PATH: its rows are left out (make throttlecrab)");
        return None;
    }
    let port = ports::free();
    let mut command = Command::new(PROGRAM);
    command.args([format!("--{protocol}"), format!("--{protocol}-host"), "127.0.0.1".to_owned()]);
    command.args([format!("--{protocol}-port"), port.to_string()]).args(["--log-level", "error"]);
    Some(Process::start(command, port))
}

/// Returns true if the program is on the path.
fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A Redis without persistence.
pub fn redis(files: &TempDir, more: &[&str]) -> Process {
    let port = ports::free();
    let mut command = Command::new("redis-server");
    command.args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port", &port.to_string()]);
    command.arg("--dir").arg(files.path()).args(more);
    Process::start(command, port)
}
