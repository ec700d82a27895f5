//! A recorded release and this version on one Redis, on the same keys: a rolling upgrade, and a rollback.
//!
//! A release is recorded as what it sent. Its calls are made again, word for word, between live calls of this version. Both
//! must answer as the release alone did, and leave what it left, whoever makes which step.

mod laws;

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::RELEASES;
use super::keys::{dump, restore, without_marks};
use super::record::Monitor;
use super::release::{Release, folder, json_of_call, make_call, write};
use super::stories::stories;
use super::story::{Story, World};
use crate::support::RedisServer;

/// The maker of a step, by its number and the number of steps: true for the release before, false for this version.
type Turns = fn(usize, usize) -> bool;

const TURNS: [(&str, Turns); 6] = [
    ("the release before alone", |_, _| true),
    ("by turns", |step, _| step % 2 == 0),
    ("by turns, the new one first", |step, _| step % 2 == 1),
    ("an upgrade", |step, all| 3 * step < all || 3 * step < 2 * all && step % 2 == 0),
    ("a rollback", |step, all| 3 * step >= 2 * all || 3 * step >= all && step % 2 == 0),
    ("any order", |step, _| (step * 2_654_435_761) >> 7 & 1 == 0),
];

/// Nothing is charged, lost or handed out twice, and no answer is another one, while nodes of both are at work; and states are
/// written as before, to the last byte, and read as before. The first recording is one of this version, made here.
#[tokio::test]
async fn recorded_releases_and_this_version_work_on_the_same_keys() {
    let redis = RedisServer::start();
    let own = record(&redis).await;
    let mut world = World::new(&redis).await;
    for folder in [own].into_iter().chain(RELEASES.map(folder)) {
        let release = Release::read(&folder);
        let name = folder.display().to_string();
        by_turns(&redis, &mut world, &release, &name).await;
        from_states(&redis, &mut world, &release, &name).await;
    }
}

async fn by_turns(redis: &RedisServer, world: &mut World, release: &Release, name: &str) {
    let mut connection = redis.connection();
    release.load(&mut connection);
    for story in of_release(release) {
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
            let end = dump(redis, &mut connection);
            assert_eq!(without_marks(&end), kept_states(kept, "end"), "{what}: the states after all steps");
        }
        laws::check(&story, steps(kept).iter().map(|step| &step["answers"]));
    }
}

async fn from_states(redis: &RedisServer, world: &mut World, release: &Release, name: &str) {
    let mut connection = redis.connection();
    for story in of_release(release) {
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
        let written = without_marks(&dump(redis, &mut connection));
        assert_eq!(written, without_marks(states), "{what}: the states that are written");
        // What an old node has left.
        redis.flush_all();
        states.iter().for_each(|key| restore(&mut connection, key));
        assert_eq!(dump(redis, &mut connection), *states, "{what}: the states that are put back");
        go_on(world, &story, kept, &what).await;
        let end = dump(redis, &mut connection);
        assert_eq!(without_marks(&end), kept_states(kept, "end"), "{what}: the states at the end");
    }
}

/// Records this version, checks that the recording is what it did, and returns the folder.
async fn record(redis: &RedisServer) -> PathBuf {
    let mut connection = redis.connection();
    let mut world = World::new(redis).await;
    let mut monitor = Monitor::new(redis);
    let mut all = Vec::new();
    for story in stories() {
        redis.flush_all();
        world.begin();
        let (mut kept, mut states) = (Vec::new(), Vec::new());
        monitor.calls(redis);
        for (number, step) in story.steps.iter().enumerate() {
            if number == story.states_after {
                states = dump(redis, &mut connection);
            }
            world.pass(step.after);
            let answers = world.ask(step).await;
            world.learn(step, &answers);
            let calls: Vec<Json> = monitor.calls(redis).iter().map(json_of_call).collect();
            assert!(!calls.is_empty(), "{}: step {number} makes no call", story.name);
            kept.push(json!({ "calls": calls, "answers": answers }));
        }
        laws::check(&story, kept.iter().map(|step| &step["answers"]));
        let end = dump(redis, &mut connection);
        // The same calls once more, for the replies to them.
        redis.flush_all();
        for call in kept.iter_mut().flat_map(|step| step["calls"].as_array_mut().unwrap()) {
            call["reply"] = make_call(&mut connection, call);
        }
        assert_eq!(dump(redis, &mut connection), end, "{}: the calls that were seen are not all", story.name);
        all.push(json!({ "name": story.name, "steps": kept, "states": states, "end": end }));
    }
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upgrade/next");
    let _ = std::fs::remove_dir_all(&into);
    write(&into, &monitor.texts, &files(), &all);
    into
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

/// The states that a story has kept, without what is drawn at random.
fn kept_states(kept: &Json, name: &str) -> Vec<Json> {
    without_marks(kept[name].as_array().unwrap())
}

fn steps(kept: &Json) -> &[Json] {
    kept["steps"].as_array().unwrap()
}

/// The files of `lua/`, by their paths.
fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["lua", "lua/budget", "lua/leases", "lua/queues"] {
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
