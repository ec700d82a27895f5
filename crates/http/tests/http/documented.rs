//! docs/http.md has every setting, every key of a check, every metric and every status.

use std::collections::BTreeSet;

use weir_http::HttpFeature;
use weir_node::feature::Feature as _;

use super::support::{STRATEGIES, TestNode};

const PAGE: &str = include_str!("../../../../docs/http.md");

/// The first cells of the rows below a heading, without their backquotes, and the rows.
fn rows(heading: &str) -> Vec<(String, Vec<String>)> {
    let section =
        PAGE.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no ## {heading}")).1;
    let section = section.split("\n## ").next().unwrap();
    let cells = |row: &str| row.split('|').skip(1).map(|cell| cell.trim().to_owned()).collect();
    let rows =
        section.lines().filter(|line| line.starts_with("| `")).map(|row| -> Vec<String> { cells(row) });
    rows.map(|cells| (cells[0].trim_matches('`').to_owned(), cells)).collect()
}

#[test]
fn settings_have_the_defaults_and_bounds_of_the_page() {
    let sections = HttpFeature.settings().sections;
    let documented = rows("Bounds and settings");
    let mut names: BTreeSet<String> = documented.iter().map(|(name, _)| name.clone()).collect();
    for (group, settings) in sections.iter().flat_map(|section| section.rows()) {
        for setting in settings {
            let path = format!("{group}.{}", setting.key);
            let path = path.strip_prefix("http.").unwrap();
            assert!(names.remove(path), "{path} is not on the page");
            let (_, cells) = documented.iter().find(|(name, _)| name == path).unwrap();
            assert_eq!(cells[1], setting.default.clone().unwrap_or_default(), "{path}");
            assert_eq!(cells[2], setting.bounds, "{path}");
            assert_eq!(cells[3], setting.about, "{path}");
        }
    }
    for key in sections.iter().flat_map(|section| section.keys) {
        assert!(names.remove(key.name), "{} is not on the page", key.name);
    }
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn checks_have_the_keys_of_the_page() {
    let checks = HttpFeature.settings().sections[0].keys.iter().find(|key| key.name == "checks").unwrap();
    let schema = (checks.schema)();
    let properties = schema["additionalProperties"]["properties"].as_object().unwrap();
    let known: BTreeSet<String> = properties.keys().cloned().collect();
    let documented = rows("Proxies").into_iter().filter(|(_, cells)| cells.len() == 4);
    let documented: BTreeSet<String> =
        documented.map(|(name, _)| name).filter(|name| !name.contains('/')).collect();
    assert_eq!(documented, known);
}

#[test]
fn the_page_has_the_metrics_of_the_listener() {
    let node = TestNode::start(&format!(
        "{STRATEGIES}http: {{ listen: '127.0.0.1:0', checks: {{ api: {{ proxy: caddy, resource: two, consumer: address }} }} }}"
    ));
    let page = node.metrics();
    let shown: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter(|line| line.starts_with("weir_http_"))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    let documented: BTreeSet<String> =
        rows("Metrics of the listener").into_iter().map(|(name, _)| name).collect();
    assert_eq!(documented, shown);
    // Each value of a label is there from the start.
    for reason in ["connections", "budget", "idle", "slow_headers", "slow_body", "slow_reader"] {
        assert!(
            page.contains(&format!("weir_http_refused_total{{reason=\"{reason}\"}} 0")),
            "{reason}\n{page}"
        );
        assert!(PAGE.contains(&format!("`{reason}`")), "{reason}");
    }
}

/// The recipes ask for checks that are there.
#[test]
fn the_configuration_of_the_recipes_is_valid() {
    let file = include_str!("../../../../deploy/http/weir.yaml");
    let config = super::support::parsed(file).unwrap();
    assert!(config.sections.iter().any(|section| section.name() == "http"));
    for (recipe, check) in [
        (include_str!("../../../../deploy/http/nginx.conf"), "nginx"),
        (include_str!("../../../../deploy/http/Caddyfile"), "caddy"),
    ] {
        assert!(recipe.contains(&format!("/check/{check}")), "{check}");
    }
}
