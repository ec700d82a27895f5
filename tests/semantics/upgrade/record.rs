//! The recording of a release: script calls by step, and the texts of the scripts.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::RedisServer;

/// A script call: the digest of the script, how many of the arguments are keys, and the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentCall {
    pub(super) sha: String,
    pub(super) keys: usize,
    pub(super) args: Vec<Vec<u8>>,
}

/// Reads what is sent to a server, beside those who send it.
pub(super) struct Monitor {
    lines: BufReader<TcpStream>,
    marks: u64,
    /// Texts of scripts, by digest.
    pub(super) texts: BTreeMap<String, String>,
}

impl Monitor {
    pub(super) fn new(redis: &RedisServer) -> Self {
        let mut stream = TcpStream::connect(redis.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut monitor = Self { lines: BufReader::new(stream), marks: 0, texts: BTreeMap::new() };
        assert_eq!(monitor.line(), b"+OK\r\n");
        monitor
    }

    /// The script calls that were sent since the last time.
    pub(super) fn calls(&mut self, redis: &RedisServer) -> Vec<SentCall> {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        redis.cli(&["ECHO", &mark]);
        let mut calls = Vec::new();
        loop {
            let line = self.line();
            let Some(args) = args_of(&line) else { continue };
            if args[0] == b"ECHO" && args[1] == mark.as_bytes() {
                return calls;
            }
            calls.extend(self.call(redis, &args));
        }
    }

    fn call(&mut self, redis: &RedisServer, args: &[Vec<u8>]) -> Option<SentCall> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let sha = match &*args[0] {
            b"EVALSHA" => text(&args[1]),
            b"EVAL" => {
                let source = text(&args[1]);
                let sha: String = redis.query(&["SCRIPT", "LOAD", &source]);
                self.texts.insert(sha.clone(), source);
                sha
            }
            _ => return None,
        };
        // The first call of a script fails, and its text follows.
        self.texts.get(&sha)?;
        let keys = text(&args[2]).parse().unwrap();
        Some(SentCall { sha, keys, args: args[3..].to_vec() })
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).unwrap();
        assert!(line.ends_with(b"\n"), "the server has gone");
        line
    }
}

/// The arguments of a line such as `+1700000000.1 [0 127.0.0.1:50000] "GET" "key"`; nothing of what a script does.
fn args_of(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let begin = line.windows(3).position(|three| three == b"] \"")?;
    if line[..begin].ends_with(b" lua") {
        return None;
    }
    let mut rest = line[begin + 2..].iter();
    let mut args = Vec::new();
    // An argument is between quotation marks.
    while rest.find(|byte| **byte == b'"').is_some() {
        let mut arg = Vec::new();
        loop {
            match *rest.next()? {
                b'"' => break,
                b'\\' => arg.push(escaped(&mut rest)?),
                byte => arg.push(byte),
            }
        }
        args.push(arg);
    }
    Some(args)
}

fn escaped<'a>(rest: &mut impl Iterator<Item = &'a u8>) -> Option<u8> {
    Some(match *rest.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let digits = [*rest.next()?, *rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        }
        byte => byte,
    })
}
