//! A `weir serve` of this build.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The program that is measured.
pub(crate) const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Ticks of the kernel's accounting in a second, on Linux for all programs.
const TICKS: f64 = 100.0;

/// A server, until it is dropped.
pub(crate) struct Served {
    process: Child,
    pub(crate) address: SocketAddr,
    /// Standard output, kept open: the server must not write into a closed pipe.
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Served {
    pub(crate) fn start(config: &Path) -> Self {
        let mut command = Command::new(WEIR);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"]).arg(config);
        command.env("WEIR_DRAIN_DELAY", "0s").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("it announces its address").unwrap();
            if let Some(address) = line.trim().strip_prefix("gRPC ") {
                break address.trim().parse().unwrap();
            }
        };
        Self { process, address, _lines: lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The CPU time that it has used, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // `utime` and `stime` are the 14th and the 15th, and the second ends with the bracket.
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / TICKS
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The directory of cargo's output.
pub(crate) fn target() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"))
}
