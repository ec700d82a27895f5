//! Random commands, and small scripts, on a simulated server and on a real one: their replies are the same bytes.

mod patterns;

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use weir_simulator::redis::{SimulatedConnection, SimulatedRedis};
use weir_testing::RedisServer;

use self::patterns::{PATTERNS, SCRIPTS};
use super::{front, replies};
use crate::properties::random;

#[test]
fn commands_have_the_same_replies_in_the_old_protocol() {
    let mut servers = BothServers::start();
    servers.compare_all(PATTERNS, 40);
}

#[test]
fn commands_have_the_same_replies_in_the_new_protocol() {
    let mut servers = BothServers::start();
    servers.ask(&words(&["HELLO", "3"]));
    servers.compare_all(PATTERNS, 40);
}

#[test]
fn scripts_have_the_same_replies() {
    let mut servers = BothServers::start();
    let scripts: Vec<&str> = SCRIPTS.iter().chain(PATTERNS).copied().collect();
    servers.compare_all(&scripts, 40);
}

/// Each script once, on keys of each type: a random choice may leave one out.
#[test]
fn each_script_has_the_same_reply() {
    let mut servers = BothServers::start();
    for script in SCRIPTS {
        for number in 0..60 {
            let request = patterns::filled(script, number);
            let [simulated, real] = servers.ask(&request);
            assert_eq!(shown(&simulated), shown(&real), "{}", shown_request(&request));
        }
    }
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

    /// Asks random commands of these patterns.
    fn compare_all(&mut self, patterns: &[&str], most: usize) {
        let mut runner = TestRunner::new(random::config());
        let story = prop::collection::vec((0..patterns.len(), any::<u64>()), 1..most);
        let servers = std::cell::RefCell::new(self);
        let outcome = runner.run(&story, |calls| {
            let mut servers = servers.borrow_mut();
            servers.ask(&words(&["FLUSHALL"]));
            for (pattern, number) in calls {
                let request = patterns::filled(patterns[pattern], number);
                let [simulated, real] = servers.ask(&request);
                compare(&request, &simulated, &real)?;
            }
            Ok(())
        });
        outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
    }
}

fn compare(request: &[Vec<u8>], simulated: &[u8], real: &[u8]) -> Result<(), TestCaseError> {
    // Spans are of days; both begin at their own time.
    const CLOSE: i64 = 3_600_000;
    let is_of_time = [&b"TTL"[..], b"PTTL", b"PEXPIRETIME"].contains(&&*request[0]);
    if is_of_time && let (Some(one), Some(other)) = (number_of(simulated), number_of(real)) {
        prop_assert!((one - other).abs() < CLOSE, "{one} and {other} to {}", shown_request(request));
        return Ok(());
    }
    prop_assert_eq!(
        shown(simulated),
        shown(real),
        "simulated left, real right, to {}",
        shown_request(request)
    );
    Ok(())
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
