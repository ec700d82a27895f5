//! The pages of the configuration have every key, with the default and the bounds that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;
use weir::features::{schema, sections};
use weir_config::{SectionSpec, reference_table};

use super::keys::mappings;
use crate::support::clients::{files, root};

/// The headings of the pages, and the mapping that each is about.
const HEADINGS: [(&str, &str); 46] = [
    ("The file", ""),
    ("server", "/properties/server"),
    ("server.identity", "/$defs/identity"),
    ("server.identity.jwt", "/$defs/jwt/items"),
    ("server.identity.forwarded_client_cert", "/$defs/forwarded"),
    ("authorize", "/$defs/authorize/items"),
    ("server.limits", "/properties/server/properties/limits"),
    ("server.tls", "/$defs/server_tls"),
    ("server.tls.client_crl", "/$defs/server_tls/properties/client_crl"),
    ("control", "/properties/control"),
    ("store", "/$defs/store"),
    ("store.memory", "/$defs/store/properties/memory"),
    ("store.redis", "/$defs/redis"),
    ("store.redis.tls", "/$defs/redis/properties/tls"),
    ("strategies", "/$defs/strategies/additionalProperties"),
    ("strategies.approximate", "/$defs/approximate"),
    ("strategies.hold", "/$defs/hold"),
    ("limits", "/$defs/limits/items"),
    ("limits.ban", "/$defs/ban"),
    ("uniform", "/$defs/uniform"),
    ("token_bucket, gcra, leaky_bucket", "/$defs/bucket"),
    ("leaky_queue", "/$defs/leaky_queue"),
    ("warm_up", "/$defs/warm_up"),
    ("fixed_window", "/$defs/fixed_window"),
    ("interval_refill", "/$defs/interval_refill"),
    ("sliding_window", "/$defs/sliding_window"),
    ("bucketed_window", "/$defs/bucketed_window"),
    ("sliding_log", "/$defs/sliding_log"),
    ("concurrency", "/$defs/concurrency"),
    ("concurrency.sampling", "/$defs/sampling"),
    ("concurrency.partitions", "/$defs/partitions"),
    ("resources", "/$defs/resources/items"),
    ("groups", "/$defs/groups/additionalProperties"),
    ("overrides", "/$defs/overrides/items"),
    ("access", "/$defs/access"),
    ("queues", "/$defs/queues/additionalProperties"),
    ("queues.outcomes", "/$defs/queues/additionalProperties/properties/outcomes/then"),
    ("messages", "/properties/messages"),
    ("envoy", "/properties/envoy"),
    ("envoy.xds", "/$defs/envoy_xds"),
    ("envoy.xds.tls", "/$defs/envoy_xds/properties/tls"),
    ("envoy.rules", "/$defs/envoy_rules/items"),
    ("envoy.all_or_none", "/$defs/envoy_all_or_none/items"),
    ("log", "/properties/log"),
    ("log.decisions", "/properties/log/properties/decisions"),
    ("usage", "/properties/usage"),
];

/// The algorithms that an override may name; a limit's table has them.
const ALGORITHMS_AGAIN: &str = "/$defs/changes/additionalProperties";

/// `docs/configuration.md`, and the pages by section beside it.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs/configuration"), ".md");
    pages.push(root().join("docs/configuration.md"));
    pages
}

/// Default and bounds of each key in the tables below a heading.
type Rows<'p> = BTreeMap<&'p str, (&'p str, &'p str)>;

fn tables(page: &str) -> BTreeMap<&str, Rows<'_>> {
    let mut tables: BTreeMap<&str, Rows<'_>> = BTreeMap::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title;
            continue;
        }
        let Some((key, rest)) = line.strip_prefix("| `").and_then(|row| row.split_once("` |")) else {
            continue;
        };
        let cells: Vec<&str> = rest.split('|').map(str::trim).collect();
        if let [default, bounds, meaning, ""] = cells[..] {
            assert!(!meaning.is_empty(), "{heading}: {key} means nothing");
            assert!(
                tables.entry(heading).or_default().insert(key, (default, bounds)).is_none(),
                "{key} twice"
            );
        }
    }
    tables
}

/// Returns the number of entries as the page says it; nothing if it is unbounded, or too large for people to read.
fn counts(key: &Value) -> Option<String> {
    let (min, max) = match &key["anyOf"] {
        Value::Array(ways) if !ways[1]["pattern"].as_str()?.contains("KiB") => {
            (ways[0]["minimum"].as_u64()?, ways[0]["maximum"].as_u64()?)
        }
        _ => (key["minItems"].as_u64().filter(|&min| min > 0)?, key["maxItems"].as_u64()?),
    };
    (max < 1 << 50).then(|| format!("{min} to {max}"))
}

#[test]
fn the_page_has_every_key_with_its_default_and_bounds() {
    let page: String = pages().iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let tables = tables(&page);
    let mut schema = schema();
    // docs/http.md has the section of the HTTP listener.
    drop(schema["properties"].as_object_mut().and_then(|sections| sections.remove("http")));
    let resolve = |key: &'_ Value| match key["$ref"].as_str() {
        Some(to) => schema.pointer(to.trim_start_matches('#')).unwrap().clone(),
        None => key.clone(),
    };
    for (heading, place) in HEADINGS {
        let rows = tables.get(heading).unwrap_or_else(|| panic!("## {heading} has no table"));
        let mapping = schema.pointer(place).unwrap();
        let properties = mapping["properties"].as_object().unwrap();
        let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(rows.keys().copied().collect::<BTreeSet<_>>(), names, "## {heading}");
        let required = mapping["required"].as_array().unwrap();
        for (name, key) in properties {
            let (default, bounds) = rows[name.as_str()];
            let wanted = match &key["default"] {
                Value::Null if required.iter().any(|required| required == name) => "needed".to_owned(),
                Value::Null => default.to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(default, wanted, "the default of {name} in ## {heading}");
            if let Some(counts) = counts(&resolve(key)) {
                assert!(bounds.contains(&counts), "## {heading}: {name} is {counts}, not {bounds}");
            }
        }
    }
    let mut places = BTreeSet::new();
    mappings(&schema, "", &mut places);
    places.remove(ALGORITHMS_AGAIN);
    let documented: BTreeSet<String> = HEADINGS.iter().map(|(_, place)| (*place).to_owned()).collect();
    assert_eq!(places, documented, "a new mapping needs a table, and a line in HEADINGS");
}

/// A table whose links are those of a page in `docs`, for a page in the folder below.
fn one_folder_below(table: &str) -> String {
    let links = table.replace("](configuration/", "](\u{0}").replace("](#", "](\u{0}#");
    links.replace("](", "](../").replace("](../\u{0}", "](")
}

/// The table of each section, by its heading. docs/http.md has those of the HTTP listener.
fn reference() -> Vec<(String, String)> {
    let own = weir_config::reference().into_iter().map(|(heading, table)| (heading.to_owned(), table));
    let of_features = sections().into_iter().flat_map(SectionSpec::rows);
    let of_features = of_features.filter(|(heading, _)| !heading.starts_with("http"));
    own.chain(of_features.map(|(heading, rows)| (heading, reference_table(&rows)))).collect()
}

/// A page with the tables of [`reference`] below those headings that it has, and how many these are.
fn with_the_tables_of_settings(page: &str) -> (String, usize) {
    let (mut page, mut tables) = (page.to_owned(), 0);
    for (heading, table) in reference() {
        let heading = format!("\n## {heading}\n");
        let Some(section) = page.find(&heading) else { continue };
        let begin =
            page[section..].find("\n| key | default |").unwrap_or_else(|| panic!("no table in {heading:?}"));
        let begin = section + begin + 1;
        let end = page[begin..].find("\n\n").map_or(page.len(), |end| begin + end + 1);
        page.replace_range(begin..end, &one_folder_below(&table));
        tables += 1;
    }
    (page, tables)
}

/// `UPDATE_DOCS=1` writes them.
#[test]
#[allow(clippy::disallowed_methods)] // the switch of whoever runs the test
fn the_tables_of_settings_are_those_of_the_table() {
    let mut found = 0;
    for file in pages() {
        let page = std::fs::read_to_string(&file).unwrap();
        let (wanted, tables) = with_the_tables_of_settings(&page);
        found += tables;
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &wanted).unwrap();
        }
        let wrong = page.lines().zip(wanted.lines()).find(|(page, wanted)| page != wanted);
        let advice = "UPDATE_DOCS=1 cargo test --workspace --test operations config::schema::documentation writes them";
        assert_eq!(wrong, None, "{}, and the table of settings; {advice}", file.display());
        assert_eq!(page.lines().count(), wanted.lines().count(), "{advice}");
    }
    assert_eq!(found, reference().len(), "each table of settings has its heading on one page");
}
