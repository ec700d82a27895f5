//! A master, its replica, and three sentinels that watch them.

use std::time::Duration;

use super::process::Process;
use super::redis::RedisServer;
use super::{eventually, ports, scratch};

/// How long a master may be silent before the sentinels replace it.
const DOWN_AFTER_MS: u32 = 500;

/// Everything of a `topology: sentinel`. Dies on drop.
pub(crate) struct Sentinels {
    pub(crate) servers: [RedisServer; 2],
    ports: Vec<u16>,
    // Before the directory, which the processes write to.
    processes: Vec<Process>,
    _dir: tempfile::TempDir,
}

impl Sentinels {
    pub(crate) fn start() -> Self {
        let quick = |builder: super::redis::RedisBuilder| {
            builder.arg("--repl-diskless-sync").arg("yes").arg("--repl-diskless-sync-delay").arg("0")
        };
        let master = quick(RedisServer::builder()).start();
        let port = master.port().to_string();
        let replica = quick(RedisServer::builder()).arg("--replicaof").arg("127.0.0.1").arg(&port).start();
        let dir = scratch::dir("sentinels-");
        let ports: Vec<u16> = (0..3).map(|_| ports::free()).collect();
        let processes = ports.iter().map(|&own| {
            let path = dir.path().join(format!("{own}.conf"));
            let text = format!(
                "port {own}\nbind 127.0.0.1\ndir {}\nsentinel monitor zoo 127.0.0.1 {port} 2\n\
                 sentinel down-after-milliseconds zoo {DOWN_AFTER_MS}\nsentinel failover-timeout zoo 5000\n",
                dir.path().display()
            );
            std::fs::write(&path, text).unwrap();
            let mut command = Process::command("redis-server");
            command.arg(&path).arg("--sentinel").stdout(std::process::Stdio::null());
            Process::spawn(command).unwrap()
        });
        let processes = processes.collect();
        let sentinels = Self { servers: [master, replica], ports, processes, _dir: dir };
        eventually(Duration::from_secs(20), "the sentinels know everybody", || sentinels.agree());
        sentinels
    }

    /// The addresses of the sentinels.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("redis://127.0.0.1:{port}")).collect()
    }

    /// Kills one of the sentinels.
    pub(crate) fn kill_sentinel(&mut self, index: usize) {
        self.processes[index].kill();
    }

    /// One command to one sentinel.
    pub(crate) fn query<T: redis::FromRedisValue>(
        &self,
        index: usize,
        command: &[&str],
    ) -> redis::RedisResult<T> {
        let client = redis::Client::open(("127.0.0.1", self.ports[index]))?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        redis::cmd(command[0]).arg(&command[1..]).query(&mut connection)
    }

    /// Whether one of them names the server on this port as the master.
    pub(crate) fn name(&self, port: u16) -> bool {
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
