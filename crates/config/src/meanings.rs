//! The meaning of each strategy of the files, as a number. By it, nodes with other limits under one name are found.

use weir_core::checksum::Fnv1a;

use super::yaml_node::{Content, YamlNode};

/// The FNV-1a hash, of 64 bits, of what the files say of each strategy: its own entry and its overrides, without comments,
/// spaces and the order of keys. What live control changes is no part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StrategyMeanings(Vec<(String, u64)>);

impl StrategyMeanings {
    /// Computes the meanings of the strategies of a file's tree.
    pub(super) fn from_tree(tree: &YamlNode) -> Self {
        let overrides = tree.get("overrides").map_or(&[][..], YamlNode::items);
        let meaning = |(key, value): &(YamlNode, YamlNode)| {
            let name = key.text()?;
            let mut sum = Fnv1a::default();
            add(&mut sum, value);
            // Their order counts: the first that fits is taken.
            overrides
                .iter()
                .filter(|item| strategy_of(item) == Some(name))
                .for_each(|item| add(&mut sum, item));
            Some((name.to_owned(), sum.sum()))
        };
        let strategies = tree.get("strategies").map_or(&[][..], YamlNode::entries);
        let mut meanings: Vec<_> = strategies.iter().filter_map(meaning).collect();
        meanings.sort_unstable();
        Self(meanings)
    }

    /// Each strategy, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, hash)| (name.as_str(), *hash))
    }
}

fn strategy_of(item: &YamlNode) -> Option<&str> {
    item.get("strategy").and_then(YamlNode::text)
}

/// Adds a node and all below it. Keys are added in the order of their names.
fn add(sum: &mut Fnv1a, node: &YamlNode) {
    match &node.content {
        Content::Empty | Content::Refused => sum.byte(0),
        Content::Scalar { text, .. } => sum.text(text),
        Content::List(items) => {
            sum.byte(1);
            items.iter().for_each(|item| add(sum, item));
            sum.byte(2);
        }
        Content::Map(entries) => {
            let mut sorted: Vec<_> =
                entries.iter().map(|(key, value)| (key.text().unwrap_or_default(), value)).collect();
            sorted.sort_by_key(|(key, _)| *key);
            sum.byte(3);
            for (key, value) in sorted {
                sum.text(key);
                add(sum, value);
            }
            sum.byte(4);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, ConfigOverrides};

    fn meanings(limit: &str, more: &str) -> Vec<(String, u64)> {
        let text = format!(
            "strategies:\n  s: {{ limits: [{{ {limit} }}] }}\n  t: {{ limits: [{{ name: l, per: [consumer], token_bucket: {{ rate: 1/s }} }}] }}\n{more}"
        );
        let config = Config::parse(&text, "weir.yaml", &ConfigOverrides::default()).unwrap();
        config.meanings.iter().map(|(name, hash)| (name.to_owned(), hash)).collect()
    }

    #[test]
    fn what_a_strategy_means_counts_and_how_it_is_written_does_not() {
        let plain = meanings("name: l, per: [consumer], token_bucket: { rate: 5/s }", "");
        assert_eq!(plain.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["s", "t"]);
        assert_eq!(
            meanings("token_bucket: { rate: 5/s }, name: 'l', per: [consumer]", "# a comment\n"),
            plain
        );
        let other = meanings("name: l, per: [consumer], token_bucket: { rate: 50/s }", "");
        assert!(other[0] != plain[0] && other[1] == plain[1], "only the one that differs");
        let overrides =
            "overrides: [{ strategy: t, consumer: vip, limits: { l: { token_bucket: { rate: 9/s } } } }]\n";
        let tiers = meanings("name: l, per: [consumer], token_bucket: { rate: 5/s }", overrides);
        assert!(tiers[0] == plain[0] && tiers[1] != plain[1]);
        let elsewhere =
            meanings("name: l, per: [consumer], token_bucket: { rate: 5/s }", "server: { workers: 3 }\n");
        assert_eq!(elsewhere, plain);
    }
}
