//! A master, its replica, and three sentinels that watch them.

use std::time::Duration;

use super::certificates::{Authority, Issued};
use super::process::Process;
use super::redis::RedisServer;
use super::{SOON, eventually, ports, scratch};

/// The sentinels' `down-after-milliseconds`.
const DOWN_AFTER_MS: u32 = 500;

/// Everything of a `topology: sentinel`. Dies on drop.
pub struct Sentinels {
    /// The master and its replica, as they began.
    pub servers: [RedisServer; 2],
    ports: Vec<u16>,
    tls: Option<Secured>,
    // Before the directory, which the processes write to.
    processes: Vec<Process>,
    _dir: tempfile::TempDir,
}

/// The ports on which servers and sentinels speak TLS with each other. The test itself uses the other ports.
struct Secured {
    servers: [u16; 2],
    sentinels: Vec<u16>,
}

impl Sentinels {
    /// All of them, without TLS.
    pub fn start() -> Self {
        Self::launch(None)
    }

    /// Servers and sentinels that speak TLS among each other and with their clients, and want to see a
    /// certificate of every peer.
    pub fn start_secured(authority: &Authority, issued: &Issued) -> Self {
        Self::launch(Some((authority, issued)))
    }

    fn launch(secured: Option<(&Authority, &Issued)>) -> Self {
        let tls = secured.map(|_| Secured {
            servers: [ports::free(), ports::free()],
            sentinels: (0..3).map(|_| ports::free()).collect(),
        });
        let args = |port: fn(&Secured) -> &[u16], index: usize| match (&tls, secured) {
            (Some(tls), Some((authority, issued))) => {
                let mut args = authority.redis_args(port(tls)[index], issued, true);
                args.extend(["--tls-replication", "yes"].map(str::to_owned));
                args
            }
            _ => Vec::new(),
        };
        let server = |index| {
            let quick = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"].map(str::to_owned);
            let args = quick.into_iter().chain(args(|tls| &tls.servers, index));
            args.fold(RedisServer::builder(), super::redis::RedisBuilder::arg)
        };
        let master = server(0).start();
        let port = tls.as_ref().map_or(master.port(), |tls| tls.servers[0]).to_string();
        let replica = server(1).arg("--replicaof").arg("127.0.0.1").arg(&port).start();
        let dir = scratch::dir("sentinels-");
        let ports: Vec<u16> = (0..3).map(|_| ports::free()).collect();
        let processes = ports.iter().enumerate().map(|(index, &own)| {
            let path = dir.path().join(format!("{own}.conf"));
            let text = format!(
                "port {own}\nbind 127.0.0.1\ndir {}\nsentinel monitor zoo 127.0.0.1 {port} 2\n\
                 sentinel down-after-milliseconds zoo {DOWN_AFTER_MS}\nsentinel failover-timeout zoo 5000\n",
                dir.path().display()
            );
            std::fs::write(&path, text).unwrap();
            let mut command = Process::command("redis-server");
            command.arg(&path).arg("--sentinel").args(args(|tls| &tls.sentinels, index));
            command.stdout(std::process::Stdio::null());
            Process::spawn(command).unwrap()
        });
        let processes = processes.collect();
        let sentinels = Self { servers: [master, replica], ports, tls, processes, _dir: dir };
        eventually(SOON, "the sentinels know everybody", || sentinels.agree());
        sentinels
    }

    /// The addresses of the sentinels.
    pub fn urls(&self) -> Vec<String> {
        let (scheme, ports) = match &self.tls {
            Some(tls) => ("rediss", &tls.sentinels),
            None => ("redis", &self.ports),
        };
        ports.iter().map(|port| format!("{scheme}://127.0.0.1:{port}")).collect()
    }

    /// Kills one of the sentinels.
    pub fn kill_sentinel(&mut self, index: usize) {
        self.processes[index].kill();
    }

    /// One command to one sentinel.
    pub fn query<T: redis::FromRedisValue>(&self, index: usize, command: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(("127.0.0.1", self.ports[index]))?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        redis::cmd(command[0]).arg(&command[1..]).query(&mut connection)
    }

    /// True if one of the sentinels names this server as the master.
    pub fn name(&self, server: usize) -> bool {
        let port = self.tls.as_ref().map_or(self.servers[server].port(), |tls| tls.servers[server]);
        (0..3).any(|index| {
            let named: redis::RedisResult<(String, u16)> =
                self.query(index, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "zoo"]);
            named.is_ok_and(|(_, named)| named == port)
        })
    }

    fn agree(&self) -> bool {
        (0..3).all(|index| {
            let master: redis::RedisResult<Vec<String>> = self.query(index, &["SENTINEL", "MASTER", "zoo"]);
            let Ok(master) = master else { return false };
            let has =
                |name: &str, value: &str| master.chunks(2).any(|pair| pair[0] == name && pair[1] == value);
            has("num-slaves", "1") && has("num-other-sentinels", "2") && has("flags", "master")
        })
    }
}
