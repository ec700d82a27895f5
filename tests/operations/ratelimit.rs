//! In the place of envoyproxy/ratelimit: what its launchers start, what its variables mean, and what its ports answer.

mod behind_envoy;
mod client_names;
mod connections;
mod dashboard;
mod image;
mod launched;
mod long_paused;
mod long_reference;
mod manifests;
mod mapper;
mod no_ipv6;
mod pages;
mod paused;
mod redis;
mod reference_metrics;
mod reload;
mod settings;
mod tls;
mod unreadable;
mod variables;
mod xds;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually, eventually_some, scratch};

const FILE: &str = "domain: d
descriptors:
  - key: k
    value: v
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: k
    rate_limit: { unit: hour, requests_per_unit: 20 }
";

/// A process that stands in for the reference, on an address of the loopback network of its own, so that it can have the
/// reference's ports.
struct Ratelimit {
    process: Process,
    host: Ipv4Addr,
    _files: TempDir,
}

/// An address that no other process of these tests has: there are 156, and they start some 110.
fn host() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let [high, low] = u16::try_from(std::process::id() % 0xffff).unwrap().to_be_bytes();
    Ipv4Addr::new(127, 100 + NEXT.fetch_add(1, Relaxed) % 156, high, low.max(2))
}

/// The directories of the reference with one file.
fn files(text: &str) -> TempDir {
    let folder = scratch::dir("ratelimit-");
    let config = folder.path().join("data/ratelimit/config");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), text).unwrap();
    folder
}

/// The variables of a launcher that mounts files, for a process that counts in memory.
fn variables(files: &Path, host: Ipv4Addr) -> Vec<(String, String)> {
    let pairs = [
        ("RUNTIME_ROOT", files.join("data").display().to_string()),
        ("RUNTIME_SUBDIRECTORY", "ratelimit".to_owned()),
        ("USE_STATSD", "false".to_owned()),
        ("HOST", host.to_string()),
        ("DEBUG_HOST", host.to_string()),
        ("GRPC_HOST", host.to_string()),
        ("PROMETHEUS_ADDR", format!("{host}:9090")),
        ("WEIR_STORE", "memory".to_owned()),
        ("WEIR_DRAIN_DELAY", "0s".to_owned()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A command with nothing but these variables.
fn command(program: &Path, args: &[&str], variables: &[(String, String)]) -> Command {
    let mut command = Process::command(program.to_str().unwrap());
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).args(args).envs(variables.iter().cloned());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Ratelimit {
    /// Starts `weir ratelimit` with more variables, and waits until it is healthy.
    fn start(more: &[(&str, &str)]) -> Self {
        Self::start_as(Path::new(WEIR), &["ratelimit"], more)
    }

    fn start_as(program: &Path, args: &[&str], more: &[(&str, &str)]) -> Self {
        let mut started = Self::spawn_as(program, args, more);
        eventually(SOON, "it is healthy", || {
            if let Some(status) = started.process.exited() {
                panic!("it ended: {status}\n{}", started.log());
            }
            started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == 200)
        });
        started
    }

    /// Starts it without waiting.
    fn spawn(more: &[(&str, &str)]) -> Self {
        Self::spawn_as(Path::new(WEIR), &["ratelimit"], more)
    }

    fn spawn_as(program: &Path, args: &[&str], more: &[(&str, &str)]) -> Self {
        let (files, host) = (files(FILE), host());
        let mut variables = variables(files.path(), host);
        // Those of the reference name the store.
        variables.retain(|(name, _)| name != "WEIR_STORE" || !more.contains(&("WEIR_STORE", "")));
        let more = more.iter().filter(|pair| **pair != ("WEIR_STORE", ""));
        variables.extend(more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let process = Process::spawn(command(program, args, &variables)).unwrap();
        Self { process, host, _files: files }
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.host, port))
    }

    /// GETs a path: the status and the body; `None` if nobody listens.
    fn get(&self, port: u16, path: &str) -> Option<(u16, String)> {
        self.send(port, &format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"))
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.0\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        self.send(8080, &(head + body)).unwrap()
    }

    fn send(&self, port: u16, text: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.at(port)).ok()?;
        stream.set_read_timeout(Some(SOON)).unwrap();
        // The answer may come before all of a body that is too large is sent.
        let _ = stream.write_all(text.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    async fn channel(&self, port: u16) -> Channel {
        let url = format!("http://{}", self.at(port));
        Endpoint::from_shared(url).unwrap().connect().await.unwrap()
    }

    /// Asks over gRPC.
    async fn asks(&self, value: &str) -> Code {
        let mut client = RateLimitServiceClient::new(self.channel(8081).await);
        client.should_rate_limit(request(value)).await.unwrap().into_inner().overall_code()
    }

    /// The same where the call may fail.
    async fn try_asks(&self, value: &str) -> Option<Code> {
        let mut client = RateLimitServiceClient::new(self.channel(8081).await);
        Some(client.should_rate_limit(request(value)).await.ok()?.into_inner().overall_code())
    }

    /// Everything it wrote to stderr; it must have ended.
    fn log(&mut self) -> String {
        let mut log = String::new();
        self.process.child().stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }

    /// Tells it to stop, and waits: its exit code, and its log.
    fn stop(mut self) -> (Option<i32>, String) {
        self.process.signal("TERM");
        let status = eventually_some(SOON, "it ends", || self.process.exited());
        (status.code(), self.log())
    }
}

fn request(value: &str) -> RateLimitRequest {
    let entry = Entry { key: "k".to_owned(), value: value.to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    RateLimitRequest { domain: "d".to_owned(), descriptors: vec![descriptor], hits_addend: 1 }
}
