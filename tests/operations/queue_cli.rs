//! `weir queue`: work by hand.

use std::io::Write as _;
use std::process::{Output, Stdio};

use crate::support::command::{Serve, WEIR, text, weir, weir_command};
use crate::support::{Process, RedisServer, SOON, eventually, scratch};

const QUEUES: &str = "
queues:
  jobs: { capacity: 3, max_deliveries: 2 }
  clicks: { capacity: 2, kind: list }
";

fn queue(serve: &Serve, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = weir(&[&["queue"], args, &["--server", &serve.server]].concat());
    (status.code(), text(&stdout), text(&stderr))
}

fn serve() -> (Serve, tempfile::TempDir) {
    let folder = scratch::dir("queue-cli-");
    let config = scratch::file(folder.path(), "weir.yaml", QUEUES);
    (Serve::start(&["--config", config.to_str().unwrap()]), folder)
}

/// Nodes whose files differ in a queue's kind split it, and each worker waited for what the other node had accepted.
#[test]
fn a_queue_of_two_kinds_is_warned_of() {
    let redis = RedisServer::start();
    let folder = scratch::dir("queue-kinds-");
    let (config, log) = (folder.path().join("weir.yaml"), folder.path().join("log"));
    std::fs::write(&config, QUEUES).unwrap();
    let serve = Serve::start(&["--config", config.to_str().unwrap(), "--store", &redis.url()]);
    assert_eq!(queue(&serve, &["put", "jobs", "a", "b"]).0, Some(0));
    std::fs::write(
        &config,
        "queues: { jobs: { capacity: 3, kind: list }, clicks: { capacity: 2, kind: list } }",
    )
    .unwrap();
    let mut command = Process::command(WEIR);
    command.args(["serve", "--config", config.to_str().unwrap(), "--store", &redis.url(), "--log", "warn"]);
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let _other = Process::spawn(command).unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    eventually(SOON, "it warns", || said().contains("queue is split"));
    let said = said();
    let line = said.lines().find(|line| line.contains("queue is split")).unwrap();
    assert!(line.contains("jobs") && line.contains("stream") && line.contains('2'), "{line}");
    assert!(!said.contains("clicks"), "{said}");
}

/// The first id of a text.
fn id(text: &str) -> String {
    text.split([' ', '\n', ','])
        .find(|word| word.parse::<weir_queues::model::ItemId>().is_ok())
        .unwrap()
        .to_owned()
}

#[test]
fn work_by_hand() {
    let (serve, _folder) = serve();
    assert!(serve.announced.contains("weir queue put jobs hello"), "{}", serve.announced);
    let (code, said, _) = queue(&serve, &["put", "jobs", "a", "b", "--id", "1", "--id", "2"]);
    assert!(
        code == Some(0) && said.starts_with("accepted\n") && said.ends_with("2 of 3 places taken\n"),
        "{said}"
    );
    let (code, said, _) = queue(&serve, &["put", "jobs", "c", "d"]);
    assert_eq!((code, said.as_str()), (Some(1), "refused: the queue is full\n  2 of 3 places taken\n"));
    let (code, said, _) = queue(&serve, &["put", "jobs", "1", "2", "3", "4"]);
    assert!(code == Some(1) && said.starts_with("refused: the queue can never hold so much\n"), "{said}");
    let (code, said, _) = queue(&serve, &["take", "jobs", "--consumer", "me"]);
    let item = id(&said);
    assert_eq!((code, said), (Some(0), format!("item {item}, delivery 1\na\n")));
    let (code, said, _) = queue(&serve, &["nack", "jobs", &item]);
    assert_eq!((code, said), (Some(0), format!("{item}  given back\n  2 places taken\n")));
    let (_, said, _) = queue(&serve, &["take", "jobs"]);
    assert_eq!(said, format!("item {item}, delivery 2, after a nack of me\na\n"));
    let (code, said, _) = queue(&serve, &["nack", "jobs", &item, "--delay", "1m"]);
    assert_eq!(code, Some(0));
    assert_eq!(said, format!("{item}  given back\n  1 places taken\n  1 went to the dead letters\n"));
    let (_, said, _) = queue(&serve, &["take", "jobs:dead", "--ack"]);
    assert!(said.contains(&format!(", in its queue {item}, delivery 1\na\n")), "{said}");
    let (code, said, _) = queue(&serve, &["take", "jobs:dead"]);
    assert_eq!((code, said.as_str()), (Some(1), "nothing\n"));
    let (_, said, _) = queue(&serve, &["take", "jobs", "--wait", "1m"]);
    let item = id(&said);
    let (code, said, _) = queue(&serve, &["ack", "jobs", &item, "--outcome", "shipped"]);
    assert_eq!((code, said), (Some(0), format!("{item}  acked\n  0 places taken\n")));
    let (code, said, _) = queue(&serve, &["ack", "jobs", &item]);
    assert_eq!(code, Some(1));
    assert!(said.contains("no worker has it"), "{said}");
    let (code, said, _) = queue(&serve, &["stats", "jobs", "--outcomes", "1"]);
    assert!(
        code == Some(0) && said.starts_with("0 of 3 places taken: 0 wait, 0 are with workers\n"),
        "{said}"
    );
    let (before, newest) = said.split_once("  outcomes kept   2\n").unwrap_or_else(|| panic!("{said}"));
    assert!(before.contains("dead-lettered   1"), "{said}");
    assert!(newest.starts_with(&format!("    item {item}, ")), "{said}");
    assert!(newest.ends_with(" ago, acked, 1 delivery, by weir queue: shipped\n"), "{said}");
    let (_, said, _) = queue(&serve, &["stats", "jobs", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["acked"], &json["deadLettered"]), (&"1".into(), &"1".into()), "{said}");
}

#[test]
fn work_from_stdin_and_mistakes() {
    let (serve, _folder) = serve();
    let mut command = weir_command(&["queue", "put", "clicks", "--server", &serve.server]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from stdin").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (_, said, _) = queue(&serve, &["take", "clicks"]);
    assert!(said.ends_with("\nfrom stdin\n"), "{said}");
    let (code, _, said) = queue(&serve, &["put", "click", "x"]);
    let wanted = "error: NOT_FOUND: queue: there is no queue `click`; did you mean `clicks`?\n";
    assert_eq!((code, said.as_str()), (Some(2), wanted));
    let (code, _, said) = queue(&serve, &["ack", "clicks", "1-1"]);
    assert!(code == Some(2) && said.contains("FAILED_PRECONDITION: queue `clicks` is a list"), "{said}");
    let (code, _, said) = queue(&serve, &["put", "jobs", "a", "b", "--id", "1"]);
    let wanted = "error: there are 1 of --id and 2 items: give one for each item, or none\n";
    assert_eq!((code, said.as_str()), (Some(2), wanted));
    let (code, _, said) = queue(&serve, &["take", "jobs", "--max-items", "101"]);
    assert!(code == Some(2) && said.contains("max_items is 101: it must be 1 to 100"), "{said}");
    let (code, log) = serve.stop("TERM");
    assert!(code == Some(0) && log.contains("queues are in memory"), "{log}");
}

#[test]
fn the_help_has_examples() {
    let help = text(&weir(&["queue", "--help"]).stdout);
    for example in [
        "weir queue put jobs",
        "weir queue take jobs --wait 20s",
        "weir queue ack jobs",
        "weir queue nack jobs",
        "weir queue stats jobs",
    ] {
        assert!(help.contains(example), "{help}");
    }
}

/// Dead letters are looked at, brought back and removed by hand.
#[test]
fn dead_letters_are_browsed_redriven_and_purged() {
    let folder = scratch::dir("queue-operate-");
    let config = folder.path().join("weir.yaml");
    let text = "queues: { jobs: { capacity: 3, max_deliveries: 1 } }\nserver: { admin_service: true }\n";
    std::fs::write(&config, text).unwrap();
    let serve = Serve::start(&["--config", config.to_str().unwrap()]);
    queue(&serve, &["put", "jobs", "a", "b", "c"]);
    for _ in 0..2 {
        let (_, said, _) = queue(&serve, &["take", "jobs", "--consumer", "me"]);
        let id = said.split([' ', ',']).nth(1).unwrap().to_owned();
        assert_eq!(queue(&serve, &["nack", "jobs", &id]).0, Some(0));
    }
    let (code, said, _) = queue(&serve, &["browse", "jobs:dead", "--max-items", "1"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(", 0 deliveries: waits\na\n  2 places taken\n  more: --after "), "{said}");
    let (code, said, _) = queue(&serve, &["redrive", "jobs", "--max-items", "1"]);
    let wanted = "1 dead letters came back\n  2 places taken, 1 dead letters left\n";
    assert_eq!((code, said.as_str()), (Some(0), wanted));
    queue(&serve, &["put", "jobs", "d"]);
    let (code, said, _) = queue(&serve, &["redrive", "jobs"]);
    let wanted = "0 dead letters came back\n  the queue is full\n  3 places taken, 1 dead letters left\n";
    assert_eq!((code, said.as_str()), (Some(1), wanted));
    let (code, _, said) = queue(&serve, &["purge", "jobs:dead"]);
    assert!(code == Some(2) && said.contains("say --yes"), "{said}");
    let (code, said, _) = queue(&serve, &["purge", "jobs:dead", "--yes"]);
    assert_eq!((code, said.as_str()), (Some(0), "1 items removed\n"));
    let (code, said, _) = queue(&serve, &["browse", "jobs:dead"]);
    assert_eq!((code, said.as_str()), (Some(1), "nothing\n"));
    let (_, said, _) = queue(&serve, &["stats", "jobs"]);
    assert!(said.contains("  redriven        1\n"), "{said}");
}

/// The method was there, and no command.
#[test]
fn outcomes_are_found_by_item_and_by_time() {
    let (serve, _folder) = serve();
    let (_, put, _) = queue(&serve, &["put", "jobs", "a", "b", "c"]);
    let ids: Vec<&str> = put.split_whitespace().filter(|word| word.contains('-')).collect();
    assert_eq!(ids.len(), 3, "{put}");
    assert_eq!(queue(&serve, &["outcomes", "jobs"]).0, Some(1), "nothing is done yet");
    queue(&serve, &["take", "jobs", "--max-items", "3"]);
    assert_eq!(queue(&serve, &["ack", "jobs", ids[0], "--outcome", "small"]).0, Some(0));
    assert_eq!(queue(&serve, &["ack", "jobs", ids[1], "--outcome", "large"]).0, Some(0));
    let (code, all, _) = queue(&serve, &["outcomes", "jobs", "--last", "1h"]);
    assert_eq!((code, all.lines().count()), (Some(0), 2), "{all}");
    assert!(all.lines().next().unwrap().contains(": large"), "the newest first: {all}");
    let (_, one, _) = queue(&serve, &["outcomes", "jobs", "--item", ids[0]]);
    assert!(one.contains(ids[0]) && one.contains(": small") && !one.contains(ids[1]), "{one}");
    assert_eq!(
        queue(&serve, &["outcomes", "jobs", "--max-items", "1"]).1.lines().count(),
        2,
        "and that there are more"
    );
    assert_eq!(queue(&serve, &["outcomes", "jobs", "--until", "1"]).0, Some(1), "all are later");
    let (_, json, _) = queue(&serve, &["outcomes", "jobs", "--output", "json"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| (&line["itemId"], &line["outcome"], &line["fate"])).collect();
    let [small, large, acked] = ["small", "large", "ITEM_FATE_ACKED"].map(serde_json::Value::from);
    let ids = [ids[1], ids[0]].map(serde_json::Value::from);
    assert_eq!(told, [(&ids[0], &large, &acked), (&ids[1], &small, &acked)], "a line for each");
    let (code, _, error) = queue(&serve, &["outcomes", "wrok"]);
    assert!(code == Some(2) && error.contains("there is no queue `wrok`"), "{error}");
}

/// An archive of ten outcomes for each place lost the rest of what was asked for.
#[test]
fn the_whole_archive_comes_as_lines() {
    let folder = scratch::dir("queue-archive-");
    let config = folder.path().join("weir.yaml");
    let text =
        "queues: { jobs: { capacity: 10, when_full: drop_oldest, outcomes: { keep: 1h, payload: head } } }";
    std::fs::write(&config, text).unwrap();
    let serve = Serve::start(&["--config", config.to_str().unwrap()]);
    let names: Vec<String> = (0..130).map(|number| format!("work {number}")).collect();
    for names in names.chunks(10) {
        let put: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(queue(&serve, &[&["put", "jobs"], &put[..]].concat()).0, Some(0));
        assert_eq!(queue(&serve, &["take", "jobs", "--max-items", "9", "--ack"]).0, Some(0));
    }
    queue(&serve, &["take", "jobs", "--ack"]);
    let (code, json, _) = queue(&serve, &["outcomes", "jobs", "--all", "--output", "json"]);
    let fate = |line: &str| -> (String, String) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["fate"].as_str().unwrap().to_owned(), line["payloadHead"].as_str().unwrap().to_owned())
    };
    let found: Vec<_> = json.lines().map(fate).collect();
    let heads: std::collections::BTreeSet<_> = found.iter().map(|(_, head)| head).collect();
    let (acked, dropped): (Vec<_>, Vec<_>) = found.iter().partition(|(fate, _)| fate == "ITEM_FATE_ACKED");
    assert_eq!((code, heads.len(), acked.len(), dropped.len()), (Some(0), 130, 118, 12), "{json}");
    let (_, totals, _) = queue(&serve, &["outcomes", "jobs", "--totals"]);
    assert_eq!(totals, "acked 118\ndead-lettered 0\ndropped 12\ntoo old 0\n");
    let (_, totals, _) = queue(&serve, &["outcomes", "jobs", "--totals", "--fate", "dropped", "-o", "json"]);
    let totals: serde_json::Value = serde_json::from_str(&totals).unwrap();
    assert_eq!((&totals["dropped"], &totals["acked"]), (&"12".into(), &"0".into()), "{totals}");
    let (code, one, _) = queue(&serve, &["outcomes", "jobs", "--fate", "dropped", "--max-items", "1"]);
    assert_eq!(code, Some(0));
    assert!(one.contains(" ago, dropped, 0 deliveries\n  work 119\n"), "{one}");
    assert_eq!(queue(&serve, &["outcomes", "jobs", "--outcome", "shipped"]).0, Some(1), "no Ack had a text");
}
