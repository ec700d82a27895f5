//! `weir serve` with limits for Envoy, as a process that can be killed, frozen and started again.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::{Process, SOON, eventually, ports, scratch};

pub(crate) struct Service {
    pub(crate) grpc: SocketAddr,
    pub(crate) process: Process,
    config: TempDir,
}

impl Service {
    /// Serves the limits of `folder`, with this configuration beside them.
    pub(crate) fn start(folder: &Path, config: &str) -> Self {
        let dir = scratch::dir("service");
        let text = format!("{config}\nenvoy: {{ config: {:?} }}\n", folder.to_str().unwrap());
        std::fs::write(dir.path().join("weir.yaml"), text).unwrap();
        let grpc = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()));
        Self { grpc, process: serve(grpc, dir.path()), config: dir }
    }

    /// Starts it again on the same port, dead or not.
    pub(crate) fn restart(&mut self) {
        self.process.kill();
        self.process = serve(self.grpc, self.config.path());
    }
}

fn serve(grpc: SocketAddr, dir: &Path) -> Process {
    let mut command = Process::command(env!("CARGO_BIN_EXE_weir"));
    command.args(["serve", "--listen", &grpc.to_string(), "--admin", "127.0.0.1:0", "--config"]);
    command.arg(dir.join("weir.yaml")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Process::spawn(command).unwrap();
    eventually(SOON, "weir serves", || {
        assert!(process.exited().is_none(), "weir ended");
        TcpStream::connect(grpc).is_ok()
    });
    process
}
