//! Bounds of the records in Redis.

use weir_config::Topology;
use weir_control::model::{
    ControlChanges, ControlMirror, ControlPosition, ControlPut, ControlRecord, ControlRefusal,
    MAX_CONTROL_BODY, MAX_CONTROL_CHANGES, MAX_CONTROL_ENTRIES, MAX_CONTROL_KEY, MAX_CONTROL_RECORDS,
    MAX_POLLED_BYTES, MAX_PUT_TOGETHER,
};
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{HOUR, START, link, put, record};

/// The bound holds for entries in force. Deletions, generations and what has expired leave room.
#[tokio::test]
async fn entries() {
    let clock = ManualClock::at(Micros(START));
    let mut link = link(Topology::Single, &clock).await;
    let mut records: Vec<ControlRecord> =
        (1..MAX_CONTROL_ENTRIES).map(|number| record(&number.to_string(), START)).collect();
    records.push(record("generation/s", START));
    records.push(ControlRecord {
        deleted: true,
        expires_at: START,
        body: [].into(),
        ..record("gone", START)
    });
    records.push(ControlRecord { expires_at: START + HOUR, ..record("ends", START) });
    assert_eq!(link.merge(1, &records).await, Ok(MAX_CONTROL_ENTRIES + 2));
    let full = Ok(Err(ControlRefusal::Full { most: MAX_CONTROL_ENTRIES }));
    assert_eq!(link.put(&put("new", 2)).await, full);
    assert!(link.put(&put("1", 3)).await.unwrap().is_ok(), "it is there already");
    clock.set(Micros(START + HOUR));
    assert!(link.put(&put("new", 4)).await.unwrap().is_ok(), "one has expired");
    assert_eq!(link.put(&put("newer", 5)).await, full);
    let (all, _) = link.read_all().await.unwrap();
    assert_eq!(all.len(), MAX_CONTROL_ENTRIES + 3);
}

/// Deletions are bounded, too. A merge may add more than a put, so that nothing is refused after a loss.
#[tokio::test]
async fn records_of_all_kinds() {
    let clock = ManualClock::at(Micros(START));
    let mut link = link(Topology::Single, &clock).await;
    let gone = |number: usize| ControlRecord {
        deleted: true,
        expires_at: START,
        body: [].into(),
        ..record(&number.to_string(), START)
    };
    let records: Vec<ControlRecord> = (0..MAX_CONTROL_RECORDS).map(gone).collect();
    assert_eq!(link.merge(1, &records).await, Ok(MAX_CONTROL_RECORDS));
    assert_eq!(link.put(&put("new", 2)).await, Ok(Err(ControlRefusal::Full { most: MAX_CONTROL_RECORDS })));
    assert!(link.put(&put("7", 3)).await.unwrap().is_ok(), "it is there already");
    assert_eq!(link.merge(4, &[record("sent", START)]).await, Ok(1));
    clock.set(Micros(START + 24 * HOUR));
    for change in 5..8 {
        assert!(link.put(&put(&format!("new {change}"), change)).await.unwrap().is_ok(), "old ones go");
    }
}

/// The last 10,000 changes are kept. One answer has at most 100, and about 1 MiB.
#[tokio::test]
async fn changes_and_answers() {
    let clock = ManualClock::at(Micros(START));
    let mut link = link(Topology::Single, &clock).await;
    let mut positions = Vec::new();
    for change in 1..=MAX_CONTROL_CHANGES as u64 + 1 {
        positions.push(link.put(&put("a", change)).await.unwrap().unwrap()[0].position());
    }
    assert!(matches!(link.poll(positions[0]).await, Ok(ControlChanges::Everything { .. })));
    let Ok(ControlChanges::Since { records, position }) = link.poll(positions[1]).await else { panic!() };
    assert_eq!((records.len(), position), (100, positions[101]));
    let last = positions[positions.len() - 1];
    for change in 0..80 {
        let body = Some(vec![0; MAX_CONTROL_BODY].into());
        let large = weir_control::model::ControlPut { body, ..put("b", change + (1 << 40)) };
        assert!(link.put(&large).await.unwrap().is_ok());
    }
    let Ok(ControlChanges::Since { records, .. }) = link.poll(last).await else { panic!() };
    assert_eq!(records.len(), MAX_POLLED_BYTES / MAX_CONTROL_BODY);
}

/// The longest keys and bodies pass; anything longer is refused before it is sent.
#[tokio::test]
async fn lengths() {
    let clock = ManualClock::at(Micros(START));
    for topology in [Topology::Single, Topology::Cluster] {
        let mut link = link(topology, &clock).await;
        let key = "k".repeat(MAX_CONTROL_KEY);
        let body: Box<[u8]> = vec![255; MAX_CONTROL_BODY].into();
        let longest = weir_control::model::ControlPut { body: Some(body.clone()), ..put(&key, 1) };
        assert_eq!(link.put(&longest).await.unwrap().unwrap()[0].body, body);
        let records: Vec<ControlRecord> = (0..100)
            .map(|number| ControlRecord {
                body: body.clone(),
                ..record(&format!("{number:0>width$}", width = MAX_CONTROL_KEY), START)
            })
            .collect();
        assert_eq!(link.merge(2, &records).await, Ok(100));
        assert_eq!(link.read_all().await.unwrap().0.len(), 101);
        assert_eq!(
            link.put(&put(&"k".repeat(MAX_CONTROL_KEY + 1), 3)).await.unwrap().unwrap_err().to_string(),
            "`key` has 4097 bytes, and must have 1 to 4096"
        );
    }
}

/// A record of a later version stays as it is; what is no record is replaced.
#[tokio::test]
async fn records_of_another_format_stay() {
    let redis = crate::support::RedisServer::start();
    let config = crate::support::redis_config(vec![redis.url()], Topology::Single);
    let shared = weir_store::redis::RedisShared::new(
        &config,
        weir_core::key::KeySecret::BUILT_IN,
        weir_time::clock::Clock::System,
    );
    crate::support::watched(&shared).await;
    let mut link = weir_control::store::ControlLink::open(&shared.scripts());
    link.put(&put("other", 1)).await.unwrap().unwrap();
    let later = format!("\u{2}{}", "x".repeat(40));
    redis.cli(&["HSET", "weir:{control}:records", "later", &later, "damaged", "x"]);
    let refused = link.put(&put("later", 2)).await.unwrap_err();
    assert!(refused.contains("a later version of Weir wrote this record"), "{refused}");
    let sent = [record("later", START), record("new", START)];
    assert_eq!(link.merge(3, &sent).await, Ok(1));
    assert!(link.put(&put("damaged", 4)).await.unwrap().is_ok());
    assert_eq!(redis.query::<String>(&["HGET", "weir:{control}:records", "later"]), later);
    // A node that knows the key from before agrees with Redis all the same.
    let mut mirror = weir_control::model::ControlMirror::restore(sent, ControlPosition::NONE);
    for aside in [1, 0] {
        let synced = link.sync(&mut mirror, || 5).await.unwrap();
        assert_eq!((synced.aside, synced.sent), (aside, 0));
    }
    assert_eq!(mirror.position(), link.read_all().await.unwrap().1);
}

/// As many changes as one call can have. Nodes that ask for them get whole changes, within what a script can return.
#[tokio::test]
async fn changes_of_many_entries() {
    let clock = ManualClock::at(Micros(START));
    let mut link = link(Topology::Single, &clock).await;
    let first = link.put(&put("first", 1)).await.unwrap().unwrap()[0].position();
    let all = |change| (0..MAX_PUT_TOGETHER).map(move |number| put(&format!("key {number}"), change));
    let mut last = first;
    for change in 2..=6 {
        let puts: Vec<_> = all(change)
            .map(|put| ControlPut { generation: Some(format!("generation/{}", put.key).into()), ..put })
            .collect();
        let written = link.put_many(&puts).await.unwrap().unwrap();
        assert_eq!(written.len(), 2 * MAX_PUT_TOGETHER);
        last = written[0].position();
    }
    let Ok(ControlChanges::Since { records, position }) = link.poll(first).await else { panic!() };
    assert_eq!(records.len(), 2 * MAX_PUT_TOGETHER, "two of them are more than a script returns");
    assert_ne!(position, last);
    let mut mirror = ControlMirror::restore([], ControlPosition::NONE);
    link.sync(&mut mirror, || 9).await.unwrap();
    assert_eq!((mirror.position(), mirror.records().count()), (last, 2 * MAX_PUT_TOGETHER + 1));
    for change in 10..10 + (MAX_CONTROL_ENTRIES / MAX_PUT_TOGETHER) as u64 {
        link.put_many(&all(change).collect::<Vec<_>>()).await.unwrap().unwrap();
    }
    assert!(
        matches!(link.poll(last).await, Ok(ControlChanges::Everything { .. })),
        "as many as entries are kept"
    );
    let refused = link.put_many(&all(99).chain([put("more", 99)]).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(refused.unwrap_err().refusal, ControlRefusal::Count { count: MAX_PUT_TOGETHER + 1 });
}
