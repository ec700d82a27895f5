//! `weir serve` with limits for Envoy, as a process that can be killed, frozen and started again.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Process, SOON, eventually, eventually_async, ports, scratch};

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

    /// Stops it as an orchestrator does, and starts it again on the same port when it has been away for so long.
    pub(crate) async fn terminate_and_restart(&mut self, away: Duration) {
        self.process.signal("TERM");
        eventually_async(SOON, "weir ends", async || self.process.exited().is_some()).await;
        assert_eq!(self.process.exited().and_then(|status| status.code()), Some(0));
        tokio::time::sleep(away).await;
        self.process = serve(self.grpc, self.config.path());
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
