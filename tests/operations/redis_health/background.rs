//! Probes do not wait for what operators ask: the monitor has a thread of its own, beside that of the admin port.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::support::command::Serve;
use crate::support::{RedisServer, SOON, eventually};

/// Probes and the admin port once shared a thread, which spent its time on whatever operators asked.
#[test]
fn probes_go_on_while_the_admin_port_is_flooded() {
    let redis = RedisServer::start();
    let serve = Serve::start(&["--store", &redis.url()]);
    eventually(SOON, "ready", || serve.get("/readyz").ends_with("ready\n"));
    let (stop, pages) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    assert!(serve.get("/metrics").contains("weir_decisions_total"));
                    pages.fetch_add(1, Relaxed);
                }
            });
        }
        let before = redis.script_calls();
        eventually(SOON, "probes during the flood", || redis.script_calls() >= before + 3);
        eventually(SOON, "pages during the flood", || pages.load(Relaxed) >= 100);
        stop.store(true, Relaxed);
    });
    let threads = threads(serve.pid());
    for thread in ["weir-admin", "weir-background"] {
        assert!(threads.iter().any(|name| name == thread), "{thread} is none of {threads:?}");
    }
}

/// The names of a process's threads.
fn threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap();
    tasks.map(|task| name(task.unwrap()).trim().to_owned()).collect()
}
