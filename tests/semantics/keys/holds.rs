//! Keys of holds: what is held of a limit, and the records of ids.

use weir_core::key::{write_hold_key, write_parts_key};

use super::*;

proptest! {
    #![proptest_config(config())]

    /// Two records of holds share a key only if id, strategy, resource and consumer are the same. Parts of two limits share
    /// one only if the limits' states do. No key has two of these meanings, and all are plain and bounded.
    #[test]
    fn no_key_has_two_meanings(all in prop::collection::vec((names(), text()), 2..20)) {
        let mut owners = HashMap::new();
        for rules in all_rules() {
            for (names, id) in &all {
                let prefix = Namespace::DEFAULT.prefix(tag(&KeySecret::BUILT_IN, &rules, names));
                let mut record = Vec::new();
                write_hold_key(&mut record, prefix, &rules, &names.subject(), id);
                let whose = [rules.name(), names.resource.as_str(), names.consumer.as_str(), id.as_str()];
                let mut meant = vec![(record, format!("a hold of {whose:?}"))];
                for (limit, state) in rules.limits().iter().zip(keys(&rules, names)) {
                    let mut parts = Vec::new();
                    write_parts_key(&mut parts, prefix, &rules, limit, &names.subject());
                    prop_assert_eq!(parts.len(), state.len() + 1);
                    meant.push((parts, format!("parts of {state}")));
                    meant.push((state.clone().into_bytes(), format!("the state {state}")));
                }
                for (key, meaning) in meant {
                    let key = String::from_utf8(key).expect("a key is text");
                    prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
                    prop_assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1));
                    let owner = owners.entry(key).or_insert_with(|| meaning.clone());
                    prop_assert_eq!(&*owner, &meaning);
                }
            }
        }
    }
}
