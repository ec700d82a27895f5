//! A simulated server on a socket, alone or beside a real one.

pub(crate) mod redis_replies;

use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_simulator::redis::{SimulatedConnection, SimulatedRedis, SimulatedTime};
use weir_testing::{RedisServer, scratch};
use weir_units::Micros;

use self::redis_replies as replies;
use crate::support::other_server;

/// The variable that makes a program take the place of `redis-server`, with its mode and its arguments.
const SERVES: &str = "WEIR_SIMULATED_REDIS";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // some binaries need one of them
pub(crate) enum FrontMode {
    Alone,
    Beside,
}

/// Runs tests of this program on simulated servers. `own` is the test that calls this one: as a server, it serves instead.
pub(crate) fn passes(own: &str, mode: FrontMode, tests: &[&str]) {
    if let Ok(arguments) = std::env::var(SERVES) {
        return serve(mode, &arguments);
    }
    let programs = scratch::dir("simulated-");
    let server = programs.path().join("simulated-redis");
    let this = std::env::current_exe().unwrap();
    let path = std::env::var("PATH").unwrap();
    let text = format!(
        "#!/bin/sh\nPATH='{path}' {SERVES}=\"$*\" exec '{}' --exact simulated_redis::{own} --nocapture\n",
        this.display()
    );
    std::fs::write(&server, text).unwrap();
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Clusters of these are made in another way than real ones.
    other_server::passes(&server, tests, &["cluster", "simulated_redis::"]);
}

/// The time of this machine.
pub(crate) fn machine_time() -> SimulatedTime {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Micros(u64::try_from(since.as_micros()).unwrap())
    })
}

fn serve(mode: FrontMode, arguments: &str) {
    let mut words = arguments.split(' ').skip_while(|word| *word != "--port");
    // Asked for its version, it says nothing.
    let Some(port) = words.nth(1) else { return };
    let redis = SimulatedRedis::new("front", machine_time());
    redis.set_process_id(std::process::id());
    let real = (mode == FrontMode::Beside).then(RedisServer::start);
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
    let turn = Mutex::new(());
    std::thread::scope(|threads| {
        for client in listener.incoming() {
            let (client, connection) = (client.unwrap(), redis.connect());
            let beside = real.as_ref().map(|real| BufReader::new(TcpStream::connect(real.addr()).unwrap()));
            let turn = &turn;
            threads.spawn(move || pump(client, connection, beside, turn));
        }
    });
}

/// Answers a client until it is gone.
fn pump(
    mut client: TcpStream,
    mut connection: SimulatedConnection,
    mut real: Option<BufReader<TcpStream>>,
    turn: &Mutex<()>,
) {
    client.set_nodelay(true).unwrap();
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let mut reply = Vec::new();
        {
            // What ends a request runs at once on both, in one order.
            let _turn = turn.lock().unwrap();
            connection.receive(&bytes[..count], &mut reply);
            if let Some(real) = &mut real {
                real.get_mut().write_all(&bytes[..count]).unwrap();
                reply = compared(&reply, real, &bytes[..count]);
            }
        }
        if client.write_all(&reply).is_err() {
            return;
        }
    }
}

/// The replies, with an error for each that is not that of the real server.
fn compared(replies: &[u8], real: &mut BufReader<TcpStream>, asked: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for reply in replies::split(replies) {
        let other = replies::read(real);
        if reply == other || is_about_the_server(reply) || differ_in_time(reply, &other) {
            out.extend_from_slice(reply);
            continue;
        }
        let text = format!(
            "-ERR the simulated server replies {:?}, the real one {:?}, to {:?}\r\n",
            String::from_utf8_lossy(reply),
            String::from_utf8_lossy(&other),
            String::from_utf8_lossy(asked)
        );
        eprint!("{text}");
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// Returns true for replies of a script that asked for the server's time, which is the first number of the first
/// string.
fn differ_in_time(one: &[u8], other: &[u8]) -> bool {
    let lines = if one.starts_with(b"*") { 2 } else { 1 };
    let ends = one.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let Some(start) = ends.take(lines).last() else { return false };
    let time = |reply: &[u8]| Some(f64::from_le_bytes(reply.get(start..start + 8)?.try_into().ok()?));
    let rest = |reply: &[u8]| [&reply[..start], &reply[start + 8..]].concat();
    match (time(one), time(other)) {
        (Some(at), Some(other_at)) => (at - other_at).abs() < 3.6e9 && at > 1e15 && rest(one) == rest(other),
        _ => false,
    }
}

/// INFO, whose texts differ.
fn is_about_the_server(reply: &[u8]) -> bool {
    reply.windows(3).any(|window| window == b"\r\n#")
}
