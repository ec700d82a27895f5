//! The file that renames the metrics of the reference: a mapping of statsd_exporter. Weir has fixed names, those of the
//! reference's own file and of Envoy Gateway's.

use std::path::Path;

use weir_config::foreign::{Content, MistakeReport, YamlNode, compose_foreign, read_bounded, shortened};

use super::given::RatelimitGiven;

/// The largest such file, in bytes.
const MAX_MAPPER_FILE: usize = 1 << 20;

const HIT_LABELS: &[&[&str]] = &[&["domain", "key1"], &["domain", "key1", "key2"]];

/// The families that Weir has, each with the sets of labels that its series have.
pub const REFERENCE_FAMILIES: [(&str, &[&[&str]]); 18] = [
    ("ratelimit_service_rate_limit_total_hits", HIT_LABELS),
    ("ratelimit_service_rate_limit_over_limit", HIT_LABELS),
    ("ratelimit_service_rate_limit_near_limit", HIT_LABELS),
    ("ratelimit_service_rate_limit_within_limit", HIT_LABELS),
    ("ratelimit_service_rate_limit_shadow_mode", HIT_LABELS),
    ("ratelimit_service_rate_limit_over_limit_with_local_cache", HIT_LABELS),
    ("ratelimit_localcache_hitCount", &[&[]]),
    ("ratelimit_localcache_missCount", &[&[]]),
    ("ratelimit_localcache_lookupCount", &[&[]]),
    ("ratelimit_service_should_rate_limit_error", &[&["err_type"]]),
    ("ratelimit_service_total_requests", &[&["grpc_method"]]),
    ("ratelimit_service_response_time_seconds", &[&["grpc_method"]]),
    ("ratelimit_service_config_load_success", &[&[]]),
    ("ratelimit_service_config_load_error", &[&[]]),
    ("ratelimit_service_global_shadow_mode", &[&[]]),
    ("ratelimit_redis_pool_cx_active", &[&[]]),
    ("ratelimit_redis_pool_cx_total", &[&[]]),
    ("ratelimit_redis_pool_cx_local_close", &[&[]]),
];

/// Returns what to say of the file of PROMETHEUS_MAPPER_YAML, if anything. A launcher may name a file that is not there.
pub(super) fn note(given: &RatelimitGiven) -> Option<String> {
    let path = Path::new(given.text("PROMETHEUS_MAPPER_YAML")?);
    if !path.try_exists().unwrap_or(true) {
        return None;
    }
    let said = match read_bounded(path, MAX_MAPPER_FILE).map(String::from_utf8) {
        Ok(Ok(text)) => format!("{:?} has {}, which Weir lacks", path, first_lacking(&text)?),
        Ok(Err(_)) => format!("{path:?} is not UTF-8"),
        Err(reason) => reason,
    };
    Some(format!("PROMETHEUS_MAPPER_YAML: {said}; names of metrics do not depend on this file"))
}

/// Returns the first family of a mapping that Weir lacks, with its labels.
fn first_lacking(text: &str) -> Option<String> {
    let root = compose_foreign(text, &mut MistakeReport::default())?;
    let Content::List(mappings) = &value(&root, "mappings")?.content else { return None };
    mappings.iter().filter(|mapping| scalar(mapping, "action") != Some("drop")).find_map(lacking)
}

fn lacking(mapping: &YamlNode) -> Option<String> {
    let name = scalar(mapping, "name")?;
    let mut labels: Vec<&str> = match value(mapping, "labels").map(|labels| &labels.content) {
        Some(Content::Map(labels)) => labels.iter().filter_map(|(key, _)| text(key)).collect(),
        _ => Vec::new(),
    };
    labels.sort_unstable();
    let is_known = REFERENCE_FAMILIES.iter().any(|(known, sets)| *known == name && sets.contains(&&*labels));
    let shown = |text: &str| shortened(text).escape_debug().to_string();
    let labels: Vec<String> = labels.iter().map(|label| shown(label)).collect();
    (!is_known).then(|| format!("{}{{{}}}", shown(name), labels.join(",")))
}

fn value<'n>(node: &'n YamlNode, name: &str) -> Option<&'n YamlNode> {
    let Content::Map(entries) = &node.content else { return None };
    entries.iter().find(|(key, _)| text(key) == Some(name)).map(|(_, value)| value)
}

fn scalar<'n>(node: &'n YamlNode, name: &str) -> Option<&'n str> {
    value(node, name).and_then(text)
}

fn text(node: &YamlNode) -> Option<&str> {
    match &node.content {
        Content::Scalar { text, .. } => Some(text),
        _ => None,
    }
}
