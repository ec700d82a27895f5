//! Random commands, and small scripts, on a simulated server and on a real one: their replies are the same bytes.

mod patterns;

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use std::collections::BTreeMap;
use weir_simulator::redis::{SimulatedConnection, SimulatedRedis};
use weir_testing::RedisServer;

use self::patterns::{Chooser, PATTERNS, SCRIPTS};
use super::front::{self, redis_replies as replies};

#[test]
fn commands_have_the_same_replies_in_the_old_protocol() {
    let mut servers = BothServers::start();
    servers.compare_all(PATTERNS);
}

#[test]
fn commands_have_the_same_replies_in_the_new_protocol() {
    let mut servers = BothServers::start();
    servers.ask(&words(&["HELLO", "3"]));
    servers.compare_all(PATTERNS);
}

#[test]
fn scripts_have_the_same_replies() {
    let mut servers = BothServers::start();
    let scripts: Vec<&str> = SCRIPTS.iter().chain(PATTERNS).copied().collect();
    servers.compare_all(&scripts);
}

/// A connection to each.
struct BothServers {
    simulated: SimulatedConnection,
    real: BufReader<TcpStream>,
    _server: RedisServer,
}

impl BothServers {
    fn start() -> Self {
        let server = RedisServer::start();
        let real = BufReader::new(TcpStream::connect(server.addr()).unwrap());
        let simulated = SimulatedRedis::new("simulated", front::machine_time()).connect();
        Self { simulated, real, _server: server }
    }

    /// The replies of both.
    fn ask(&mut self, request: &[Vec<u8>]) -> [Vec<u8>; 2] {
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for word in request {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        let mut reply = Vec::new();
        self.simulated.receive(&bytes, &mut reply);
        self.real.get_mut().write_all(&bytes).unwrap();
        [reply, replies::read(&mut self.real)]
    }

    /// Asks random commands of these patterns, in stories that begin without data.
    fn compare_all(&mut self, patterns: &[&str]) {
        const STORIES: u64 = 600;
        const CALLS: u64 = 40;
        let mut differences = BTreeMap::new();
        for story in 0..STORIES {
            self.ask(&words(&["FLUSHALL"]));
            for call in 0..CALLS {
                let mut chooser = Chooser::new(story * CALLS + call);
                let pattern = chooser.of(patterns);
                let request = chooser.filled(pattern);
                let [simulated, real] = self.ask(&request);
                if !are_alike(&request, &simulated, &real) {
                    let (simulated, real) = (shown(&simulated), shown(&real));
                    let shown =
                        format!("{}\n  simulated {simulated}\n  real      {real}", shown_request(&request));
                    differences.entry(pattern).or_insert(shown);
                    // What follows may differ because of it.
                    break;
                }
            }
        }
        let differences: Vec<String> = differences.into_values().collect();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

fn are_alike(request: &[Vec<u8>], simulated: &[u8], real: &[u8]) -> bool {
    // Spans are of days; both begin at their own time.
    const CLOSE: i64 = 3_600_000;
    let is_of_time = [&b"TTL"[..], b"PTTL", b"PEXPIRETIME"].contains(&&*request[0]);
    match (number_of(simulated), number_of(real)) {
        (Some(one), Some(other)) if is_of_time => (one - other).abs() < CLOSE,
        _ => simulated == real,
    }
}

fn number_of(reply: &[u8]) -> Option<i64> {
    std::str::from_utf8(reply).ok()?.strip_prefix(':')?.trim_end().parse().ok().filter(|number| *number > 0)
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn shown_request(request: &[Vec<u8>]) -> String {
    request.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ")
}
