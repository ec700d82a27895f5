//! Live control as a user of Redis with exactly the rights that docs/redis.md lists, and without each of them in turn: what
//! is refused has changed nothing that nodes would not see.

use weir_config::{Login, RedisConfig, Secret, Topology};
use weir_control::model::{Ban, BanSet, ControlMirror, ControlPosition, ControlPut, ControlRecord};
use weir_control::store::ControlLink;
use weir_core::key::KeySecret;
use weir_store::redis::RedisShared;
use weir_testing::rights;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::world::{HOUR, START, put, record};
use crate::support::{RedisServer, redis_config, watched};

/// All that can happen, a day after what was done before. Returns what was refused.
async fn everything(link: &mut ControlLink, clock: &ManualClock, round: u64) -> Vec<String> {
    let now = START + round * 25 * HOUR;
    clock.set(Micros(now));
    let id = |number: u64| round * 100 + number;
    let mut failures = Vec::new();
    macro_rules! done {
        ($call:expr) => {
            match $call.await {
                Ok(done) => Some(done),
                Err(why) => {
                    failures.push(why);
                    None
                }
            }
        };
    }
    let key = format!("a{round}");
    let generation = Some("generation/s".into());
    done!(link.put(&ControlPut { generation, ..put(&key, id(1)) }));
    let before = done!(link.poll(ControlPosition::UNSETTLED));
    done!(link.put(&ControlPut { expires_after: Some(Micros(HOUR)), ..put("b", id(2)) }));
    done!(link.put(&ControlPut { body: None, ..put(&key, id(3)) }));
    if let Some(weir_control::model::ControlChanges::Everything { position }) = before {
        done!(link.poll(position));
    }
    done!(link.merge(id(4), &[ControlRecord { change: id(4), ..record("merged", now) }]));
    done!(link.read_all());
    let bans = [Ban { member: "bob".into(), until: now + HOUR }];
    done!(link.add_bans(id(5), &bans));
    done!(link.lift_ban(id(6), "bob"));
    done!(link.read_bans());
    let (mut bans, mut position) = (BanSet::default(), ControlPosition { version: START, change: 105 });
    done!(link.sync_bans(&mut bans, &mut position));
    failures
}

#[tokio::test]
async fn it_needs_its_own_rights_and_no_others() {
    let redis = RedisServer::start();
    let all = [&rights::of_decisions()[..], &rights::of_control()].concat();
    rights::add_user(&redis, "weir", "hunter2", &all);
    let login = Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") };
    let config = RedisConfig { login: Some(login), ..redis_config(vec![redis.url()], Topology::Single) };
    let clock = ManualClock::at(Micros(START));
    let shared = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::Manual(clock.clone()));
    watched(&shared).await;
    let mut link = ControlLink::open(&shared.scripts());
    let (mut mirror, mut round, mut change) = (ControlMirror::default(), 0, 0);
    let mut new_change = || {
        change += 1;
        change
    };
    let denied = || redis.query::<Vec<redis::Value>>(&["ACL", "LOG"]);
    let failures = everything(&mut link, &clock, round).await;
    assert!(failures.is_empty() && denied().is_empty(), "{failures:?} {:?}", denied());
    for right in rights::of_control() {
        // What it leaves is old in the next round.
        round += 1;
        assert_eq!(everything(&mut link, &clock, round).await, Vec::<String>::new(), "before {right}");
        round += 1;
        link.sync(&mut mirror, &mut new_change).await.unwrap();
        rights::withdraw(&redis, "weir", right);
        redis.cli(&["ACL", "LOG", "RESET"]);
        let failures = everything(&mut link, &clock, round).await;
        assert!(!denied().is_empty() && !failures.is_empty(), "nothing needs {right}");
        let refused = |why: &String| {
            ["NOPERM", "permission", "can't run this command"].iter().any(|words| why.contains(words))
        };
        assert!(failures.iter().all(refused), "without {right}: {failures:?}");
        rights::grant(&redis, "weir", &[right]);
        // A node that follows the changes has seen all that was done.
        let synced = link.sync(&mut mirror, &mut new_change).await.unwrap();
        assert_eq!((synced.lost, synced.sent), (None, 0), "{right}");
        let (mut records, position) = link.read_all().await.unwrap();
        records.retain(|record| !record.is_old(clock.now().0));
        mirror.drop_old(clock.now().0);
        assert_eq!(mirror.position(), position, "{right}");
        assert!(mirror.records().eq(&records), "without {right} a change was not seen");
    }
}
