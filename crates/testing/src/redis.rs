//! A real Redis server of the test's own.

mod launch;

use parking_lot::Mutex;
use redis::{Connection, FromRedisValue, RedisResult, Value};
use tempfile::TempDir;

pub use self::launch::RedisBuilder;
use self::launch::{connect, launch};
use super::process::Process;

/// A `redis-server` on a loopback port, that keeps nothing on disk. Dies on drop.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    args: Vec<String>,
    // Before the directory: fields drop in this order, and the server must be dead when its files go.
    process: Mutex<Process>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts a server on a free port.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Starts a server on this port.
    pub fn start_on(port: u16) -> Self {
        Self::builder().port(port).start()
    }

    /// For a server with more arguments.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, as in `127.0.0.1:6379`.
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address as Redis clients take it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }

    /// Kills the server as a crash would. Its port refuses connections then.
    pub fn kill(&self) {
        self.process.lock().kill();
    }

    /// Starts it again on the same port with no data, dead or not. A cluster's node stays its member.
    pub fn restart(&self) {
        let mut process = self.process.lock();
        process.kill();
        *process = launch(self.port, &self.args, &self.dir)
            .unwrap_or_else(|failure| panic!("redis-server does not start again: {failure}"));
    }

    /// Suspends it: connections stay open or are even accepted, and nothing answers.
    pub fn freeze(&self) {
        self.process.lock().freeze();
    }

    /// Resumes it after [`RedisServer::freeze`].
    pub fn thaw(&self) {
        self.process.lock().thaw();
    }

    /// True if it runs and is not frozen.
    pub fn is_responsive(&self) -> bool {
        self.process.lock().is_responsive()
    }

    /// A new blocking connection, with a bound on every answer.
    pub fn connection(&self) -> Connection {
        connect(self.port).unwrap_or_else(|error| panic!("connect to {}: {error}", self.addr()))
    }

    /// Runs one command: `server.cli(&["SET", "k", "v"])`.
    pub fn cli(&self, command: &[&str]) -> Value {
        self.query(command)
    }

    /// [`RedisServer::cli`] with the answer as any type the redis crate can read it as.
    pub fn query<T: FromRedisValue>(&self, command: &[&str]) -> T {
        self.try_query(command).unwrap_or_else(|error| panic!("{command:?} on {}: {error}", self.addr()))
    }

    /// [`RedisServer::query`] for a command that may fail, or whose failure is what the test looks for.
    pub fn try_query<T: FromRedisValue>(&self, command: &[&str]) -> RedisResult<T> {
        redis::cmd(command[0]).arg(&command[1..]).query(&mut connect(self.port)?)
    }

    /// Seconds of CPU that the server has used.
    pub fn cpu_seconds(&self) -> f64 {
        let info: redis::InfoDict = self.query(&["INFO", "cpu"]);
        ["used_cpu_sys", "used_cpu_user"].iter().filter_map(|name| info.get::<f64>(name)).sum()
    }

    /// Returns a count of a command from `INFO commandstats`: `calls`, `rejected_calls`, `usec`.
    pub fn command_stat(&self, command: &str, count: &str) -> u64 {
        self.try_command_stat(command, count)
            .unwrap_or_else(|error| panic!("INFO commandstats on {}: {error}", self.addr()))
    }

    /// [`RedisServer::command_stat`] of a server that may close the connection.
    pub fn try_command_stat(&self, command: &str, count: &str) -> RedisResult<u64> {
        let stats: redis::InfoDict = self.try_query(&["INFO", "commandstats"])?;
        let line: String = stats.get(&format!("cmdstat_{command}")).unwrap_or_default();
        let value = line.split(',').find_map(|part| part.strip_prefix(count)?.strip_prefix('='));
        Ok(value.map_or(0, |value| value.parse().unwrap()))
    }

    /// Returns the number of script calls by digest.
    pub fn script_calls(&self) -> u64 {
        self.command_stat("evalsha", "calls")
    }

    /// Makes the server forget every script, so that `EVALSHA` answers `NOSCRIPT`.
    pub fn flush_scripts(&self) {
        self.cli(&["SCRIPT", "FLUSH"]);
    }

    /// Removes all data.
    pub fn flush_all(&self) {
        self.cli(&["FLUSHALL"]);
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.query(&["KEYS", "*"]);
        keys.sort();
        keys
    }

    /// All keys but those of Weir's monitor (its probes, and the fingerprint of the secret) and of usage.
    pub fn state_keys(&self) -> Vec<String> {
        let of_monitor = |key: &String| {
            key.contains("}probe:")
                || key.contains(":{key_secret}:")
                || key.ends_with("}:fingerprint")
                || key.contains(":{usage}:")
        };
        self.keys().into_iter().filter(|key| !of_monitor(key)).collect()
    }

    /// The key's remaining life in milliseconds; as in Redis, -1 means "no expiry" and -2 means "no such key".
    pub fn pttl(&self, key: &str) -> i64 {
        self.query(&["PTTL", key])
    }
}
