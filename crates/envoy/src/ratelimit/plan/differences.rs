//! Differences from the reference, beside its variables. `weir ratelimit --explain` prints it, and docs/envoy.md has it in
//! its table of differences.

/// Each difference: what it is about, what the reference does, and what Weir does.
pub const RATELIMIT_DIFFERENCES: [(&str, &str, &str); 12] = [
    ("SIGHUP", "ends the process", "reloads the files"),
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
    (
        "`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`, two descriptors that are over",
        "the first one is over",
        "both are",
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
        r#"are in them under `key1="override"` of their domain, as no caller may make metrics"#,
    ),
    (
        "`ratelimit_localcache_*`",
        "eight metrics of the local cache",
        "`hitCount`, `missCount` and `lookupCount` of the cache of denials, which is on in any case",
    ),
    (
        "`…_over_limit_with_local_cache`",
        "a metric for each rule, with its entries in the name",
        "`ratelimit_service_rate_limit_over_limit_with_local_cache` with the labels of the other families",
    ),
    (
        "`EXTRA_TAGS`",
        "labels of all metrics; a name that a metric has already is there twice",
        "labels of all metrics; a metric that has such a label keeps its own",
    ),
];
