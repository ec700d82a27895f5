//! The recipes of deploy/http, with the real proxies.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use weir_testing::{Process, SOON, eventually};

use super::support::TestNode;

/// The name of the program that scripts/install-proxies.sh builds.
const CADDY: &str = "caddy-v2.11.9";

/// A proxy, and its recipe.
struct ProxyProgram {
    /// The name of its check.
    name: &'static str,
    path: PathBuf,
    file: &'static str,
    /// Changes the recipe as its comments say.
    edit: fn(String) -> String,
}

/// A proxy in front of a site, with a recipe.
struct Proxied {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns a program of scripts/install-proxies.sh; `None` if the tests are to be skipped.
#[allow(clippy::disallowed_methods)] // the switch of whoever runs the test
fn program(path: &str) -> Option<PathBuf> {
    if std::env::var_os("SKIP_PROXIES").is_some_and(|skip| skip == "1") {
        eprintln!("SKIP_PROXIES=1: {path} was not run");
        return None;
    }
    let program = root().join(".cache/proxies").join(path);
    assert!(program.exists(), "scripts/install-proxies.sh unpacks {path}; SKIP_PROXIES=1 skips this test");
    Some(program)
}

/// A port that nobody listens on, below those that clients get.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A site that answers each request with what it got.
fn site() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream, "200 OK", "the site"));
        }
    });
    address
}

/// Answers the first request of a connection.
fn answer(mut stream: TcpStream, status: &str, body: &str) {
    let (mut head, mut byte) = (Vec::new(), [0; 1]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let length = body.len();
    let _ =
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
}

impl Proxied {
    /// Starts a proxy with the recipe in `file`, in front of Weir at `weir`.
    fn start(proxy: &ProxyProgram, weir: SocketAddr) -> Self {
        let ProxyProgram { name, path: program, file, edit } = proxy;
        let folder = tempfile::tempdir().unwrap();
        let (site, port) = (site(), free_port());
        let moved = |text: String| {
            text.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"))
                .replace("127.0.0.1:8082", &weir.to_string())
                .replace("127.0.0.1:8000", &site.to_string())
        };
        for name in [*file, "weir.lua"] {
            let text = std::fs::read_to_string(root().join("deploy/http").join(name)).unwrap();
            let mut text = moved(if name == *file { edit(text) } else { text });
            if name == "nginx.conf" {
                let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
                let paths = temporary.map(|kind| format!("{kind}_temp_path {kind};"));
                text = text.replace("http {", &format!("http {{ access_log off; {}", paths.concat()));
            }
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut command = Command::new(program);
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("LD_LIBRARY_PATH", root().join(".cache/proxies/usr/lib/x86_64-linux-gnu"));
        command.env("HOME", folder.path());
        let here = folder.path().display().to_string();
        match *name {
            "nginx" => {
                let global = "daemon off; master_process off; pid nginx.pid; error_log nginx.log;";
                command.args(["-p", &here, "-c", file, "-e", "nginx.log", "-g", global])
            }
            "haproxy" => command.args(["-f", file]),
            _ => command.args(["run", "--config", file, "--adapter", "caddyfile"]),
        };
        let process = Process::spawn(command).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        eventually(SOON, "the proxy listens", || TcpStream::connect(address).is_ok());
        Self { address, _process: process, _folder: folder }
    }

    /// Asks for a page with these headers: the status and the whole answer.
    fn get(&self, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let host = self.address;
        write!(stream, "GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer)
    }
}

fn weir(proxy: &str, burst: u32) -> TestNode {
    let of_nginx = if proxy == "nginx" { ", limited_status: 401, unavailable_status: 403" } else { "" };
    TestNode::start(&format!(
        "strategies: {{ clients: {{ limits: [{{ name: each, per: [consumer], token_bucket: {{ rate: {burst}/1h, burst: {burst} }} }}] }} }}
http: {{ listen: '127.0.0.1:0', checks: {{ {proxy}: {{ proxy: {proxy}, resource: site, strategy: clients, consumer: address{of_nginx} }} }} }}
"
    ))
}

/// An address where Weir is away.
fn nobody() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}

/// A server in the place of Weir that answers each request with this status; 0 never answers.
fn other(status: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming().flatten() {
            match status {
                "silent" => kept.push(stream),
                status => answer(stream, status, ""),
            }
        }
    });
    address
}

fn recipe(name: &'static str, path: &str, file: &'static str, away: u16, failing: [u16; 2]) {
    let Some(path) = program(path) else { return };
    run(&ProxyProgram { name, path, file, edit: |text| text }, away, failing);
}

fn run(proxy: &ProxyProgram, away: u16, failing: [u16; 2]) {
    let node = weir(proxy.name, 3);
    let proxied = Proxied::start(proxy, node.http);
    // Forged headers are not read: all of these are requests of one client.
    let forged = [
        "",
        "X-Forwarded-For: 6.6.6.6\r\nX-Original-URI: /forged\r\nX-Forwarded-Uri: /forged\r\n",
        "Authorization: Bearer of-the-client\r\nX-Forwarded-Client-Cert: URI=spiffe://prod/forged\r\n",
    ];
    for headers in forged {
        let (status, answer) = proxied.get(headers);
        assert_eq!(status, 200, "{headers}: {answer}");
        assert!(answer.ends_with("the site"), "{answer}");
    }
    let (status, answer) = proxied.get("X-Forwarded-For: 7.7.7.7\r\n");
    assert_eq!(status, 429, "{answer}");
    assert!(answer.to_lowercase().contains("retry-after: 1200\r\n"), "{answer}");
    assert!(!answer.contains("the site"), "{answer}");
    // Too large headers never open the door, whoever refuses them.
    for large in [format!("Large: {}\r\n", "x".repeat(28 << 10)), "Many: x\r\n".repeat(150)] {
        let (status, answer) = proxied.get(&large);
        assert!((400..=599).contains(&status), "{status}: {answer}");
        assert!(!answer.contains("the site"), "{answer}");
    }
    // Weir away, slow, and answering that it cannot.
    for (weir, wanted) in [
        (nobody(), away),
        (other("silent"), away),
        (other("500 Internal Server Error"), failing[0]),
        (other("503 Service Unavailable"), failing[1]),
        (other("403 Forbidden"), 403),
    ] {
        let proxied = Proxied::start(proxy, weir);
        let (status, answer) = proxied.get("");
        assert_eq!(status, wanted, "{weir}: {answer}");
    }
}

#[test]
fn nginx() {
    recipe("nginx", "usr/sbin/nginx", "nginx.conf", 200, [500, 500]);
}

#[test]
fn haproxy() {
    recipe("haproxy", "usr/sbin/haproxy", "haproxy.cfg", 200, [503, 200]);
}

#[test]
fn caddy() {
    recipe("caddy", "usr/bin/caddy", "Caddyfile", 200, [500, 503]);
}

/// The newest Caddy, with the recipe as it is, and as its comment changes it.
#[test]
#[allow(clippy::disallowed_methods)] // the switch of whoever runs the test
fn caddy_newest() {
    if std::env::var_os("SKIP_GO").is_some_and(|skip| skip == "1") {
        return eprintln!("SKIP_GO=1: the newest Caddy was not run");
    }
    recipe("caddy", CADDY, "Caddyfile", 200, [500, 503]);
    let Some(path) = program(CADDY) else { return };
    let edit = |text: String| {
        let mut edited = text;
        for name in ["Authorization", "X-Forwarded-Client-Cert", "Cookie"] {
            let line = format!("\t\theader_up -{name}\n");
            assert!(edited.contains(&line), "{edited}");
            let all = "\t\theader_up -*\n\t\theader_up X-Forwarded-For {remote_host}\n";
            edited = edited.replace(&line, if name == "Cookie" { all } else { "" });
        }
        edited
    };
    run(&ProxyProgram { name: "caddy", path, file: "Caddyfile", edit }, 200, [500, 503]);
}
