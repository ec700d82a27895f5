//! Child processes and free ports.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tempfile::TempDir;

/// A child that is killed when it is dropped.
pub struct Process {
    child: Child,
    pub port: u16,
}

impl Process {
    /// Starts `command`, which is to listen on `port`, and waits until it does.
    pub fn start(mut command: Command, port: u16) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
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
        self.child.id()
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port on which nothing listens, nor on the one 10,000 above it, where a Redis Cluster's bus is.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 2_000) as u16;
    loop {
        let port = 23_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 4_000;
        let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

/// Whether there is such a program.
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A Redis without persistence.
pub fn redis(files: &TempDir, more: &[&str]) -> Process {
    let port = free_port();
    let mut command = Command::new("redis-server");
    command.args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port", &port.to_string()]);
    command.arg("--dir").arg(files.path()).args(more);
    Process::start(command, port)
}
