//! Two nodes of Weir and a Redis behind a proxy, and what may happen to them.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use super::command::Serve;
use super::{Proxy, ProxyMode, RedisServer, SOON, eventually_some, ports, scratch};

/// Deadline of a call.
const CALL: Duration = Duration::from_secs(2);

/// Between two tries.
pub(crate) const SOON_AGAIN: Duration = Duration::from_millis(50);

/// A fault of the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NodeKilled,
    NodeFrozen,
    RedisKilled,
    RedisFrozen,
    /// Calls to Redis are lost, and then their connections.
    CallsLost,
    /// Redis does what it is asked, and its replies are lost with their connections.
    RepliesLost,
}

pub(crate) const FAULTS: [Fault; 6] = [
    Fault::NodeKilled,
    Fault::NodeFrozen,
    Fault::RedisKilled,
    Fault::RedisFrozen,
    Fault::CallsLost,
    Fault::RepliesLost,
];

/// Two nodes on ports that they keep, with one Redis that loses nothing that it has answered.
pub(crate) struct FaultyNodes {
    redis: RedisServer,
    proxy: Proxy,
    addresses: [String; 2],
    config: PathBuf,
    serving: Mutex<[Option<Serve>; 2]>,
    /// The words of the log lines that are kept.
    kept: &'static str,
    logs: Mutex<Vec<JoinHandle<Vec<String>>>>,
    _folder: TempDir,
}

impl FaultyNodes {
    /// Starts both with this configuration beside the store. Log lines with the words `kept` are kept.
    pub(crate) fn start(configuration: &str, kept: &'static str) -> Self {
        let redis = RedisServer::builder().arg("--appendonly").arg("yes");
        let redis = redis.arg("--appendfsync").arg("always").start();
        let proxy = Proxy::start(redis.port());
        let folder = scratch::dir("faults-");
        let config = folder.path().join("weir.yaml");
        let store = format!("store: {{ redis: {{ nodes: ['{}'], deadline: 300ms }} }}\n", proxy.url());
        std::fs::write(&config, store + configuration).unwrap();
        let addresses = [0, 1].map(|_| format!("127.0.0.1:{}", ports::free()));
        let (serving, logs) = (Mutex::new([None, None]), Mutex::default());
        let nodes = Self { redis, proxy, addresses, config, serving, kept, logs, _folder: folder };
        (0..2).for_each(|index| nodes.serve(index));
        nodes
    }

    fn serve(&self, index: usize) {
        let mut serve = Serve::start_at(&self.addresses[index], &["--config", self.config.to_str().unwrap()]);
        let (log, kept) = (BufReader::new(serve.process.child().stderr.take().unwrap()), self.kept);
        let read = move || log.lines().map_while(Result::ok).filter(|line| line.contains(kept)).collect();
        self.logs.lock().unwrap().push(std::thread::spawn(read));
        self.serving.lock().unwrap()[index] = Some(serve);
    }

    /// Ends both: the log lines that were kept, also those of killed nodes.
    pub(crate) fn stop(&self) -> Vec<String> {
        for mut serve in self.serving.lock().unwrap().iter_mut().filter_map(Option::take) {
            serve.process.signal("TERM");
            eventually_some(SOON, "weir ends", || serve.process.exited());
        }
        self.logs.lock().unwrap().drain(..).flat_map(|log| log.join().unwrap()).collect()
    }

    /// Lets something happen, to this node if it happens to one, and ends it after this time.
    pub(crate) fn inflict(&self, fault: Fault, node: usize, lasts: Duration) {
        match fault {
            Fault::NodeKilled => {
                if let Some(serve) = self.serving.lock().unwrap()[node].take() {
                    serve.kill();
                }
                self.serve(node);
            }
            Fault::NodeFrozen => {
                if let Some(serve) = &mut self.serving.lock().unwrap()[node] {
                    serve.process.freeze();
                    sleep(lasts);
                    serve.process.thaw();
                }
            }
            Fault::RedisKilled => {
                self.redis.kill();
                sleep(lasts);
                self.redis.restart();
            }
            Fault::RedisFrozen => {
                self.redis.freeze();
                sleep(lasts);
                self.redis.thaw();
            }
            Fault::CallsLost => {
                self.proxy.set_mode(ProxyMode::BlackHole);
                sleep(lasts);
                self.proxy.set_mode(ProxyMode::Pass);
            }
            Fault::RepliesLost => {
                self.proxy.set_mode(ProxyMode::LateReplies(Duration::from_secs(60)));
                sleep(lasts);
                self.proxy.set_mode(ProxyMode::Drop);
                sleep(SOON_AGAIN);
                self.proxy.set_mode(ProxyMode::Pass);
            }
        }
    }

    /// A connection to a node, which is made when it is first used.
    pub(crate) fn channel(&self, number: u64) -> Channel {
        let address = &self.addresses[number as usize % 2];
        Endpoint::from_shared(format!("http://{address}")).unwrap().timeout(CALL).connect_lazy()
    }
}
