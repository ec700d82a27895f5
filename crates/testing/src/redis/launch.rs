//! Starts a `redis-server`, and verifies that this one answers.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Connection, RedisResult};
use tempfile::TempDir;

use super::RedisServer;
use crate::process::Process;
use crate::{SOON, ports, scratch, wait};

const PORT_ATTEMPTS: u32 = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A builder of [`RedisServer`].
#[derive(Debug, Clone, Default)]
pub struct RedisBuilder {
    port: Option<u16>,
    args: Vec<String>,
}

impl RedisBuilder {
    /// Adds an argument to the server's command line.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Uses this port rather than any free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts the server, and returns when it answers.
    pub fn start(self) -> RedisServer {
        require_redis();
        let mut failure = String::new();
        for _ in 0..PORT_ATTEMPTS {
            let port = self.port.unwrap_or_else(ports::free);
            let dir = scratch::dir("redis-");
            match launch(port, &self.args, &dir) {
                Ok(process) => {
                    return RedisServer { port, args: self.args, process: Mutex::new(process), dir };
                }
                Err(why) => failure = why, // most likely someone else took the port meanwhile
            }
        }
        panic!("redis-server does not start: {failure}");
    }
}

/// Without Redis there is nothing to test; skipping in silence would look like success.
fn require_redis() {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| Command::new("redis-server").arg("--version").output().is_ok());
    assert!(
        found,
        "redis-server is not installed: run `make test`, which installs it, or `apt-get install redis-server`"
    );
}

/// Starts a server and waits until it answers; the error is its log.
pub(super) fn launch(port: u16, args: &[String], dir: &TempDir) -> Result<Process, String> {
    let log_path = dir.path().join("redis.log");
    let log = File::create(&log_path).expect("make the server's log file");
    let mut command = Process::command("redis-server");
    // The search path for the libraries of modules.
    if let Some(module) = args.iter().skip_while(|arg| *arg != "--loadmodule").nth(1) {
        command.env("LD_LIBRARY_PATH", Path::new(module).parent().expect("a module has a directory"));
    }
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--protected-mode", "no"]);
    command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]).args(args);
    command.current_dir(dir.path()).stderr(log.try_clone().expect("share the log file")).stdout(log);
    let mut process = Process::spawn(command).map_err(|error| error.to_string())?;

    let answered = wait::eventually_some(SOON, "redis-server answers or exits", || {
        match (process.exited(), answering_pid(port)) {
            (Some(_), _) => Some(false),
            (None, Ok(pid)) if pid == process.pid() => Some(true),
            // Not listening yet; or another process' server has the port, and ours is about to exit.
            (None, _) => None,
        }
    });
    let log = || std::fs::read_to_string(&log_path).unwrap_or_default();
    if answered { Ok(process) } else { Err(log()) }
}

fn answering_pid(port: u16) -> RedisResult<u32> {
    let mut connection = connect(port)?;
    redis::cmd("PING").exec(&mut connection)?;
    let info: redis::InfoDict = redis::cmd("INFO").arg("server").query(&mut connection)?;
    Ok(info.get("process_id").unwrap_or(0))
}

/// A connection with time-outs for everything that it waits for.
pub(super) fn connect(port: u16) -> RedisResult<Connection> {
    let client = redis::Client::open(("127.0.0.1", port))?;
    let connection = client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
    connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(connection)
}
