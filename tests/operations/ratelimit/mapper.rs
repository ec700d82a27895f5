//! Files that rename the metrics of the reference.

use super::{Ratelimit, files};

/// The mappings of the reference, or of Envoy Gateway.
fn known(more: &str) -> String {
    let mut text = "mappings:\n".to_owned();
    for hits in ["total_hits", "near_limit", "over_limit", "within_limit", "shadow_mode"] {
        for (stars, labels) in
            [("*.*", "{ domain: $1, key1: $2 }"), ("*.*.*", "{ domain: $1, key1: $2, key2: $3 }")]
        {
            text += &format!(
                "  - {{ match: ratelimit.service.rate_limit.{stars}.{hits}, name: ratelimit_service_rate_limit_{hits}, \
                 timer_type: histogram, labels: {labels} }}\n"
            );
        }
    }
    text += "  - { match: ratelimit_server.*.response_time, name: ratelimit_service_response_time_seconds, labels: { grpc_method: $1 } }\n";
    text +=
        "  - { match: ratelimit.service.config_load_success, name: ratelimit_service_config_load_success }\n";
    text += more;
    text += "  - { match: ., match_type: regex, action: drop, name: dropped }\n";
    text
}

/// What the log says of such a file.
fn said(file: Option<&str>) -> Vec<String> {
    let folder = files(super::FILE);
    let path = folder.path().join("mapper.yaml");
    if let Some(text) = file {
        std::fs::write(&path, text).unwrap();
    }
    let started = Ratelimit::start(&[("PROMETHEUS_MAPPER_YAML", &path.display().to_string())]);
    let (_, log) = started.stop();
    let lines = log.lines().filter(|line| line.contains("PROMETHEUS_MAPPER_YAML") && line.contains("WARN"));
    lines.map(str::to_owned).collect()
}

#[test]
fn one_line_names_the_first_family_that_is_missing() {
    assert!(said(None).is_empty(), "Envoy Gateway names a file that need not be there");
    assert!(said(Some(&known(""))).is_empty());
    let own =
        "  - { match: ratelimit.service.rate_limit.*.*.over_limit, name: mine_over, labels: { domain: $1 } }
  - { match: ratelimit.service.rate_limit.*.*.total_hits, name: mine_hits, labels: { domain: $1 } }
";
    let lines = said(Some(&known(own)));
    assert!(lines.len() == 1 && lines[0].contains("has mine_over{domain}, which Weir lacks"), "{lines:?}");
    // The name is known, and the labels are not.
    let labels = "  - { match: a.*, name: ratelimit_service_rate_limit_over_limit, labels: { domain: $1, user: $2 } }\n";
    let lines = said(Some(&known(labels)));
    assert!(
        lines[0].contains("has ratelimit_service_rate_limit_over_limit{domain,user}, which"),
        "{lines:?}"
    );
}
