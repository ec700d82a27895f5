//! Keys: no two states share one, no caller can break or forge a tag, and Redis puts them in the slot
//! that we route to.

mod holds;

use std::collections::HashMap;
use std::sync::Arc;
use weir_testing::rules::numbered_limits;

use proptest::prelude::*;
use weir_core::algorithm::Algorithm;
use weir_core::key::{
    self, KeySecret, MAX_NAMESPACE, MAX_PART, Namespace, Subject, TAG_LENGTH, slot, write_identity,
    write_key, write_refund_key, write_tag,
};
use weir_core::strategy::{
    Attributes, FailurePolicy, Field, Limit, MAX_ATTRIBUTES, MAX_NAME, Scope, Strategy as Rules,
};
use weir_units::Micros;

use crate::properties::random::config;
use crate::support;

/// A caller and a resource, with names of the caller's choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    resource: String,
    consumer: String,
    group: Option<String>,
    attributes: HashMap<String, String>,
}

impl Names {
    fn subject(&self) -> Subject<'_> {
        Subject {
            resource: &self.resource,
            consumer: &self.consumer,
            group: self.group.as_deref(),
            attributes: Attributes::new(&self.attributes),
        }
    }

    fn new(resource: &str, consumer: &str) -> Self {
        Self { resource: resource.to_owned(), consumer: consumer.to_owned(), ..Self::default() }
    }
}

proptest! {
    #![proptest_config(config())]

    /// Two states have one key only if strategy, limit, engine, scope and every field that it names are the same.
    #[test]
    fn no_two_states_share_a_key(all in prop::collection::vec(names(), 2..40)) {
        let (mut owners, mut in_memory) = (HashMap::new(), HashMap::new());
        for rules in all_rules() {
            for names in &all {
                for (index, (limit, key)) in rules.limits().iter().zip(keys(&rules, names)).enumerate() {
                    let value = |field: &Field| (field.clone(), names.subject().field(field).to_owned());
                    let values: Vec<(Field, String)> = limit.scope.fields().iter().map(value).collect();
                    let engine = limit.algorithm.engine().name();
                    let state = (rules.name().to_owned(), limit.name.clone(), engine, values);
                    let owner = owners.entry(key).or_insert_with(|| state.clone());
                    prop_assert_eq!(&*owner, &state);
                    let mut identity = Vec::new();
                    write_identity(&mut identity, &rules, index, &names.subject());
                    let owner = in_memory.entry(identity).or_insert_with(|| state.clone());
                    prop_assert_eq!(&*owner, &state);
                }
            }
        }
    }

    /// Whatever the names: one pair of braces, ours; printable ASCII; a bounded length; one slot.
    #[test]
    fn keys_are_plain_and_bounded(names in names()) {
        for rules in all_rules() {
            let keys = keys(&rules, &names);
            for key in &keys {
                prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
                prop_assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1));
                prop_assert_eq!(braced(key).len(), TAG_LENGTH);
                let is_ours = key.starts_with("weir:{") && key.len() <= longest_key();
                prop_assert!(is_ours, "{key}");
            }
        }
    }

    /// Two refunds share a key only if id, strategy, resource and consumer are the same; and no refund
    /// has the key of a limit.
    #[test]
    fn no_two_refunds_share_a_key(all in prop::collection::vec((names(), text()), 2..20)) {
        let mut owners = HashMap::new();
        for rules in all_rules() {
            for (names, id) in &all {
                let mut key = Vec::new();
                let tag = tag(&KeySecret::BUILT_IN, &rules, names);
                write_refund_key(&mut key, Namespace::DEFAULT.prefix(tag), &rules, &names.subject(), id);
                let key = String::from_utf8(key).expect("a key is text");
                prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
                prop_assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1));
                prop_assert!(!all.iter().any(|(names, _)| keys(&rules, names).contains(&key)), "{key}");
                let whose = (names.resource.clone(), names.consumer.clone());
                let refund = (rules.name().to_owned(), whose, id.clone());
                let owner = owners.entry(key).or_insert_with(|| refund.clone());
                prop_assert_eq!(&*owner, &refund);
            }
        }
    }

    /// The hash of the tag covers what kinds of fields it is made of and where each ends, so one
    /// field's text cannot stand for another's.
    #[test]
    fn tags_cannot_be_forged(one in names(), other in names()) {
        let both = strategy("both", &[&[Field::Resource, Field::Consumer]], false);
        let resource = strategy("resource", &[&[Field::Resource]], false);
        let consumer = strategy("consumer", &[&[Field::Consumer]], false);
        let single = strategy("single", &[&[Field::Resource], &[Field::Consumer]], true);
        let [region, zone] = ["region", "zone"].map(|name| strategy(name, &[&[attribute(name)]], false));
        let place = |names: &Names| names.group.clone().map_or_else(|| (false, names.resource.clone()), |group| (true, group));
        let same = [
            (tag_text(&resource, &one) == tag_text(&resource, &other), place(&one) == place(&other)),
            (tag_text(&consumer, &one) == tag_text(&consumer, &other), one.consumer == other.consumer),
            (
                tag_text(&both, &one) == tag_text(&both, &other),
                place(&one) == place(&other) && one.consumer == other.consumer,
            ),
            (
                tag_text(&region, &one) == tag_text(&region, &other),
                one.attributes["region"] == other.attributes["region"],
            ),
        ];
        for (tags, fields) in same {
            prop_assert_eq!(tags, fields);
        }
        let kinds = [&both, &resource, &consumer, &single, &region, &zone].map(|rules| tag_text(rules, &one));
        for (index, kind) in kinds.iter().enumerate() {
            prop_assert!(!kinds[..index].contains(kind));
        }
    }
}

/// Keys look as documented, so that people can find them with redis-cli.
#[test]
fn a_key_reads_as_documented() {
    let rules = strategy("tiger-feeding", &[&[Field::Resource], &[Field::Consumer, Field::Resource]], false);
    let keys = keys(&rules, &Names::new("zewtopia.com/tigerfeeding", "b{o}b: 5%|🐯"));
    let tag = braced(&keys[0]).to_owned();
    assert_eq!(keys[0], format!("weir:{{{tag}}}Btiger-feeding:limit-0|Rzewtopia.com/tigerfeeding"));
    let both = "limit-1|Rzewtopia.com/tigerfeeding|Cb%7bo%7db:%205%25%7c%f0%9f%90%af";
    assert_eq!(keys[1], format!("weir:{{{tag}}}Btiger-feeding:{both}"));

    let rules = strategy("edge", &[&[attribute("region"), Field::Resource]], false);
    let attributes = HashMap::from([("region".to_owned(), "eu-1".to_owned())]);
    let key = self::keys(&rules, &Names { attributes, ..Names::new("api", "bob") }).remove(0);
    assert_eq!(key.split_once('}').unwrap().1, "Bedge:limit-0|Rapi|region=eu-1");
}

/// Every byte of a key costs Redis memory, and time at each command.
#[test]
fn keys_are_as_short_as_they_must_be() {
    let fields = [Field::Resource, Field::Consumer, attribute("a"), attribute("b")];
    for count in 0..=fields.len() {
        let rules = strategy("s", &[&fields[..count]], true);
        let attributes = HashMap::from(["a", "b"].map(|name| (name.to_owned(), String::new())));
        let key = keys(&rules, &Names { attributes, ..Names::default() }).remove(0);
        let names = "weir".len() + "s".len() + "limit-0".len() + count.saturating_sub(2);
        assert_eq!(key.len() - names, 9 + 2 * count, "{key}");
        assert!(key.len() - names <= 20, "{key}");
    }
}

#[test]
fn the_longest_key_is_bounded() {
    let name = "n".repeat(MAX_NAME);
    let attributes: Vec<Field> =
        (0..MAX_ATTRIBUTES).map(|index| attribute(&format!("a{index:063}"))).collect();
    let limit = Limit {
        name: name.as_str().into(),
        scope: Scope::new(&[&[Field::Resource, Field::Consumer], &attributes[..]].concat()),
        algorithm: uniform(),
    };
    let rules = Rules::new(&name, vec![limit], false, FailurePolicy::Error).unwrap();
    let worst = "\0".repeat(MAX_PART);
    let attributes = (0..MAX_ATTRIBUTES).map(|index| (format!("a{index:063}"), worst.clone())).collect();
    let longest = Namespace::new(&"n".repeat(MAX_NAMESPACE)).unwrap();
    let length = keys_in(&longest, &rules, &Names { attributes, ..Names::new(&worst, &worst) })[0].len();
    assert!(length <= longest_key() && length > longest_key() - 16, "{length}");
    assert!(longest_key() < 1 << 15, "Redis would take more, but every decision sends its keys");
}

/// Redis' own hash of our keys, tags and all, is the slot that we send them to.
#[test]
fn slots_are_those_of_redis() {
    let node = &support::shared_cluster().nodes()[0];
    let mut connection = node.connection();
    let mut slots = std::collections::HashSet::new();
    for number in 0..300 {
        let names = Names::new(&format!("resource}} {number}"), &format!("{{consumer}}:{number}"));
        for rules in all_rules() {
            let expected = slot(tag(&KeySecret::BUILT_IN, &rules, &names));
            slots.insert(expected);
            for key in keys(&rules, &names) {
                let redis_slot: u16 =
                    redis::cmd("CLUSTER").arg("KEYSLOT").arg(&key).query(&mut connection).unwrap();
                assert_eq!(redis_slot, expected, "{key}");
            }
        }
    }
    assert!(slots.len() > 800, "only {} slots are used", slots.len());
}

/// Keys differ between namespaces in nothing but their first part, which cannot be taken for another namespace's.
#[test]
fn a_namespace_is_the_first_part() {
    let (names, tag) = (Names::new("api", "bob"), 0x5f0c);
    let rules = strategy("edge", &[&[Field::Resource]], false);
    let key = |namespace: &Namespace| {
        let mut key = Vec::new();
        write_key(&mut key, namespace.prefix(tag), &rules, &rules.limits()[0], &names.subject());
        String::from_utf8(key).unwrap()
    };
    let rest = ":{AF8M}Bedge:limit-0|Rapi";
    for text in ["weir", "shop", "a", "0-9", &"z".repeat(MAX_NAMESPACE)] {
        let namespace = Namespace::new(text).unwrap();
        assert_eq!(key(&namespace), format!("{text}{rest}"));
        assert_eq!(namespace.fingerprint_key(), format!("{text}:{{key_secret}}:fingerprint"));
    }
    for text in ["", "Shop", "a:b", "a*", "{a}", "a b", "ä", "a_b", &"z".repeat(MAX_NAMESPACE + 1)] {
        assert!(Namespace::new(text).is_err(), "{text}");
    }
}

/// The probe's keys and the fingerprint are no limit's, whatever strategies and limits are called.
#[test]
fn keys_of_the_monitor_are_unlike_all_others() {
    let fingerprint = Namespace::DEFAULT.fingerprint_key();
    let limit = |name: &str| Limit { name: name.into(), scope: Scope::default(), algorithm: uniform() };
    for (strategy, name) in [("probe", "bucket"), ("probe", "probe"), ("key_secret", "fingerprint")] {
        let rules = Rules::new(strategy, vec![limit(name)], true, FailurePolicy::Error).unwrap();
        let tag = tag(&KeySecret::BUILT_IN, &rules, &Names::default());
        let mut probe = Vec::new();
        key::write_probe_key(&mut probe, Namespace::DEFAULT.prefix(tag), uniform().engine());
        let probe = String::from_utf8(probe).unwrap();
        assert!(probe.starts_with("weir:{") && probe.ends_with("}probe:bucket"), "{probe}");
        for key in keys(&rules, &Names::default()) {
            assert!(key != probe && key != fingerprint, "{key}");
            assert_ne!(braced(&key), "key_secret", "a tag is a hash");
        }
    }
    let node = &support::shared_cluster().nodes()[0];
    let redis_slot: u16 = node.query(&["CLUSTER", "KEYSLOT", &fingerprint]);
    assert_eq!(key::fingerprint_slot(), redis_slot);
}

/// Resources of one group lie together, those of two groups apart, and no group is where a resource of
/// its name is.
#[test]
fn a_group_moves_its_resources_together() {
    let rules = strategy("grouped", &[&[Field::Resource], &[Field::Resource, Field::Consumer]], false);
    let at = |resource: &str, group: Option<&str>| {
        let names = Names { group: group.map(str::to_owned), ..Names::new(resource, "bob") };
        tag(&KeySecret::BUILT_IN, &rules, &names)
    };
    assert_eq!(at("lions", Some("cats")), at("tigers", Some("cats")));
    assert_ne!(at("lions", Some("cats")), at("lions", Some("dogs")));
    assert_ne!(at("lions", Some("cats")), at("lions", None));
    assert_ne!(at("lions", Some("lions")), at("lions", None));
    assert_ne!(at("lions", None), at("tigers", None));
}

/// Without the secret, a caller cannot predict the slot of a name.
#[test]
fn another_secret_is_another_tag() {
    let rules = strategy("secret", &[&[Field::Resource]], false);
    let names = Names::new("resource", "consumer");
    let secrets = ["", "a", "b", "weir built-in id"].map(KeySecret::from_text);
    let mut tags: Vec<u128> = secrets.iter().map(|secret| tag(secret, &rules, &names)).collect();
    tags.push(tag(&KeySecret::BUILT_IN, &rules, &names));
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 5);
    assert_eq!(format!("{:?}", secrets[1]), "KeySecret(…)");
}

/// The most fields that a scope has.
const MAX_FIELDS: usize = 2 + MAX_ATTRIBUTES;

/// The tag's text and the escaped parts with their fields, each at its longest.
fn longest_key() -> usize {
    let part = "|".len() + 3 * MAX_PART;
    let fields = 2 * "R".len() + MAX_ATTRIBUTES * (64 + "=".len());
    MAX_NAMESPACE + ":{}B".len() + TAG_LENGTH + 2 * MAX_NAME + ":".len() + MAX_FIELDS * part + fields
}

fn keys(rules: &Rules, names: &Names) -> Vec<String> {
    keys_in(&Namespace::DEFAULT, rules, names)
}

fn keys_in(namespace: &Namespace, rules: &Rules, names: &Names) -> Vec<String> {
    let tag = tag(&KeySecret::BUILT_IN, rules, names);
    let key = |limit| {
        let mut key = Vec::new();
        write_key(&mut key, namespace.prefix(tag), rules, limit, &names.subject());
        String::from_utf8(key).expect("a key is text")
    };
    rules.limits().iter().map(key).collect()
}

fn tag(secret: &KeySecret, rules: &Rules, names: &Names) -> u128 {
    secret.hash(&tag_text(rules, names))
}

fn tag_text(rules: &Rules, names: &Names) -> Vec<u8> {
    let mut text = Vec::new();
    write_tag(&mut text, rules, &names.subject());
    text
}

fn braced(key: &str) -> &str {
    key.split(['{', '}']).nth(1).expect("a key has braces")
}

/// Strategies whose names, limits and scopes are easily mistaken for one another's.
fn all_rules() -> Vec<Arc<Rules>> {
    let (resource, consumer) = (|| Field::Resource, || Field::Consumer);
    let (region, zone) = (|| attribute("region"), || attribute("zone"));
    vec![
        Arc::new(strategy("both", &[&[resource(), consumer()]], false)),
        Arc::new(strategy("dual", &[&[resource()], &[resource(), consumer()]], false)),
        Arc::new(strategy("1", &[&[consumer()], &[resource(), consumer()]], false)),
        Arc::new(strategy("refund", &[&[resource()], &[resource(), consumer()]], false)),
        Arc::new(strategy("single", &[&[resource()], &[consumer()], &[]], true)),
        Arc::new(strategy("region", &[&[resource(), region()], &[region(), zone(), resource()]], false)),
        Arc::new(strategy("zone", &[&[zone(), consumer()], &[region()]], true)),
        // One limit whose scope was changed: its states lie in one slot.
        Arc::new(strategy("changed", &[&[resource()], &[]], true)),
        Arc::new(strategy("changed", &[&[consumer()], &[]], true)),
        Arc::new(strategy("changed", &[&[region()], &[]], true)),
        Arc::new(strategy("changed", &[&[zone()], &[]], true)),
        Arc::new(strategy("changed", &[&[attribute("r")], &[]], true)),
    ]
}

fn strategy(name: &str, scopes: &[&[Field]], single_slot: bool) -> Rules {
    let limits = numbered_limits(scopes.iter().map(|fields| (fields, uniform())));
    Rules::new(name, limits, single_slot, FailurePolicy::Error).unwrap()
}

fn attribute(name: &str) -> Field {
    Field::Attribute(name.into())
}

fn uniform() -> Algorithm {
    Algorithm::uniform(Micros::from_secs(1)).unwrap()
}

fn names() -> impl Strategy<Value = Names> {
    let group = prop::option::weighted(0.2, text());
    (text(), text(), group, [text(), text()]).prop_map(|(resource, consumer, group, values)| Names {
        resource,
        consumer,
        group,
        attributes: ["region", "zone"].map(str::to_owned).into_iter().zip(values).collect(),
    })
}

/// Few atoms, so that different splits of the same text meet.
fn text() -> impl Strategy<Value = String> {
    let atoms = [
        ":", "|", "|R", "|C", "{", "}", "%", "%7b", "1", "3", "a", "1:a", "\0", "\n", " ", "🐯", "é", "{}",
        "weir:{", "limit-1",
    ];
    prop::collection::vec(prop::sample::select(atoms.to_vec()), 0..4).prop_map(|atoms| atoms.concat())
}

/// The phase of a key is part of what all nodes agree on, so it must never change; and keys are spread
/// over the whole window.
#[test]
fn phases_are_fixed_and_spread() {
    assert_eq!(key::phase(b""), 1172073274448814);
    assert_eq!(key::phase(b"daily:each:window:3:bob"), 2529937916369856);
    const PARTS: u64 = 10;
    let mut keys_in = [0; PARTS as usize];
    for number in 0..10_000 {
        let phase = key::phase(format!("daily:each:window:5:{number:05}").as_bytes());
        assert!(phase < 1 << 52);
        keys_in[(phase % (PARTS * 1_000_000) / 1_000_000) as usize] += 1;
    }
    assert!(keys_in.iter().all(|&keys| (850..1150).contains(&keys)), "{keys_in:?}");
}
