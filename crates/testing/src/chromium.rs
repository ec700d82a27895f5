//! A real headless Chromium, controlled over its DevTools protocol.
//!
//! The protocol is JSON in WebSocket messages (RFC 6455). This module implements the part that one synchronous caller
//! needs.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::is_skipped;
use crate::{Process, SOON};

/// A page of a browser of its own.
pub struct Chromium {
    socket: BufReader<TcpStream>,
    next: u64,
    /// Unread events of the page.
    events: Vec<Value>,
    _browser: Process,
    _profile: tempfile::TempDir,
}

/// The program. `None` only where SKIP_CHROMIUM=1 asks for it: a test that has not run has shown nothing.
fn program() -> Option<PathBuf> {
    if is_skipped("SKIP_CHROMIUM") {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    Some(found.expect(
        "Chromium is not installed: run `make test`, or scripts/install-chromium.sh, or go without it with SKIP_CHROMIUM=1",
    ))
}

impl Chromium {
    /// A browser with an empty page. `None` only where SKIP_CHROMIUM=1 asks for it.
    pub fn start() -> Option<Self> {
        let program = program()?;
        let profile = tempfile::tempdir().unwrap();
        let mut command = Process::command(program.to_str().unwrap());
        // Without Chromium's sandbox, which does not work in containers; the page is trusted.
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
        ]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0"]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut browser = Process::spawn(command).unwrap();
        let mut lines = BufReader::new(browser.child().stderr.take().unwrap()).lines();
        let begin = "DevTools listening on ws://";
        let address = loop {
            let line = lines.next().expect("it says where it listens").unwrap();
            if let Some((_, rest)) = line.split_once(begin) {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        // Drain the pipe, or the browser would block once it is full.
        std::thread::spawn(move || lines.for_each(drop));
        let pages = get(&address, "/json/list");
        let pages: Value = serde_json::from_str(pages.split_once("\r\n\r\n").unwrap().1).unwrap();
        let page = pages.as_array().unwrap().iter().find(|page| page["type"] == "page").expect("a page");
        let path = page["webSocketDebuggerUrl"].as_str().unwrap().split(&*address).nth(1).unwrap();
        let socket = connect(&address, path);
        let mut page = Self { socket, next: 0, events: Vec::new(), _browser: browser, _profile: profile };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        Some(page)
    }

    /// Calls a method and waits for its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "id": id, "method": method, "params": params }).to_string());
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Evaluates an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Takes the page's events since the last call.
    pub fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// Takes a screenshot of the whole page, as a PNG in base64.
    pub fn picture(&mut self) -> String {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", params)["data"].as_str().unwrap().to_owned()
    }

    /// Sends a text message in one frame. Clients must mask their frames; a mask of zeros changes nothing.
    fn send(&mut self, text: &str) {
        let mut frame = vec![0x81];
        match text.len() {
            length @ ..126 => frame.push(0x80 | length as u8),
            length @ ..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.socket.get_mut().write_all(&frame).unwrap();
    }

    /// Reads the next text message, of one or several frames.
    fn receive(&mut self) -> Value {
        let mut text = Vec::new();
        loop {
            let [first, second] = self.read::<2>();
            let length = match second & 0x7f {
                126 => u64::from(u16::from_be_bytes(self.read())),
                127 => u64::from_be_bytes(self.read()),
                length => u64::from(length),
            };
            let before = text.len();
            text.resize(before + usize::try_from(length).unwrap(), 0);
            self.socket.read_exact(&mut text[before..]).unwrap();
            match first & 0x0f {
                0 | 1 if first & 0x80 != 0 => return serde_json::from_slice(&text).unwrap(),
                0 | 1 => {}
                8 => panic!("the browser has closed the connection"),
                // A ping or a pong within.
                _ => text.truncate(before),
            }
        }
    }

    fn read<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes).unwrap();
        bytes
    }
}

fn open(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON.max(Duration::from_secs(60)))).unwrap();
    stream
}

fn get(address: &str, path: &str) -> String {
    let mut stream = open(address);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    // It keeps the connection, so the body ends where its length says.
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.expect("a length")];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn connect(address: &str, path: &str) -> BufReader<TcpStream> {
    let mut stream = open(address);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    reader
}
