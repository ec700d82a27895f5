//! A node with all features of the program, and a client that writes and reads bytes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use weir::features::{FEATURES, overrides};
use weir_config::{Config, ListenAddress};
use weir_node::app::{self, Listeners, Timing};
use weir_node::server::{Listener, Shutdown};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

/// Strategies of most tests.
pub(crate) const STRATEGIES: &str = "
strategies:
  two: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 2/1h, burst: 2 } }] }
  region: { limits: [{ name: each, per: [consumer, region], fixed_window: { limit: 3, window: 1m } }] }
resources:
  - { match: two, strategy: two }
";

/// A node that runs until it is dropped.
pub(crate) struct TestNode {
    pub(crate) http: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) admin: SocketAddr,
    stop: Option<oneshot::Sender<Shutdown>>,
    thread: Option<JoinHandle<()>>,
}

/// Parses a configuration with the section of the listener.
pub(crate) fn parsed(text: &str) -> Result<Config, String> {
    Config::parse(text, "test", &overrides()).map_err(|errors| errors.to_string())
}

impl TestNode {
    /// Starts a node with `text` besides its addresses.
    pub(crate) fn start(text: &str) -> Self {
        let free = "127.0.0.1:0";
        let server = match text.contains("server:") {
            true => String::new(),
            false => format!(
                "server: {{ listen: '{free}', admin: '{free}', workers: 1, drain_delay: 0s, admin_service: true }}\n"
            ),
        };
        let http =
            if text.contains("http:") { String::new() } else { format!("http: {{ listen: '{free}' }}\n") };
        Self::run(parsed(&format!("{server}{http}{text}")).unwrap())
    }

    /// Starts a node with a file, which it looks at every 50 ms.
    pub(crate) fn start_with_file(file: &Path) -> Self {
        Self::run(Config::load(file, &overrides()).unwrap())
    }

    fn run(config: Config) -> Self {
        let listeners = Listeners::bind(&config.server).unwrap().with_features(&config).unwrap();
        let tcp = |address: &Listener| match address.local_address().unwrap() {
            ListenAddress::Tcp(address) => address,
            ListenAddress::Unix(_) => unreachable!("a port"),
        };
        let (http, grpc) = (tcp(&listeners.features[0].1), tcp(&listeners.grpc));
        let admin = listeners.admin.as_ref().unwrap().local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let clock = Clock::Manual(ManualClock::at(Micros(1_704_067_200_000_000)));
            let stopped = Box::pin(async { stopped.await.unwrap_or(Shutdown::Immediate) });
            let timing = Timing { poll_every: Duration::from_millis(50), ..clock.into() };
            app::run(config, listeners, timing, stopped, FEATURES).unwrap();
        });
        Self { http, grpc, admin, stop: Some(stop), thread: Some(thread) }
    }

    /// Sends bytes on a connection of their own, and reads to its end.
    pub(crate) fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(bytes.as_ref()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Posts a body with these headers besides its length.
    pub(crate) fn post(&self, path: &str, headers: &str, body: impl AsRef<[u8]>) -> TestAnswer {
        let body = body.as_ref();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        TestAnswer::parse(&self.raw([head.as_bytes(), body].concat()))
    }

    /// Calls a method of `weir.v1` with JSON.
    pub(crate) fn call(&self, method: &str, body: &str) -> TestAnswer {
        let path = format!("/weir.v1.{method}");
        let answer = self.post(&path, "Content-Type: application/json\r\n", body);
        check_by_schema(&path, &answer);
        answer
    }

    /// Returns the metrics page.
    pub(crate) fn metrics(&self) -> String {
        self.admin_page("/metrics")
    }

    /// Returns the answer of a page of the admin port.
    pub(crate) fn admin_page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    /// Begins a shutdown.
    pub(crate) fn shut_down(&mut self, shutdown: Shutdown) {
        let _ = self.stop.take().map(|stop| stop.send(shutdown));
    }

    /// Stops the node and waits for its end.
    pub(crate) fn stop(&mut self) {
        self.shut_down(Shutdown::Immediate);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.shut_down(Shutdown::Immediate);
    }
}

/// Checks an answer of a method against its schema in the description of the listener.
fn check_by_schema(path: &str, answer: &TestAnswer) {
    let mut description = weir_http::openapi().unwrap();
    let operation = &description["paths"][path]["post"]["responses"][answer.status.to_string()];
    let schema = operation["content"]["application/json"]["schema"].clone();
    assert!(schema.is_object(), "{path}: {} is not described", answer.status);
    description["$ref"] = schema["$ref"].clone();
    let validator = jsonschema::draft202012::new(&description).unwrap();
    let mistakes: Vec<String> =
        validator.iter_errors(&answer.json()).map(|error| error.to_string()).collect();
    assert!(mistakes.is_empty(), "{path}: {mistakes:?}: {answer:?}");
}

/// An answer of the listener.
#[derive(Debug)]
pub(crate) struct TestAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl TestAnswer {
    pub(crate) fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.lines();
        let status =
            lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|it| it.parse().ok()).unwrap();
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the code of an error in Connect's form.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}
