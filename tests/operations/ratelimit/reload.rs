//! SIGHUP reads the files again, as in a native server.

use super::Ratelimit;
use crate::support::{SOON, eventually};

const LOADS: &str = "weir_envoy_config_loads_total{result=\"ok\"} ";

#[test]
fn sighup_reads_the_files_and_ends_nothing() {
    let mut started = Ratelimit::start(&[]);
    let loads = |started: &Ratelimit| -> u64 {
        let (_, page) = started.get(6070, "/metrics").unwrap();
        page.lines().find_map(|line| line.strip_prefix(LOADS)).unwrap().parse().unwrap()
    };
    let before = loads(&started);
    started.process.signal("HUP");
    // No file has changed: only the signal reads them.
    eventually(SOON, "the files are read", || loads(&started) == before + 1);
    assert_eq!(started.stop().0, Some(0));
}
