//! The settings of the section `envoy` itself, in the order of the outputs.

use weir_config::{FeatureSetting, SettingForm};

use super::MAX_ENVOY_RULES;

/// All of them.
pub(super) const SETTINGS: &[FeatureSetting] = &[
    CONFIG,
    MERGE_DOMAINS,
    ISOLATE_DOMAINS,
    MAX_RULES,
    OVERRIDES_IN_REQUEST,
    HEADERS,
    LIMIT_HEADER,
    REMAINING_HEADER,
    RESET_HEADER,
    STANDARD_HEADERS,
    DYNAMIC_METADATA,
    NEAR_LIMIT_RATIO,
    REFERENCE_METRICS,
    COUNT_REJECTED,
    STOP_WHEN_OVER,
    SHADOW_MODE,
    QUOTA_MODE,
    XDS,
    RULES,
    ALL_OR_NONE,
];

pub(super) const CONFIG: FeatureSetting = FeatureSetting::new(
    "config",
    SettingForm::File("none"),
    "The directory of Envoy's rate limit files, in the format of envoyproxy/ratelimit.",
)
.flag("envoy_config")
.more(
    "Without it, every request of Envoy gets an error: no configuration is loaded. With it, `strategies` \
                   may be omitted.",
);
pub(super) const MERGE_DOMAINS: FeatureSetting = FeatureSetting::new(
    "merge_domains",
    SettingForm::Switch,
    "Whether several of Envoy's files may define the same domain.",
)
.or("false")
.flag("envoy_merge_domains");
pub(super) const ISOLATE_DOMAINS: FeatureSetting = FeatureSetting::new(
    "isolate_domains",
    SettingForm::Switch,
    "Whether a mistake in the files concerns only its own domain, which goes on with its last good version.",
)
.or("false")
.more("Otherwise it refuses all files. A domain that never had a good version gets `FAILED_PRECONDITION`.");
pub(super) const MAX_RULES: FeatureSetting = FeatureSetting::new(
        "max_rules",
        SettingForm::Count(1, 10 * MAX_ENVOY_RULES as u64),
        "How many rules the files, or the sets of a control plane, may have together.",
    ).or("100000").more("A rule is an entry with a limit; those that only lead to it are not counted, and there may be ten for each \
                   rule. Domains are counted in the order of their names, or of their files: one with which there are more is \
                   refused, and named.");
pub(super) const OVERRIDES_IN_REQUEST: FeatureSetting = FeatureSetting::new(
    "overrides_in_request",
    SettingForm::Switch,
    "Whether a request may contain its own limit.",
)
.or("true");
pub(super) const HEADERS: FeatureSetting = FeatureSetting::new(
    "headers",
    SettingForm::Switch,
    "Whether answers have headers with its limit for the client, of the descriptor that limits most.",
)
.or("false");
pub(super) const LIMIT_HEADER: FeatureSetting = FeatureSetting::new(
    "limit_header",
    SettingForm::HeaderName,
    "The name of the header with the requests per unit.",
)
.or("RateLimit-Limit");
pub(super) const REMAINING_HEADER: FeatureSetting = FeatureSetting::new(
    "remaining_header",
    SettingForm::HeaderName,
    "The name of the header with the requests that still pass.",
)
.or("RateLimit-Remaining");
pub(super) const RESET_HEADER: FeatureSetting = FeatureSetting::new(
    "reset_header",
    SettingForm::HeaderName,
    "The name of the header with the seconds until the limit is full again.",
)
.or("RateLimit-Reset");
pub(super) const STANDARD_HEADERS: FeatureSetting = FeatureSetting::new(
        "standard_headers",
        SettingForm::Switch,
        "Whether answers have the fields `RateLimit` and `RateLimit-Policy` of [http.md](http.md) for the client.",
    ).or("false").more("They are for the same descriptor as `headers`, and may stand beside those.");
pub(super) const DYNAMIC_METADATA: FeatureSetting = FeatureSetting::new(
    "dynamic_metadata",
    SettingForm::Switch,
    "Whether answers have dynamic metadata for Envoy's other filters: the request and its limits.",
)
.or("false")
.more("It contains the `metadata` of the matched rules.");
pub(super) const NEAR_LIMIT_RATIO: FeatureSetting = FeatureSetting::new(
    "near_limit_ratio",
    SettingForm::Part,
    "The part of a limit above which hits count as near it in the metrics.",
)
.or("0.8");
pub(super) const REFERENCE_METRICS: FeatureSetting = FeatureSetting::new(
    "reference_metrics",
    SettingForm::Switch,
    "Whether the metrics have those of envoyproxy/ratelimit too, with its names and labels.",
)
.or("false")
.more("`weir ratelimit` has them in any case: see [envoy.md](envoy.md#metrics-of-the-reference).");
pub(super) const COUNT_REJECTED: FeatureSetting = FeatureSetting::new(
        "count_rejected",
        SettingForm::Switch,
        "Whether denied hits are charged too by all rules that can, as envoyproxy/ratelimit does.",
    ).or("false").flag("envoy_count_rejected").more("These are rules with `fixed_window`, the default, and `sliding_log`, and limits in requests. A rule or an entry of \
                   `rules` with a `count_rejected` of its own keeps it. Such rules give no hits back. See \
                   [envoy.md](envoy.md#charges).");
pub(super) const STOP_WHEN_OVER: FeatureSetting = FeatureSetting::new(
        "stop_when_over",
        SettingForm::Switch,
        "Whether one descriptor that is over its limit keeps the others of its request from being charged.",
    ).or("false").more("The limits are looked at before they are charged, so a request with several descriptors asks the store twice, \
                   and requests at the same time may still be charged in part. Bills are charged in any case. See \
                   [envoy.md](envoy.md#charges).");
pub(super) const SHADOW_MODE: FeatureSetting = FeatureSetting::new(
    "shadow_mode",
    SettingForm::Switch,
    "Whether nothing is denied; the statuses in the answer still show what the limits say.",
)
.or("false");
pub(super) const QUOTA_MODE: FeatureSetting = FeatureSetting::new(
    "quota_mode",
    SettingForm::Switch,
    "Whether a request is over its limit only if all its descriptors are.",
)
.or("false");
pub(super) const XDS: FeatureSetting = FeatureSetting::new(
    "xds",
    SettingForm::Defined("envoy_xds", "none"),
    "A control plane that sends the domains, in place of `config`.",
);
pub(super) const RULES: FeatureSetting = FeatureSetting::new(
        "rules",
        SettingForm::Defined("envoy_rules", "none"),
        "How rules count, where their files or the control plane cannot say it: a list of entries.",
    ).at_reload().more("Each has `domain` and `path` of the rules, and `algorithm`, `burst`, `count_rejected`, `unit_multiplier`, \
                `on_store_failure`, `bill` or `max_debt`, as in files, or `approximate`: see [envoy.md](envoy.md#overlay).");
pub(super) const ALL_OR_NONE: FeatureSetting = FeatureSetting::new(
        "all_or_none",
        SettingForm::Defined("envoy_all_or_none", "none"),
        "Domains whose descriptors are charged together, all of them or none: a list of entries.",
    ).more("Each has `domain`, and with `by` the keys of the entries whose values descriptors have in common that are decided \
                together; `by: []` is the whole request. A denied request then charges none of them. It renames the keys of such \
                limits, which start full. See [envoy.md](envoy.md#charges).");
