//! Routing groups that must lie apart lie on different shards of a real cluster, where `weir explain` says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use serde_json::Value;
use weir_config::{Config, ConfigOverrides, ServerConfig};
use weir_core::key::{KeySecret, Placements, Subject, slot};

use crate::support::command::weir;
use crate::support::server::{Server, ask_under, config};
use crate::support::{Cluster, SOON, eventually};

const GROUPS: [&str; 3] = ["ducks", "geese", "swans"];

fn text(secret: &str, nodes: &[String]) -> String {
    let resource = |group: &&str| format!("{{ match: {group}/*, strategy: alone, group: {group} }}");
    let resources = GROUPS.iter().map(resource).collect::<Vec<_>>().join(", ");
    format!(
        "store: {{ key_secret: {secret}, redis: {{ nodes: {nodes:?}, topology: cluster, shards: 3, deadline: 30s }} }}
groups: {{ ducks: {{ apart_from: [geese] }}, swans: {{ apart_from: [ducks, geese] }} }}
resources: [{resources}]
strategies:
  alone: {{ limits: [{{ name: all, per: [resource], token_bucket: {{ rate: 5/1h }} }}] }}
  each: {{ limits: [{{ name: each, per: [resource, consumer], token_bucket: {{ rate: 5/1h }} }}] }}
  dual:
    limits:
      - {{ name: all, per: [resource], token_bucket: {{ rate: 500/1h }} }}
      - {{ name: each, per: [resource, consumer], token_bucket: {{ rate: 5/1h }} }}
"
    )
}

fn parsed(secret: &str, nodes: &[String]) -> Config {
    Config::parse(&text(secret, nodes), "weir.yaml", &ConfigOverrides::default()).unwrap()
}

/// A secret under which all groups would lie on one shard.
fn unlucky() -> String {
    let collides = |secret: &String| {
        let config = parsed(secret, &["redis://a".to_owned()]);
        let strategy = &config.rules.strategies()[0];
        let secret = KeySecret::from_text(secret);
        let part = |group| {
            let subject = Subject { resource: "x", group: Some(group), ..Subject::default() };
            let tag = Placements::default().tag(&secret, strategy, &subject, &mut Vec::new());
            Placements::among(3).part(slot(tag)).unwrap().number
        };
        GROUPS.iter().map(|group| part(group)).collect::<BTreeSet<_>>().len() == 1
    };
    (0..).map(|number: u32| format!("secret{number}")).find(collides).unwrap()
}

#[tokio::test]
async fn groups_lie_apart() {
    let cluster = Cluster::start(3, 0);
    let (secret, urls) = (unlucky(), cluster.urls());
    let server = ServerConfig { ready_needs_store: false, ..config().server };
    let server = Server::start_by_the_system(Config { server, ..parsed(&secret, &urls) });
    eventually(SOON, "ready", || server.get("/readyz") == (200, "ready\n".to_owned()));
    let mut client = server.client().await;
    for group in GROUPS {
        for number in 0..20 {
            let (resource, consumer) = (format!("{group}/{number}"), format!("consumer-{number}"));
            for strategy in ["alone", "each", "dual"] {
                let answer = client.should_allow(ask_under(strategy, &resource, &consumer)).await.unwrap();
                assert!(answer.into_inner().allowed);
            }
        }
    }
    let mut shards: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (index, node) in cluster.nodes().iter().enumerate() {
        for key in node.state_keys() {
            let group = GROUPS.into_iter().find(|group| key.contains(&format!("|R{group}/"))).unwrap();
            shards.entry(group).or_default().insert(index);
        }
    }
    assert!(shards.values().all(|shards| shards.len() == 1), "{shards:?}");
    assert_eq!(shards.values().flatten().collect::<BTreeSet<_>>().len(), GROUPS.len(), "{shards:?}");
    for (group, shard) in &shards {
        for strategy in ["alone", "each", "dual"] {
            assert_eq!(
                explained(&text(&secret, &urls), group, strategy),
                shard.iter().copied().collect::<Vec<_>>()
            );
        }
    }
}

/// The part that `weir explain` shows; a cluster of this size gives part i to node i.
fn explained(text: &str, group: &str, strategy: &str) -> Vec<usize> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let resource = format!("{group}/7");
    let args = ["explain", &resource, "consumer-7", "--strategy", strategy, "--config", path];
    let out = weir(&[&args[..], &["--output", "json"]].concat());
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    let part = &said["part"];
    let (number, at) = (part["number"].as_u64().unwrap(), said["slot"].as_u64().unwrap());
    assert_eq!(part["shards"], 3);
    assert!((part["first_slot"].as_u64().unwrap()..=part["last_slot"].as_u64().unwrap()).contains(&at));
    let out = String::from_utf8(weir(&args).stdout).unwrap();
    assert!(out.contains(&format!("shard, which `groups` puts into part {number}\n")), "{out}");
    assert!(out.contains(&format!("slot {at} of a Redis Cluster, part {number} of 3 (slots ")), "{out}");
    vec![usize::try_from(number).unwrap()]
}
