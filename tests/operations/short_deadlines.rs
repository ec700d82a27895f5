//! Callers with short deadlines while every reply of Redis is late: the failure policy's answer reaches them before
//! their deadlines.

use std::thread;
use std::time::{Duration, Instant};

use prost::Message as _;
use tempfile::TempDir;
use weir_proto::v1::{ShouldAllowRequest, ShouldAllowResponse};
use weir_testing::frames::{self, Raw};

use crate::support::command::Serve;
use crate::support::grpc::framed;
use crate::support::{Proxy, ProxyMode, RedisServer, SOON, eventually, scratch};

/// Delay of the replies.
const LATE: Duration = Duration::from_millis(50);

/// A hundred calls a second.
const PACE: Duration = Duration::from_millis(10);

/// In a round.
const CALLS: usize = 200;

const ROUNDS: usize = 5;

const PATH: &str = "/weir.v1.RateLimitService/ShouldAllow";

/// For each deadline the share of calls whose answer must be in time. Of the shortest, the tail is printed only.
const GOALS: [(u64, f64); 4] = [(1, 0.0), (5, 0.95), (10, 0.99), (20, 0.99)];

/// Of the time that the service keeps for its answer; what takes longer than that is the machine.
const EXCUSED: Duration = Duration::from_micros(1_000);

/// Durations of calls, from the client's own send to the arrival of the answer.
#[derive(Default)]
struct Times {
    /// Calls that a policy answered. Without such an answer the time is the longest possible.
    policy: Vec<Duration>,
    /// Calls that ask no store, made in between: so long this machine takes for any call.
    listed: Vec<Duration>,
    /// The delay of a bare timer of a thread of its own, which ends when the service gives Redis up: so late this
    /// machine wakes anything.
    timers: Vec<Duration>,
}

impl Times {
    fn late(&self, deadline: Duration) -> f64 {
        share(&self.policy, |took| took >= deadline)
    }

    fn excused(&self) -> f64 {
        share(&self.listed, |took| took >= EXCUSED)
    }
}

fn share(times: &[Duration], counts: impl Fn(Duration) -> bool) -> f64 {
    times.iter().filter(|took| counts(**took)).count() as f64 / times.len() as f64
}

/// A busy machine makes answers late. So a goal must be reached in one of some rounds; or else the machine must
/// have been so busy, in all of them, that calls without a store are slow as well.
#[test]
fn policy_answers_arrive_before_short_deadlines() {
    let redis = RedisServer::start();
    let proxy = Proxy::start(redis.port());
    let (server, _directory) = start(&proxy, &[]);
    proxy.set_mode(ProxyMode::LateReplies(LATE));
    for (deadline_ms, goal) in GOALS {
        let deadline = Duration::from_millis(deadline_ms);
        let mut all = Times::default();
        let reached = (0..ROUNDS).any(|_| {
            let times = round(&server, deadline);
            let (late, excused) = (times.late(deadline), times.excused());
            println!(
                "deadline {deadline:?}: {:.1} % in time, median {:?}; {:.1} % of calls without a store took {EXCUSED:?}; \
                 a bare timer would miss {:.1} %",
                100.0 * (1.0 - late), median(&times.policy), 100.0 * excused,
                100.0 * share(&times.timers, |late| late >= kept(deadline))
            );
            all.policy.extend(times.policy);
            all.listed.extend(times.listed);
            1.0 - late >= goal
        });
        let (late, excused) = (all.late(deadline), all.excused());
        // An answer by policy needs the client, the server and a timer; one without a store needs no timer.
        assert!(
            reached || late <= 2.0 * excused,
            "{deadline:?}: {late} are late, and {excused} for the machine"
        );
    }
}

/// For machines that run nothing for milliseconds there is more time for the answer.
#[test]
fn with_a_larger_reserve_redis_is_given_up_earlier() {
    let redis = RedisServer::start();
    let proxy = Proxy::start(redis.port());
    let [(usual, _file), (early, _other)] =
        [&[][..], &["--answer-reserve", "25ms"]].map(|more| start(&proxy, more));
    proxy.set_mode(ProxyMode::LateReplies(LATE));
    let deadline = Duration::from_millis(40);
    let usually = deadline - kept(deadline);
    let took = |server: &Serve| median(&round(server, deadline).policy);
    assert!(took(&usual) >= usually);
    // Half of the deadline is given to Redis. A busy machine needs a few rounds.
    let times: Vec<Duration> =
        (0..ROUNDS).map(|_| took(&early)).take_while(|took| *took >= usually).collect();
    assert!(times.len() < ROUNDS, "{times:?}");
}

/// A server with the configuration of these tests, for which Redis decides.
fn start(proxy: &Proxy, more: &[&str]) -> (Serve, TempDir) {
    let directory = scratch::dir("short-deadlines");
    let file = scratch::file(directory.path(), "weir.yaml", configuration(proxy));
    let server = Serve::start(&[&["--config", file.to_str().unwrap()], more].concat());
    let decided = || {
        let answer = server.allow(&["r", "c", "--output", "json"]);
        String::from_utf8(answer.stdout).unwrap().contains("remaining")
    };
    eventually(SOON, "Redis decides", decided);
    (server, directory)
}

/// The part of a deadline that the service keeps for its answer: see docs/configuration/redis.md.
fn kept(deadline: Duration) -> Duration {
    (deadline / 10).clamp(Duration::from_millis(2), Duration::from_millis(25)).min(deadline / 2)
}

/// Returns the delays of timers that end when Redis is given up, as many as a policy answers.
fn bare_timers(deadline: Duration) -> Vec<Duration> {
    let begun = Instant::now();
    let late = |index: u32| {
        thread::sleep((begun + PACE * index).saturating_duration_since(Instant::now()));
        let due = Instant::now() + deadline - kept(deadline);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due.elapsed()
    };
    (0..u32::try_from(CALLS).unwrap()).map(late).collect()
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

/// With more patience than callers and late replies need: what is tested is the callers' deadlines.
fn configuration(proxy: &Proxy) -> String {
    format!(
        "store:
  key_secret: of this test
  redis: {{ nodes: ['{}'], deadline: 2s }}
strategies:
  policy:
    limits: [{{ name: calls, per: [consumer], token_bucket: {{ rate: 1000/s, burst: 1000 }} }}]
    on_store_failure: allow
    access: {{ allow: [listed] }}
resources: [{{ match: r, strategy: policy }}]
",
        proxy.url()
    )
}

/// Half of the calls to be decided are on one key, so that they wait for each other's calls.
fn round(server: &Serve, deadline: Duration) -> Times {
    let timeout = format!("{}m", deadline.as_millis());
    let question = |index: usize| {
        let consumer = match index % 4 {
            0 => "shared".to_owned(),
            2 => format!("consumer{index}"),
            _ => "listed".to_owned(),
        };
        let request = ShouldAllowRequest { resource: "r".to_owned(), consumer, ..Default::default() };
        let timeout = ("grpc-timeout", timeout.as_str());
        let further = if index.is_multiple_of(2) { &[timeout][..] } else { &[] };
        frames::call(stream_of(index), PATH, further, &framed(0, &request.encode_to_vec()))
    };
    let raw = Raw::open(server.server.strip_prefix("http://").unwrap().parse().unwrap());
    raw.send(&frames::settings_ack());
    let mut reader = raw.reader();
    let answers = thread::spawn(move || answers(&mut reader));
    let timers = thread::spawn(move || bare_timers(deadline));
    let begun = Instant::now();
    let sent: Vec<Instant> = (0..2 * CALLS)
        .map(|index| {
            let bytes = question(index);
            let due = begun + PACE / 2 * u32::try_from(index).unwrap();
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let sent = Instant::now();
            raw.send(&bytes);
            sent
        })
        .collect();
    let answers = answers.join().unwrap();
    let mut times = Times { timers: timers.join().unwrap(), ..Times::default() };
    for (index, (sent, answer)) in sent.into_iter().zip(answers).enumerate() {
        let took = |(at, _): (Instant, bool)| at - sent;
        if index % 2 == 1 {
            times.listed.push(answer.map_or(Duration::MAX, took));
        } else {
            // Where the machine stands still for so long, Redis has decided, much too late.
            times.policy.push(answer.filter(|(_, degraded)| *degraded).map_or(Duration::MAX, took));
        }
    }
    times
}

fn stream_of(index: usize) -> u32 {
    u32::try_from(2 * index + 1).unwrap()
}

/// Returns the arrival of the answer to each call, if there was one, and whether a policy answered.
fn answers(reader: &mut Raw) -> Vec<Option<(Instant, bool)>> {
    let mut answers = vec![None; 2 * CALLS];
    let mut ended = 0;
    while ended < 2 * CALLS {
        let frame = reader.read().expect("a frame");
        let now = Instant::now();
        let Some(index) = frame.stream.checked_sub(1).map(|stream| stream as usize / 2) else { continue };
        if frame.kind == frames::DATA {
            let answer = ShouldAllowResponse::decode(&frame.payload[5..]).unwrap();
            assert!(answer.allowed);
            answers[index] = Some((now, answer.degraded));
        }
        ended += usize::from(frame.flags & frames::END_STREAM != 0);
    }
    answers
}
