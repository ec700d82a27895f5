//! The table's section `envoy`: Envoy's rate limit service.

use std::path::PathBuf;

use super::super::all_or_none::AllOrNone;
use super::super::envoy_layout::EnvoyLayout;
use super::super::overlay::EnvoyOverlay;
use super::kinds::{Boolean, FilePath, Optional, Ratio};
use super::numbers::Count;
use super::texts::HeaderName;
use super::value_kind::ValueKind;
use super::xds::{XdsConfig, xds};
use super::{Applies, Outside, Setting, section};

/// The default of `max_rules`.
pub const MAX_ENVOY_RULES: usize = 100_000;

fn rules() -> Setting {
    let about = "How rules count, where their files or the control plane cannot say it: a list of entries.";
    let more = "Each has `domain` and `path` of the rules, and `algorithm`, `burst`, `count_rejected`, `unit_multiplier`, \
                `on_store_failure`, `bill` or `max_debt`, as in files, or `approximate`: see [envoy.md](envoy.md#overlay).";
    Setting {
        unset: "none",
        more,
        applies: Applies::AtReload,
        ..Setting::other("rules", about, ValueKind::Defined("envoy_rules"))
    }
}

fn all_or_none() -> Setting {
    let about = "Domains whose descriptors are charged together, all of them or none: a list of entries.";
    let more = "Each has `domain`, and with `by` the keys of the entries whose values descriptors have in common that are decided \
                together; `by: []` is the whole request. A denied request then charges none of them. It renames the keys of such \
                limits, which start full. See [envoy.md](envoy.md#charges).";
    Setting {
        unset: "none",
        more,
        applies: Applies::AtRestart,
        ..Setting::other("all_or_none", about, ValueKind::Defined("envoy_all_or_none"))
    }
}

section! {
    /// Settings of Envoy's rate limit service. The defaults are the reference's.
    #[derive(Debug, Clone, PartialEq)]
    pub struct EnvoyConfig {
        before: [],

        /// The directory of Envoy's rate limit files, in the format of envoyproxy/ratelimit.
        pub config: Option<PathBuf> = None => {
            kind: Optional(FilePath, "none"),
            outside: Outside::Flag("envoy_config"),
            applies: Applies::AtRestart,
            more: "Without it, every request of Envoy gets an error: no configuration is loaded. With it, `strategies` \
                   may be omitted.",
        }
        /// Whether several of Envoy's files may define the same domain.
        pub merge_domains: bool = false => {
            kind: Boolean,
            outside: Outside::Flag("envoy_merge_domains"),
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether a mistake in the files concerns only its own domain, which goes on with its last good version.
        pub isolate_domains: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "Otherwise it refuses all files. A domain that never had a good version gets `FAILED_PRECONDITION`.",
        }
        /// How many rules the files, or the sets of a control plane, may have together.
        pub max_rules: usize = MAX_ENVOY_RULES => {
            kind: Count(1, 10 * MAX_ENVOY_RULES),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "A rule is an entry with a limit; those that only lead to it are not counted, and there may be ten for each \
                   rule. Domains are counted in the order of their names, or of their files: one with which there are more is \
                   refused, and named.",
        }
        /// Whether a request may contain its own limit.
        pub overrides_in_request: bool = true => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether answers have headers with its limit for the client, of the descriptor that limits most.
        pub headers: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// The name of the header with the requests per unit.
        pub limit_header: String = "RateLimit-Limit".to_owned() => {
            kind: HeaderName,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// The name of the header with the requests that still pass.
        pub remaining_header: String = "RateLimit-Remaining".to_owned() => {
            kind: HeaderName,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// The name of the header with the seconds until the limit is full again.
        pub reset_header: String = "RateLimit-Reset".to_owned() => {
            kind: HeaderName,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether answers have the fields `RateLimit` and `RateLimit-Policy` of [http.md](http.md) for the client.
        pub standard_headers: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "They are for the same descriptor as `headers`, and may stand beside those.",
        }
        /// Whether answers have dynamic metadata for Envoy's other filters: the request and its limits.
        pub dynamic_metadata: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "It contains the `metadata` of the matched rules.",
        }
        /// The part of a limit above which hits count as near it in the metrics.
        pub near_limit_ratio: f32 = 0.8 => {
            kind: Ratio,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether the metrics have those of envoyproxy/ratelimit too, with its names and labels.
        pub reference_metrics: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "`weir ratelimit` has them in any case: see [envoy.md](envoy.md#metrics-of-the-reference).",
        }
        /// Whether denied hits are charged too by all rules that can, as envoyproxy/ratelimit does.
        pub count_rejected: bool = false => {
            kind: Boolean,
            outside: Outside::Flag("envoy_count_rejected"),
            applies: Applies::AtRestart,
            more: "These are rules with `fixed_window`, the default, and `sliding_log`, and limits in requests. A rule or an entry of \
                   `rules` with a `count_rejected` of its own keeps it. Such rules give no hits back. See \
                   [envoy.md](envoy.md#charges).",
        }
        /// Whether one descriptor that is over its limit keeps the others of its request from being charged.
        pub stop_when_over: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "The limits are looked at before they are charged, so a request with several descriptors asks the store twice, \
                   and requests at the same time may still be charged in part. Bills are charged in any case. See \
                   [envoy.md](envoy.md#charges).",
        }
        /// Whether nothing is denied; the statuses in the answer still show what the limits say.
        pub shadow_mode: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether a request is over its limit only if all its descriptors are.
        pub quota_mode: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }

        after: [xds(), rules(), all_or_none()],
        others: {
            /// A control plane that sends the domains, in place of files.
            pub xds: Option<XdsConfig> = None,
            /// How rules count, where the files or the control plane cannot say it.
            pub rules: EnvoyOverlay = EnvoyOverlay::default(),
            /// Domains whose descriptors are charged together, all of them or none.
            pub all_or_none: AllOrNone = AllOrNone::default(),
            /// Which files of the directory count.
            pub layout: EnvoyLayout = EnvoyLayout::Paths,
        }
    }
}
