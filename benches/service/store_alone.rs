//! Redis without a service: what the same number of counters cost it by the commands that programs use for limits, and by
//! the leanest script. Its client makes packets beforehand and does nothing but send them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use redis::{Client, Pipeline, cmd, pipe};

use crate::Effort;
use crate::processes::Process;
use crate::rows::{Row, Sample, Work};

use self::saturated::Packet;

#[allow(dead_code)] // of the recorder
#[path = "../script/saturated.rs"]
mod saturated;

const KEYS: usize = 100_000;

/// Connections that have a packet on its way each, and decisions of a packet: as many as workers that are busy have ready.
const CONNECTIONS: usize = 4;
const READY: usize = 16;

/// The commands that are sent to Redis.
pub struct StoreWork {
    redis: u16,
    kind: Kind,
    /// Decisions a second, one in a packet; without it as many as Redis takes.
    rate: Option<f64>,
    effort: Effort,
}

#[derive(Clone, Copy)]
enum Kind {
    /// INCRBY and EXPIRE for each decision: an approximate window, which does not deny.
    Commands,
    /// The leanest that charges buckets.
    Script,
}

/// The rows, beside that of the service on the same Redis.
pub fn rows(redis: &Process, effort: Effort, rate: f64) -> Vec<Row> {
    let work = |kind, rate| Work::Store(StoreWork { redis: redis.port, kind, rate, effort });
    let row = |id, work, against, what| Row { id, work, server: "redis alone", against, what };
    vec![
        row("store", "INCRBY and EXPIRE, 16 a packet", "redis", work(Kind::Commands, None)),
        row("store-lean", "the leanest script, 16 a call", "redis", work(Kind::Script, None)),
        row("store-2", "INCRBY and EXPIRE, 2,000/s", "redis-2", work(Kind::Commands, Some(rate))),
        row("store-lean-2", "the leanest script, 2,000/s", "redis-2", work(Kind::Script, Some(rate))),
    ]
}

impl StoreWork {
    pub fn measure(&self, id: &'static str) -> Sample {
        let client = Client::open(format!("redis://127.0.0.1:{}", self.redis)).expect("an address");
        let mut connection = client.get_connection().expect("connect to Redis");
        let load = cmd("SCRIPT").arg("LOAD").arg(include_str!("lean.lua")).query(&mut connection);
        let sha: String = load.expect("load the script");
        let packets = self.kind.packets(&sha, if self.rate.is_some() { 1 } else { READY });
        let each = KEYS / packets.len();
        self.send(&packets, self.effort.warm_up);
        let (before, began) = (cpu(&mut connection), Instant::now());
        let decisions = (self.send(&packets, self.effort.duration) * each) as f64;
        let (took, used) = (began.elapsed(), cpu(&mut connection) - before);
        Sample {
            id,
            per_second: decisions / took.as_secs_f64(),
            redis_us: used * 1e6 / decisions,
            ..Sample::default()
        }
    }

    /// Sends packets for so long. Returns how many.
    fn send(&self, packets: &[Packet], span: Duration) -> usize {
        let began = Instant::now();
        let Some(rate) = self.rate else {
            let mut rounds = 0;
            while began.elapsed() < span {
                saturated::send(self.redis, CONNECTIONS, packets);
                rounds += 1;
            }
            return rounds * packets.len();
        };
        let mut stream = TcpStream::connect(("127.0.0.1", self.redis)).expect("connect to Redis");
        stream.set_nodelay(true).expect("set TCP_NODELAY");
        let count = (rate * span.as_secs_f64()) as usize;
        for (number, packet) in packets.iter().cycle().take(count).enumerate() {
            let due = Duration::from_secs_f64(number as f64 / rate);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            stream.write_all(&packet.bytes).expect("send");
            // The answers are small, and come together.
            assert!(stream.read(&mut [0; 256]).expect("an answer") > 0, "Redis went away");
        }
        count
    }
}

impl Kind {
    /// Packets for all keys, so many in each.
    fn packets(self, sha: &str, ready: usize) -> Vec<Packet> {
        // A counter is no state of a bucket.
        let prefix = if let Self::Commands = self { "count" } else { "bucket" };
        let key = |number: usize| format!("{prefix}:{{api:user_{:06}}}", number * 7919 % KEYS);
        let packet = |first: usize| {
            let keys = (first..first + ready).map(key);
            let mut packet: Pipeline = pipe();
            match self {
                Self::Commands => {
                    for key in keys {
                        packet.cmd("INCRBY").arg(&key).arg(1).cmd("EXPIRE").arg(&key).arg(60);
                    }
                }
                Self::Script => {
                    packet.cmd("EVALSHA").arg(sha).arg(ready);
                    for key in keys {
                        packet.arg(key);
                    }
                    packet.arg(1_000).arg(1_000_000);
                }
            }
            let answers = if let Self::Commands = self { 2 * ready } else { 1 };
            Packet { bytes: packet.get_packed_pipeline(), answers }
        };
        (0..KEYS).step_by(ready).map(packet).collect()
    }
}

/// Seconds of CPU that the server has used.
fn cpu(connection: &mut redis::Connection) -> f64 {
    let info: redis::InfoDict = cmd("INFO").arg("cpu").query(connection).expect("ask Redis");
    ["used_cpu_sys", "used_cpu_user"].iter().filter_map(|name| info.get::<f64>(name)).sum()
}
