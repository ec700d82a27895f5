//! Redis that says nothing for a minute: longer than all probes of launchers together take to give a process up.

use std::time::Duration;

#[test]
fn a_minute_without_redis_changes_no_probe() {
    super::paused::survives(Duration::from_secs(60));
}
