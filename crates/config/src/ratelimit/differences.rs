//! What is not as in the reference, beside its variables. `weir ratelimit --explain` prints it, and docs/envoy.md has it in
//! its table of differences.

/// Each difference: what it is about, what the reference does, and what Weir does.
pub const RATELIMIT_DIFFERENCES: [(&str, &str, &str); 10] = [
    ("SIGHUP", "ends the process", "reads the files again, and goes on"),
    (
        "a second YAML document in a file, a key given twice",
        "the first document counts, and the last of the keys",
        "are mistakes of the file, which name the place",
    ),
    (
        "`y`, `n`, `yes`, `on` and the like without quotes, as keys of `metadata`",
        "are `true` and `false` (YAML 1.1)",
        "are texts",
    ),
    (
        "`detailed_metric`, `value_to_metric`",
        "metrics by values of requests",
        "no values of requests in metrics; the log and `weir check` warn of each rule that asks for it",
    ),
    ("`/stats`, `/debug/pprof`", "`name: value` lines; profiles", "JSON with the metrics of `/metrics`; 404"),
    (
        "`ratelimit_service_response_time_seconds`",
        "buckets from 5 ms to 10 s; all calls",
        "buckets from 5 µs to 1 s, without 25 and 250 ms; without calls that are refused before they are decided",
    ),
    (
        "`…_DOMAIN_domain_not_found`",
        "a metric for each domain that a request names",
        "`weir_envoy_unknown_domain_total` for all, as no caller may make metrics",
    ),
    (
        "hits on limits that come in requests",
        "are in the `ratelimit_*` families, by the entries of the request",
        r#"are in `weir_envoy_hits_total{rule="override"}` of their domain"#,
    ),
    (
        "`…_over_limit_with_local_cache`, `ratelimit_localcache_*`",
        "metrics of the local cache",
        "none; denials are cached in any case",
    ),
    ("`EXTRA_TAGS`", "labels on all metrics", "no further labels: add them where metrics are scraped"),
];
