//! A `weir serve` of this build.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use weir_testing::Process;
use weir_testing::usage::cpu_time;

/// The program that is measured.
pub(crate) const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A server, until it is dropped.
pub(crate) struct Served {
    process: Process,
    pub(crate) address: SocketAddr,
    /// Standard output, kept open: the server must not write into a closed pipe.
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Served {
    pub(crate) fn start(config: &Path) -> Self {
        let mut command = Process::command(WEIR);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"]).arg(config);
        command.env("WEIR_DRAIN_DELAY", "0s").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::spawn(command).unwrap();
        let mut lines = BufReader::new(process.child().stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("it announces its address").unwrap();
            if let Some(address) = line.trim().strip_prefix("gRPC ") {
                break address.trim().parse().unwrap();
            }
        };
        Self { process, address, _lines: lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The CPU time that it has used, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        cpu_time(self.pid()).as_secs_f64()
    }
}

/// The directory of cargo's output.
pub(crate) fn target() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"))
}
