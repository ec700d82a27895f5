//! Redis that says nothing for a while: probes see no change, requests fail with a reason, and it goes on after that.

use std::time::{Duration, Instant};

use super::Ratelimit;
use crate::support::{RedisServer, SOON, eventually};

/// How often a probe looks, in ours: much more often than that of a launcher.
const PROBE: Duration = Duration::from_millis(100);

/// Pauses Redis for this long, and at least until requests fail.
pub(super) fn survives(pause: Duration) {
    let redis = RedisServer::start();
    let mut started = Ratelimit::start(&[
        ("WEIR_STORE", ""),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &redis.addr()),
        ("WEIR_DRAIN_DELAY", "3s"),
    ]);
    eventually(SOON, "Redis counts", || started.json("d", &[("k", "v")]) == "OK 2/DAY");
    redis.freeze();
    let (began, mut failed, mut probes) = (Instant::now(), 0, 0);
    while began.elapsed() < pause || failed < 5 {
        assert!(started.process.exited().is_none(), "it ended");
        assert_eq!(started.get(8080, "/healthcheck").unwrap().0, 200, "after {:?}", began.elapsed());
        probes += 1;
        let answer = started.json("d", &[("k", "paused")]);
        // What was sent before the pause may still be answered.
        assert!(answer.starts_with("503 ") || probes == 1, "{answer}");
        failed += usize::from(answer.starts_with("503 "));
        std::thread::sleep(PROBE);
        assert!(began.elapsed() < pause + SOON, "requests do not fail");
    }
    redis.thaw();
    // The breaker lets some calls pass before it closes. Each key is new, so that no answer is a cached denial.
    let (mut asked, mut in_a_row) = (0, 0);
    eventually(SOON, "Redis counts again", || {
        asked += 1;
        let counts = started.json("d", &[("k", &format!("back-{asked}"))]) == "OK 20/HOUR";
        in_a_row = if counts { in_a_row + 1 } else { 0 };
        in_a_row == 50
    });

    // The end: probes fail at once, and no call does while others are told.
    started.process.signal("TERM");
    let mut asked = 0;
    eventually(SOON, "the probe fails", || {
        asked += 1;
        assert_eq!(started.json("d", &[("k", &format!("end-{asked}"))]), "OK 20/HOUR");
        started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == 500)
    });
    assert_eq!(started.json("d", &[("k", "drained")]), "OK 20/HOUR");
    let status = crate::support::eventually_some(SOON, "it ends", || started.process.exited());
    assert_eq!(status.code(), Some(0), "{}", started.log());
}

#[test]
fn a_pause_of_redis_changes_no_probe() {
    survives(Duration::from_secs(2));
}
