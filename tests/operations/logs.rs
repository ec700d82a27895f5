//! Logs never hurt decisions: whatever becomes of stdout and stderr, the service serves and drains.

mod rejected;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, PipeReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Stdio;
use weir_testing::metrics;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use weir_load::client::Client;
use weir_proto::v1::ShouldAllowRequest;

use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually, eventually_async, eventually_some, ports};

/// A call's log line has both names of this length. 4,000 such lines are more than a pipe and the queue hold.
const NAME: usize = 500;
const CALLS: u64 = 4_000;
/// The lines of so many calls fit into the queue, however slow its reader is.
const FEW: u64 = 200;

/// `weir serve` at its most talkative.
struct Talkative {
    process: Process,
    grpc: SocketAddr,
    admin: SocketAddr,
}

impl Talkative {
    fn start(stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Self {
        let [grpc, admin] = [(); 2].map(|()| SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free())));
        let mut command = Process::command(WEIR);
        command.args(["serve", "--log", "debug", "--listen", &grpc.to_string()]);
        command.args(["--admin", &admin.to_string(), "--drain-delay", "0s"]).stdout(stdout).stderr(stderr);
        Self { process: Process::spawn(command).unwrap(), grpc, admin }
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        stream.set_read_timeout(Some(SOON)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.1 200 ").then_some(text)
    }

    fn dropped(&self) -> u64 {
        let page = self.get("/metrics").expect("the admin port answers");
        metrics::value(&page, "weir_log_lines_dropped_total")
    }

    /// Decides many calls, of which each writes a log line.
    async fn decides(&self, calls: u64) {
        let url = format!("http://{}", self.grpc);
        let connected = async || Client::connect(&url, SOON).await.is_ok();
        eventually_async(SOON, "it serves", connected).await;
        let mut client = Client::connect(&url, SOON).await.unwrap();
        for call in 0..calls {
            let request = ShouldAllowRequest {
                resource: "r".repeat(NAME),
                consumer: format!("{call:0NAME$}"),
                strategy: "tiger-feeding".to_owned(),
                peek: true,
                ..ShouldAllowRequest::default()
            };
            let answer = client.should_allow(request).await.expect("it is decided in time");
            assert!(answer.allowed);
        }
        assert!(self.get("/livez").is_some());
    }

    /// Stops with SIGTERM and drains. The exit code is that of success.
    fn drains(mut self) {
        self.process.signal("TERM");
        let status = eventually_some(SOON, "weir ends", || self.process.exited());
        assert_eq!(status.code(), Some(0));
    }
}

fn full_device() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// A pipe that holds as much as fits, and its reader.
fn filled_pipe() -> (PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    for size in [1 << 12, 1] {
        while writer.write(&vec![b'\n'; size]).map_err(|error| error.kind()) != Err(ErrorKind::WouldBlock) {}
    }
    // The child shares these flags, and its writes are to block.
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[tokio::test]
async fn a_full_device_costs_log_lines_and_no_decision() {
    let weir = Talkative::start(full_device(), full_device());
    weir.decides(CALLS).await;
    eventually(SOON, "lines are dropped", || weir.dropped() >= CALLS);
    weir.drains();
}

#[tokio::test]
async fn a_reader_that_has_gone_costs_log_lines_and_no_decision() {
    let ((stdout, to_stdout), (stderr, to_stderr)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    drop((stdout, stderr));
    let weir = Talkative::start(to_stdout, to_stderr);
    weir.decides(CALLS).await;
    eventually(SOON, "lines are dropped", || weir.dropped() >= CALLS);
    weir.drains();
}

#[tokio::test]
async fn a_stalled_reader_costs_log_lines_and_no_decision() {
    let ((_stdout, to_stdout), (_stderr, to_stderr)) = (filled_pipe(), filled_pipe());
    let weir = Talkative::start(to_stdout, to_stderr);
    weir.decides(CALLS).await;
    assert!(weir.dropped() > 0);
    weir.drains();
}

#[test]
fn a_reader_that_has_stalled_does_not_hold_up_a_start_that_fails() {
    let ((_stdout, to_stdout), (_stderr, to_stderr)) = (filled_pipe(), filled_pipe());
    let mut command = Process::command(WEIR);
    command.args(["serve", "--workers", "many"]).stdout(to_stdout).stderr(to_stderr);
    let mut process = Process::spawn(command).unwrap();
    let status = eventually_some(SOON, "weir ends", || process.exited());
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn every_line_of_a_log_that_is_read_is_there() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let log = std::thread::spawn(move || {
        let mut log = String::new();
        reader.read_to_string(&mut log).map(|_| log).unwrap()
    });
    let weir = Talkative::start(Stdio::null(), writer);
    weir.decides(FEW).await;
    assert_eq!(weir.dropped(), 0);
    weir.drains();
    let log = log.join().unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let decided = lines.filter(|line| line["message"] == "decided").count();
    assert_eq!(decided as u64, FEW);
    assert!(log.lines().last().unwrap().contains("\"stopped\""), "{log}");
}

/// On a terminal, the first lines and the log are both on the screen.
#[test]
fn a_terminal_shows_where_it_listens_and_what_to_type() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let screen = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let open = || OpenOptions::new().read(true).write(true).open(&screen).unwrap();
    let weir = Talkative::start(open(), open());
    let mut terminal = File::from(terminal);
    let (mut shown, mut buffer) = (String::new(), [0; 4096]);
    // If something is missing, the read waits until the test's process is ended.
    while !(shown.contains("weir allow zewtopia.com/tigerfeeding bob") && shown.contains("serving")) {
        let count = terminal.read(&mut buffer).unwrap();
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(shown.contains(&format!("gRPC    {}", weir.grpc)), "{shown}");
    weir.drains();
}
