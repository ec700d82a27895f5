//! A real Envoy, started from an example of deploy/envoy. The ports are changed, and so is the timeout of 20 ms where
//! a test is not about it, because a busy machine exceeds it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::clients::{is_skipped, root};
use super::http::Http;
use super::process::Process;
use super::{SOON, eventually_async, ports, scratch};

/// An Envoy on loopback ports of its own. Dies on drop.
pub struct EnvoyProcess {
    /// The listen address of its front.
    pub front: SocketAddr,
    admin: SocketAddr,
    process: Process,
    dir: TempDir,
}

/// The program. `None` only where SKIP_ENVOY=1 asks for it: a test that has not run has shown nothing.
#[track_caller]
pub fn program() -> Option<PathBuf> {
    if is_skipped("SKIP_ENVOY") {
        return None;
    }
    let cache = root().join(".cache/envoy");
    assert!(
        cache.join("stamp").exists() && cache.join("envoy").exists(),
        "Envoy is not installed: run `make test`, or scripts/install-envoy.sh, or go without it with SKIP_ENVOY=1"
    );
    Some(cache.join("envoy"))
}

/// The text of an example.
pub fn example(name: &str) -> String {
    let file = root().join("deploy/envoy").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// An example with a time-out that only a service that does not answer reaches.
pub fn patient(name: &str) -> String {
    replaced(&example(name), "timeout: 0.02s", "timeout: 5s")
}

impl EnvoyProcess {
    /// Starts the example in front of the rate limit service at this address, [`patient`]. `None` where there
    /// is to be no Envoy.
    pub async fn start(name: &str, service: SocketAddr) -> Option<Self> {
        Self::start_with(&patient(name), service).await
    }

    /// The same in front of the service on the Unix socket of this path.
    pub async fn start_on_socket(name: &str, path: &Path) -> Option<Self> {
        let tcp = "type: STRICT_DNS\n      connect_timeout: 0.25s\n";
        let config = replaced(&patient(name), tcp, "type: STATIC\n      connect_timeout: 0.25s\n");
        let port = "socket_address: { address: 127.0.0.1, port_value: 8081 }";
        let pipe = format!("pipe: {{ path: {:?} }}", path.to_str().expect("a path of the test's own"));
        Self::start_on_free_ports(replaced(&config, port, &pipe)).await
    }

    /// Starts a configuration as it is, but for its ports.
    pub async fn start_with(config: &str, service: SocketAddr) -> Option<Self> {
        let port = format!("port_value: {} ", service.port());
        Self::start_on_free_ports(replaced(config, "port_value: 8081 ", &port)).await
    }

    async fn start_on_free_ports(mut config: String) -> Option<Self> {
        let (front, app, admin) = (loopback(), loopback(), loopback());
        for (shipped, port) in [(10_000, front), (10_001, app), (9_901, admin)] {
            let port = port.port();
            config = replaced(&config, &format!("port_value: {shipped} "), &format!("port_value: {port} "));
        }
        Self::run(&config, front, admin).await
    }

    /// Starts a configuration of the test's own, which listens on these addresses.
    pub async fn run(config: &str, front: SocketAddr, admin: SocketAddr) -> Option<Self> {
        let program = program()?;
        let dir = scratch::dir("envoy");
        let file = dir.path().join("envoy.yaml");
        std::fs::write(&file, config).unwrap();
        let mut command = Process::command(program.to_str().unwrap());
        command.args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"]);
        command.arg("--config-path").arg(&file).arg("--log-path").arg(dir.path().join("log"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).unwrap();
        let mut envoy = Self { front, admin, process, dir };
        envoy.wait_until_live().await;
        Some(envoy)
    }

    async fn wait_until_live(&mut self) {
        let admin = self.admin;
        eventually_async(SOON, "Envoy is live", async || {
            assert!(self.process.exited().is_none(), "Envoy ended: {}", self.log());
            let listens = tokio::net::TcpStream::connect(admin).await.is_ok();
            listens && Http::connect(admin).await.get("/ready", &[]).await.status == 200
        })
        .await;
    }

    /// A client's connection to its front.
    pub async fn client(&self) -> Http {
        Http::connect(self.front).await
    }

    /// The same from another address.
    pub async fn client_from(&self, client: [u8; 4]) -> Http {
        Http::connect_from(IpAddr::from(client), self.front).await
    }

    /// Returns one of its counters or gauges; 0 if it does not exist yet.
    pub async fn stat(&self, name: &str) -> u64 {
        let answer = Http::connect(self.admin).await.get(&format!("/stats?filter={name}"), &[]).await;
        let value = answer.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map_or(0, |value| value.parse().unwrap())
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

/// An unused address of this machine.
pub fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()))
}

#[track_caller]
fn replaced(config: &str, what: &str, with: &str) -> String {
    assert!(config.contains(what), "the example has no {what:?}");
    config.replace(what, with)
}
