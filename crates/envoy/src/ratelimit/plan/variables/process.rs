//! Logs, metrics, traces and health.

use super::VariableKind::{Boolean, Duration, Float, Text, Words};
use super::{COUNT, PORT, RatelimitVariable, ignored, mapped, unsupported};

const STATSD: &str = "statsd is not sent: scrape `/metrics` on DEBUG_PORT or PROMETHEUS_ADDR";
const MOGRIFIERS: &str = "statsd is not sent, so the variables DOG_STATSD_MOGRIFIER_… mean nothing: scrape `/metrics` on DEBUG_PORT or PROMETHEUS_ADDR";
const TRACES: &str = "traces are not sent";

pub(super) fn variables() -> Vec<RatelimitVariable> {
    let mut all = vec![
        mapped(
            "LOG_LEVEL",
            "WARN",
            Words(&["panic", "fatal", "error", "warn", "warning", "info", "debug", "trace"]),
            "the level of the log; `panic` and `fatal` are `error`",
        ),
        mapped("LOG_FORMAT", "text", Words(&["text", "json"]), "the format of the log"),
        mapped(
            "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
            "false",
            Boolean,
            "`/healthcheck` fails while there is no domain",
        ),
    ];
    all.extend(metrics());
    all.extend(statsd());
    all.extend(traces());
    all
}

fn metrics() -> Vec<RatelimitVariable> {
    vec![
        mapped("USE_PROMETHEUS", "false", Boolean, "metrics on PROMETHEUS_ADDR too"),
        mapped("PROMETHEUS_ADDR", ":9090", Text, "the address of these metrics"),
        mapped("PROMETHEUS_PATH", "/metrics", Text, "the path of these metrics"),
        ignored(
            "PROMETHEUS_MAPPER_YAML",
            "",
            Text,
            "names of metrics do not depend on a mapping; one line names a family of it that Weir lacks",
        ),
        ignored(
            "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS",
            "false",
            Boolean,
            "response times are in seconds",
        ),
        mapped("DISABLE_STATS", "false", Boolean, "PROMETHEUS_ADDR is not opened"),
        ignored("STATS_FLUSH_INTERVAL", "10s", Duration, "metrics are current whenever they are scraped"),
        mapped("EXTRA_TAGS", "", Text, "labels of every metric, `name:value` with commas between them"),
    ]
}

fn statsd() -> Vec<RatelimitVariable> {
    vec![
        unsupported("USE_STATSD", "true", Boolean, STATSD),
        ignored("STATSD_HOST", "localhost", Text, STATSD),
        ignored("STATSD_PORT", "8125", PORT, STATSD),
        unsupported("USE_DOG_STATSD", "false", Boolean, STATSD),
        ignored("USE_DOG_STATSD_MOGRIFIERS", "", Text, MOGRIFIERS),
    ]
}

fn traces() -> Vec<RatelimitVariable> {
    vec![
        unsupported("TRACING_ENABLED", "false", Boolean, TRACES),
        ignored("TRACING_SERVICE_NAME", "RateLimit", Text, TRACES),
        ignored("TRACING_SERVICE_NAMESPACE", "", Text, TRACES),
        ignored("TRACING_SERVICE_INSTANCE_ID", "", Text, TRACES),
        ignored("TRACING_EXPORTER_PROTOCOL", "http", Text, TRACES),
        ignored("TRACING_SAMPLING_RATE", "1", Float, TRACES),
        ignored("OTEL_EXPORTER_OTLP_ENDPOINT", "", Text, TRACES),
        ignored("MEMCACHE_HOST_PORT", "", Text, MEMCACHE),
        ignored("MEMCACHE_SRV", "", Text, MEMCACHE),
        ignored("MEMCACHE_SRV_REFRESH", "0", Duration, MEMCACHE),
        ignored("MEMCACHE_MAX_IDLE_CONNS", "2", COUNT, MEMCACHE),
        ignored("MEMCACHE_TLS", "false", Boolean, MEMCACHE),
        ignored("MEMCACHE_TLS_CLIENT_CERT", "", Text, MEMCACHE),
        ignored("MEMCACHE_TLS_CLIENT_KEY", "", Text, MEMCACHE),
        ignored("MEMCACHE_TLS_CACERT", "", Text, MEMCACHE),
        ignored("MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", Boolean, MEMCACHE),
    ]
}

const MEMCACHE: &str = "Weir does not count in memcached";
