//! The release before and this version on one Redis, on the same keys: a rolling upgrade, and a rollback.
//!
//! A release is kept as what it sent. Its calls are made again, word for word, between live calls of this version. Both
//! must answer as the release alone did, and leave what it left, whoever makes which step.

mod laws;

use std::collections::BTreeMap;
use std::path::Path;

use redis::Connection;
use serde_json::{Value as Json, json};

use super::keys::{dump, restore};
use super::record::Monitor;
use super::release::{Release, folder, json_of_call, make_call, write};
use super::stories::stories;
use super::story::{Story, World};
use crate::support::RedisServer;

/// Releases that nodes may be upgraded from.
const RELEASES: [&str; 1] = ["0.1.0"];

/// Who makes a step: the release before, or this version. Of the number of the step, and of how many there are.
type Turns = fn(usize, usize) -> bool;

const TURNS: [(&str, Turns); 6] = [
    ("the release before alone", |_, _| true),
    ("by turns", |step, _| step % 2 == 0),
    ("by turns, the new one first", |step, _| step % 2 == 1),
    ("an upgrade", |step, all| 3 * step < all || 3 * step < 2 * all && step % 2 == 0),
    ("a rollback", |step, all| 3 * step >= 2 * all || 3 * step >= all && step % 2 == 0),
    ("any order", |step, _| (step * 2_654_435_761) >> 7 & 1 == 0),
];

/// Nothing is charged, lost or handed out twice, and no answer is another one, while nodes of both are at work.
#[tokio::test]
async fn the_release_before_and_this_one_work_on_the_same_keys() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    let mut world = World::new(&redis).await;
    for name in RELEASES {
        let release = Release::read(&folder(name));
        release.load(&mut connection);
        for story in of_release(&release) {
            let kept = &release.stories[&story.name];
            for (turns, is_old) in TURNS {
                let what = format!("{name}, {turns}: {}", story.name);
                redis.flush_all();
                world.begin();
                for (number, (step, kept)) in story.steps.iter().zip(steps(kept)).enumerate() {
                    world.pass(step.after);
                    if is_old(number, story.steps.len()) {
                        for call in kept["calls"].as_array().unwrap() {
                            let reply = make_call(&mut connection, call);
                            assert_eq!(reply, call["reply"], "{what}: the old reply to step {number}");
                        }
                    } else {
                        let answers = world.ask(step).await;
                        assert_eq!(answers, kept["answers"], "{what}: the new answers to step {number}");
                    }
                    world.learn(step, &kept["answers"]);
                }
                let end = as_before(dump(&redis, &mut connection));
                assert_eq!(end, *kept["end"].as_array().unwrap(), "{what}: the states after all steps");
            }
            laws::check(&story, steps(kept).iter().map(|step| &step["answers"]));
        }
    }
}

/// Leases, queues and limits are written as before, to the last byte, and read as before.
#[tokio::test]
async fn the_states_of_a_release_are_written_and_read_as_before() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    let mut world = World::new(&redis).await;
    for name in RELEASES {
        let release = Release::read(&folder(name));
        for story in of_release(&release) {
            let what = format!("{name}: {}", story.name);
            let kept = &release.stories[&story.name];
            redis.flush_all();
            world.begin();
            for (number, (step, kept)) in story.steps.iter().zip(steps(kept)).enumerate() {
                if number == story.states_after {
                    break;
                }
                world.pass(step.after);
                assert_eq!(world.ask(step).await, kept["answers"], "{what}, step {number}");
                world.learn(step, &kept["answers"]);
            }
            let states = kept["states"].as_array().unwrap();
            let written = as_before(dump(&redis, &mut connection));
            assert_eq!(written, *states, "{what}: the states that are written");
            // What an old node has left.
            redis.flush_all();
            states.iter().for_each(|key| restore(&mut connection, key));
            assert_eq!(dump(&redis, &mut connection), *states, "{what}: the states that are put back");
            go_on(&mut world, &story, kept, &what).await;
            let end = as_before(dump(&redis, &mut connection));
            assert_eq!(end, *kept["end"].as_array().unwrap(), "{what}: the states at the end");
        }
    }
}

/// The states without what this version adds, which 0.1.0 passes over: it reads the first 13 numbers of a queue and writes
/// those, and it does not know the field `p` of how far lost items were looked for, the fields `k` of tokens, and the keys of
/// digests. The record of a cancelled reservation is over for it, since the epoch.
fn as_before(mut keys: Vec<Json>) -> Vec<Json> {
    const NUMBERS: usize = 13;
    keys.retain(|key| !key["key"].as_str().unwrap_or_default().contains(":digest:"));
    keys.retain(|key| !is_cancelled(key));
    let of_queues = keys.iter_mut().filter(|key| {
        let name = key["key"].as_str().unwrap_or_default();
        name.contains(":queue:") && name.ends_with("meta") && key["kind"] == "hash"
    });
    for fields in of_queues.map(|key| key["value"].as_array_mut().unwrap()) {
        fields
            .retain(|field| field[0] != "p" && !field[0].as_str().is_some_and(|name| name.starts_with('k')));
        for field in fields.iter_mut().filter(|field| field[0] == "s") {
            field[1].as_array_mut().unwrap().truncate(NUMBERS);
        }
    }
    keys
}

/// True for the record of an id that ended at 0.
fn is_cancelled(key: &Json) -> bool {
    const UNTIL: usize = 5;
    key["key"].as_str().unwrap_or_default().contains(":once:") && key["value"][UNTIL] == 0
}

/// A version before 0.1.0 wrote no time before which no lease ends: 40 bytes instead of 48.
#[tokio::test]
async fn sums_of_leases_of_40_bytes_are_read() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    let mut world = World::new(&redis).await;
    let release = Release::read(&folder("0.1.0"));
    let mut short = 0;
    for story in of_release(&release).into_iter().filter(|story| story.name.starts_with("leases: ")) {
        let kept = &release.stories[&story.name];
        redis.flush_all();
        world.begin();
        story.steps[..story.states_after].iter().for_each(|step| world.pass(step.after));
        let mut states = kept["states"].as_array().unwrap().clone();
        for sums in sums(&mut states) {
            assert_eq!(sums.len(), 6);
            sums.truncate(5);
            short += 1;
        }
        states.iter().for_each(|key| restore(&mut connection, key));
        go_on(&mut world, &story, kept, &story.name).await;
        assert_eq!(dump(&redis, &mut connection), *kept["end"].as_array().unwrap(), "{}", story.name);
    }
    assert!(short >= 7, "{short} sums were shortened");
}

/// The scripts of a version before 0.1.0 that write 40 bytes, beside this version. They take calls of one lease as 0.1.0
/// makes them.
#[tokio::test]
async fn scripts_that_write_sums_of_40_bytes_work_on_the_same_keys() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    let mut world = World::new(&redis).await;
    let release = Release::read(&folder("0.1.0"));
    let old = scripts_of_40_bytes(&release, &mut connection);
    let (mut old_steps, mut short) = (0, 0);
    for story in of_release(&release).into_iter().filter(|story| story.name.starts_with("leases: ")) {
        let kept = &release.stories[&story.name];
        for (turns, is_old) in TURNS {
            let what = format!("40 bytes, {turns}: {}", story.name);
            redis.flush_all();
            world.begin();
            for (number, (step, kept)) in story.steps.iter().zip(steps(kept)).enumerate() {
                world.pass(step.after);
                let calls = kept["calls"].as_array().unwrap();
                let is_of_one = calls.iter().all(|call| call["args"].as_array().unwrap().len() == 3);
                if is_of_one && is_old(number, story.steps.len()) {
                    for call in calls {
                        let mut old_call = call.clone();
                        old_call["script"] = json!(old[call["script"].as_str().unwrap()]);
                        let reply = make_call(&mut connection, &old_call);
                        assert_eq!(reply, call["reply"], "{what}: the old reply to step {number}");
                    }
                    old_steps += 1;
                } else {
                    assert_eq!(
                        world.ask(step).await,
                        kept["answers"],
                        "{what}: the new answers to step {number}"
                    );
                }
                world.learn(step, &kept["answers"]);
            }
            let mut end = dump(&redis, &mut connection);
            let mut kept_end = kept["end"].as_array().unwrap().clone();
            short += sums(&mut end).filter(|sums| sums.len() == 5).count();
            sums(&mut end).chain(sums(&mut kept_end)).for_each(|sums| sums.truncate(5));
            assert_eq!(end, kept_end, "{what}: the states after all steps");
        }
    }
    assert!(
        old_steps > 300 && short > 10,
        "{old_steps} steps were made by the old scripts, which left {short} sums"
    );
}

/// The digests of these scripts, by those of 0.1.0 for the same kind of limit.
fn scripts_of_40_bytes(release: &Release, connection: &mut Connection) -> BTreeMap<String, String> {
    let mut old = BTreeMap::new();
    for (kind, mark) in [
        ("fixed", "KIND = 0"),
        ("aimd", "KIND = 1"),
        ("vegas", "KIND = 2"),
        ("gradient2", "KIND, WARM_UP = 3"),
    ] {
        let mut parts = vec!["start", kind, "sampling", "lease"];
        parts.retain(|part| kind != "fixed" || *part != "sampling");
        let read =
            |part: &&str| std::fs::read_to_string(folder("leases-40").join(format!("{part}.lua"))).unwrap();
        let text = parts.iter().map(read).collect::<Vec<_>>().join("\n");
        let sha: String = redis::cmd("SCRIPT").arg("LOAD").arg(text).query(connection).unwrap();
        let of_kind = release
            .scripts
            .iter()
            .filter(|(_, text)| text.contains("local ACQUIRE, RENEW, RELEASE") && text.contains(mark));
        old.extend(of_kind.map(|(theirs, _)| (theirs.clone(), sha.clone())));
    }
    assert_eq!(old.len(), 4);
    old
}

/// The sums of leases in states.
fn sums(keys: &mut [Json]) -> impl Iterator<Item = &mut Vec<Json>> {
    let hashes = keys.iter_mut().filter(|key| key["kind"] == "hash");
    let fields = hashes.flat_map(|key| key["value"].as_array_mut().unwrap());
    fields.filter(|field| field[0] == "s").map(|field| field[1].as_array_mut().unwrap())
}

/// Writes this version as a release is kept, and sees that it is what it did.
#[tokio::test]
async fn this_version_can_be_kept() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();
    let mut world = World::new(&redis).await;
    let mut monitor = Monitor::of(&redis);
    let mut all = Vec::new();
    for story in stories() {
        redis.flush_all();
        world.begin();
        let (mut kept, mut states) = (Vec::new(), Vec::new());
        monitor.calls(&redis);
        for (number, step) in story.steps.iter().enumerate() {
            if number == story.states_after {
                states = dump(&redis, &mut connection);
            }
            world.pass(step.after);
            let answers = world.ask(step).await;
            world.learn(step, &answers);
            let calls: Vec<Json> = monitor.calls(&redis).iter().map(json_of_call).collect();
            assert!(!calls.is_empty(), "{}: step {number} makes no call", story.name);
            kept.push(json!({ "calls": calls, "answers": answers }));
        }
        laws::check(&story, kept.iter().map(|step| &step["answers"]));
        let end = dump(&redis, &mut connection);
        // The same calls once more, for the replies to them.
        redis.flush_all();
        for call in kept.iter_mut().flat_map(|step| step["calls"].as_array_mut().unwrap()) {
            call["reply"] = make_call(&mut connection, call);
        }
        assert_eq!(
            dump(&redis, &mut connection),
            end,
            "{}: the calls that were seen are not all",
            story.name
        );
        all.push(json!({ "name": story.name, "steps": kept, "states": states, "end": end }));
    }
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upgrade/next");
    let _ = std::fs::remove_dir_all(&into);
    write(&into, &monitor.texts, &files(), &all);
    Release::read(&into).load(&mut connection);
}

/// Makes the steps after the states that were written down.
async fn go_on(world: &mut World, story: &Story, kept: &Json, what: &str) {
    for (number, (step, kept)) in story.steps.iter().zip(steps(kept)).enumerate().skip(story.states_after) {
        world.pass(step.after);
        assert_eq!(world.ask(step).await, kept["answers"], "{what}, step {number}, from old states");
        world.learn(step, &kept["answers"]);
    }
}

/// The stories that a release was told. None of them may go, or change.
fn of_release(release: &Release) -> Vec<Story> {
    let stories: Vec<Story> =
        stories().into_iter().filter(|story| release.stories.contains_key(&story.name)).collect();
    assert_eq!(stories.len(), release.stories.len(), "a story of a release is missing");
    for story in &stories {
        assert_eq!(
            story.steps.len(),
            steps(&release.stories[&story.name]).len(),
            "{} has changed",
            story.name
        );
    }
    stories
}

fn steps(kept: &Json) -> &[Json] {
    kept["steps"].as_array().unwrap()
}

/// The files of `lua/`, by their paths.
fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["lua", "lua/lease", "lua/queue"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "lua") {
                let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}
