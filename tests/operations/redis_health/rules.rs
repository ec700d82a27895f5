//! Nodes with other limits under the same names judge the same states by other numbers. They see each other.

use weir_testing::metrics;
use weir_testing::rights;

use crate::support::command::Serve;
use crate::support::{RedisServer, SOON, eventually, scratch};

const MISMATCH: &str = "weir_store_rules_mismatch";

/// One right that was missing at the start ended the comparison for ever.
#[test]
fn the_comparison_begins_when_its_rights_are_granted() {
    let redis = RedisServer::start();
    let others = [rights::of_decisions(), vec!["+info"]].concat();
    rights::add_user(&redis, "weir", "hunter2", &others);
    let folder = scratch::dir("rules-");
    std::fs::write(folder.path().join("password"), "hunter2").unwrap();
    let start = |name: &str, limit: u64| {
        let text = file(&redis, limit, "usage: { shared: false }");
        let user = "username: weir, password_file: password, nodes:";
        let path = scratch::file(folder.path(), name, text.replacen("nodes:", user, 1));
        Serve::start(&["--config", path.to_str().unwrap()])
    };
    let (one, other) = (start("one.yaml", 5), start("other.yaml", 50));
    for serve in [&one, &other] {
        eventually(SOON, "a note that nothing is compared", || {
            let page = serve.get("/readyz");
            let named = ["note: Redis node", " cannot compare limits between nodes", "+hgetall", "+expire"];
            page.contains("\r\n\r\nready\n") && named.iter().all(|part| page.contains(part))
        });
        assert_eq!(mismatch(serve), Some(false));
    }
    rights::grant(&redis, "weir", &rights::of_comparison());
    // Whoever looks first may find nobody yet, and looks again after 20 s.
    eventually(SOON, "a node sees the other's limits", || {
        [&one, &other].iter().any(|serve| mismatch(serve) == Some(true))
    });
    eventually(SOON, "no note about rights", || {
        !one.get("/readyz").contains("cannot compare") && !other.get("/readyz").contains("cannot compare")
    });
}

fn file(redis: &RedisServer, limit: u64, more: &str) -> String {
    let url = redis.url();
    format!(
        "store: {{ redis: {{ nodes: [\"{url}\"] }} }}\n{more}\nstrategies:\n  login: {{ limits: [{{ name: l, per: [consumer], \
         fixed_window: {{ limit: {limit}, window: 1m }} }}] }}\n  same: {{ limits: [{{ name: l, per: [consumer], \
         fixed_window: {{ limit: 7, window: 1m }} }}] }}\n"
    )
}

fn mismatch(serve: &Serve) -> Option<bool> {
    metrics::find(&serve.get("/metrics"), MISMATCH).map(|value: u64| value == 1)
}

#[test]
fn nodes_with_other_limits_see_each_other() {
    let redis = RedisServer::start();
    let folder = scratch::dir("rules-");
    let path = |name: &str| folder.path().join(name);
    let start = |name: &str, text: String| {
        std::fs::write(path(name), text).unwrap();
        Serve::start(&["--config", path(name).to_str().unwrap()])
    };
    let has_said = |nodes: usize| {
        let said = || redis.keys().iter().filter(|key| key.starts_with("weir:{key_secret}:rules:")).count();
        eventually(SOON, "what a node says of its rules", || said() == nodes);
    };
    let one = start("one.yaml", file(&redis, 5, ""));
    has_said(1);
    let same = start("same.yaml", file(&redis, 5, "# another comment\nserver: { workers: 1 }"));
    has_said(2);
    let mut other = start("other.yaml", file(&redis, 50, ""));
    eventually(SOON, "a note", || {
        other.get("/readyz").contains("note: another node has other limits under the same names")
    });
    let said = other.get("/readyz");
    assert!(
        said.contains("\r\n\r\nready\n") && said.contains("`login`") && !said.contains("`same`"),
        "{said}"
    );
    assert_eq!(mismatch(&other), Some(true));
    // What a reload changes is shown and compared at once.
    std::fs::write(path("other.yaml"), file(&redis, 5, "")).unwrap();
    other.process.signal("HUP");
    eventually(SOON, "the same limits", || mismatch(&other) == Some(false));
    let said = other.get("/readyz");
    assert!(!said.contains("note:"), "{said}");
    // A node of another format is not compared.
    drop((one, same, other));
    redis.cli(&["FLUSHALL"]);
    redis.cli(&[
        "HSET",
        "weir:{key_secret}:rules:new",
        "version",
        "2",
        "total",
        "12345678",
        "s:login",
        "12345678",
    ]);
    redis.cli(&["ZADD", "weir:{key_secret}:nodes", "99999999999", "new"]);
    let alone = start("alone.yaml", file(&redis, 5, ""));
    has_said(2);
    assert_eq!(mismatch(&alone), Some(false));
}
