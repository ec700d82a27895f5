//! The keys of strategies, their limits and algorithms, and of access lists.
//!
//! Settings and sections of features have one table for the reader and the schema. This grammar has two: some of its keys
//! are refused or needed beside others, in words about both, and their bounds are those of the constructors of `Algorithm`. So
//! the readers are code, which a table would have to call key by key. What both say, they are held to: `config::schema::keys`
//! compares the keys of each mapping with those that the reader knows, `config::schema::mutations` the values that each takes.

use weir_core::algorithm::{MAX_BUCKETS, MAX_COLD_FACTOR, MAX_ENTRIES, MOST_MAX_HELD};
use weir_core::approximate::MAX_NODES;
use weir_core::strategy::{MAX_ADAPTIVE_LIMIT, MAX_ATTRIBUTES, MAX_BAN_AFTER, MAX_SHADOWS};
use weir_units::CEILING;

use super::super::costs::MAX_UNIT;
use super::super::table::ValueKind::{
    self, Boolean, Choice, Count, Defined, Duration, List, Pattern, Positive, Rate, Set, Text, Thousandths,
};
use super::kinds::{Key, may, must};

const UNITS: ValueKind = Count(0, CEILING - 1);
const ADAPTIVE: ValueKind = Count(1, MAX_ADAPTIVE_LIMIT);
const SAMPLES: ValueKind = Count(1, 1_000_000);
/// A name or a prefix pattern.
const NAMES: ValueKind = Defined("pattern");

pub(super) const STRATEGY: &[Key] = &[
    may("limits", Defined("limits"), "All of them are charged, or none is."),
    may("concurrency", Defined("concurrency"), "Permits that callers hold for a time, instead of `limits`."),
    may("on_store_failure", Defined("failure_policy"), "Answer while the store cannot decide.").or("error"),
    may("approximate", Defined("approximate"), "Nodes count on their own, within this bound."),
    may("single_slot", Boolean, "Keeps the whole strategy in one slot of one node.").or("false"),
    may("access", Defined("access"), "Consumers that this strategy always denies or always allows."),
    may("max_reservation", Duration, "The longest wait that a reservation may ask for; at most 1h.").or("1m"),
    may("hold", Defined("hold"), "Calls may hold their costs until they are settled."),
    may(
        "shadow",
        Set(&Defined("reference"), 1, MAX_SHADOWS),
        "Strategies that are decided beside this one, and never enforced.",
    ),
];

pub(super) const HOLD: &[Key] = &[
    must("max", Duration, "The longest hold that a call may ask for; 1s to 1h."),
    may("known_for", Duration, "Time for which ids are known after their settlement or the end; 1m to 24h.")
        .or("1h"),
];

pub(super) const LOCAL: &[Key] = &[
    must(
        "share",
        Pattern("^[0-9]{1,4}/[0-9]{1,4}$"),
        "The part of each limit that a node has by itself: A/B, at most 1000 each.",
    ),
    may(
        "when_full",
        Choice(&["allow", "deny", "error"]),
        "Answer for new keys when `store.redis.local_budget` is used up.",
    )
    .or("error"),
];

pub(super) const APPROXIMATE: &[Key] = &[
    must("max_over", Count(1, CEILING), "Most units that a window admits above the limit."),
    must("nodes", Count(2, MAX_NODES), "Most nodes that count; `max_over` is at least one less."),
    may("sync", Duration, "Interval at which nodes show what they have counted; 10ms to 10s.").or("100ms"),
];

pub(super) const CONCURRENCY: &[Key] = &[
    must(
        "per",
        Set(&Defined("field"), 0, 2 + MAX_ATTRIBUTES),
        "Fields that permits are counted by: resource, consumer, attributes; [] is one limit for all.",
    ),
    may("limit", UNITS, "Number of permits."),
    may("ttl", Duration, "Default duration of a lease; at most `max_ttl`.").or("30s"),
    may("max_ttl", Duration, "Longest duration of a lease without renewal; 1us to 1w.").or("1h"),
    may("max_weight", Count(1, CEILING - 1), "Most permits of one lease; default all."),
    may("adaptive", Choice(&["aimd", "vegas", "gradient2"]), "The limit follows what holders report."),
    may("initial", ADAPTIVE, "The limit before the first report; default 20."),
    may("min", ADAPTIVE, "The lowest limit; default 20, of vegas 1."),
    may("max", ADAPTIVE, "The highest limit; default 200, of vegas 1000."),
    may("backoff", Thousandths(0.001, 0.999), "aimd: what the limit is multiplied by after a drop; below 1.")
        .or("0.9"),
    may("timeout", Duration, "aimd: work that takes longer counts as dropped; 1us to 24h.").or("5s"),
    may(
        "smoothing",
        Thousandths(0.001, 1.0),
        "Part of a new limit that is adopted; default 1, of gradient2 0.2.",
    ),
    may("probe", SAMPLES, "vegas: samples per permit until the shortest time is measured again.").or("30"),
    may("queue", SAMPLES, "gradient2: how many calls may wait.").or("4"),
    may("long_window", SAMPLES, "gradient2: samples of the long average.").or("600"),
    may(
        "tolerance",
        Thousandths(1.0, 100.0),
        "gradient2: how many times the long average is fine; 1 to 100.",
    )
    .or("1.5"),
    may("sampling", Defined("sampling"), "Reports are collected first; default: each release is one."),
    may("partitions", Defined("partitions"), "Parts of the limit that are kept for some callers."),
    may("idle", Duration, "Time for which an adaptive limit is remembered after its last lease; up to 24h.")
        .or("10m"),
];

pub(super) const SAMPLING: &[Key] = &[
    may("window", Duration, "Time for which reports are collected; 1us to 24h.").or("1s"),
    may("samples", SAMPLES, "Least number of reports.").or("10"),
];

pub(super) const PARTITIONS: &[Key] = &[
    must("by", Defined("field"), "The attribute whose values have shares."),
    must("shares", Defined("shares"), "Values of it, each with its part of the limit; together at most 1."),
];

/// The keys of a limit, except its algorithm.
pub(super) const LIMIT: &[Key] = &[
    must("name", Defined("name"), "Answers name the limits that deny."),
    must(
        "per",
        Set(&Defined("field"), 0, 2 + MAX_ATTRIBUTES),
        "Fields that are counted by: resource, consumer, attributes; [] is one for all.",
    ),
    may(
        "mode",
        Choice(&["enforce", "shadow"]),
        "A limit in shadow mode says what it would deny, and denies nothing.",
    )
    .or("enforce"),
    may(
        "ban",
        Defined("ban"),
        "Ban of callers that are denied often. Only for limits that count by consumer.",
    ),
    may(
        "cost",
        Defined("cost"),
        "Units that a call takes: a number, or a name that calls give a cost; default their `cost`.",
    ),
    may("charge", Choice(&["at_once", "when_settled"]), "When a call that is held is charged.")
        .or("when_settled"),
    may("unit", Text(0, MAX_UNIT), "Name of the counted unit, for readers."),
];

/// The keys of `ban`.
pub(super) const BAN: &[Key] = &[
    must("after", Count(1, MAX_BAN_AFTER), "After so many denials by this limit."),
    must("within", Duration, "Within this time, on one node; 1s to 24h."),
    must("for", Duration, "Duration of the ban; 1s to 52w."),
];

pub(super) const ALGORITHMS: &[Key] = &[
    may("uniform", Defined("uniform"), "One call per interval, no bursts."),
    may("token_bucket", Defined("bucket"), "Bursts, then an even rate."),
    may("gcra", Defined("bucket"), "The same as token_bucket."),
    may("leaky_bucket", Defined("bucket"), "The same as token_bucket."),
    may(
        "leaky_queue",
        Defined("leaky_queue"),
        "Admitted calls wait for their turn, as nginx's limit_req makes them.",
    ),
    may("warm_up", Defined("warm_up"), "A rate that is reached over a while after a time without calls."),
    may("fixed_window", Defined("fixed_window"), "So many in each window."),
    may("interval_refill", Defined("interval_refill"), "A stock that gets some back every period."),
    may("sliding_window", Defined("sliding_window"), "So many in a window that slides, from two counters."),
    may("bucketed_window", Defined("bucketed_window"), "So many in a window that slides in steps."),
    may("sliding_log", Defined("sliding_log"), "Never more than so many in any span of a window."),
];

pub(super) const UNIFORM: &[Key] = &[must("interval", Duration, "Between two calls; 1us to 100 years.")];

pub(super) const BUCKET: &[Key] = &[
    must("rate", Rate, "Rate at which units come back: COUNT/DURATION, such as 30/1m."),
    may("burst", UNITS, "Number of calls that may pass at once; default the count of the rate."),
    may("charge_after", Boolean, "A call waits only for what earlier calls have used; the next pays for it.")
        .or("false"),
    may("max_cost", UNITS, "With charge_after: the largest cost; default ten times the burst."),
];

pub(super) const LEAKY_QUEUE: &[Key] = &[
    must("rate", Rate, "Rate at which calls leave the queue: COUNT/DURATION, such as 10/1s."),
    may("burst", UNITS, "Number of calls that may wait.").or("0"),
    may("delay", UNITS, "Number of waiting calls that proceed at once.").or("0"),
    may("nodelay", Boolean, "All of them go ahead at once.").or("false"),
];

pub(super) const WARM_UP: &[Key] = &[
    must("rate", Rate, "Rate of a warm limit: COUNT/DURATION, such as 100/1s."),
    must("period", Duration, "Time in which a cold limit becomes warm; 1us to 100 years."),
    may(
        "cold_factor",
        Count(1, MAX_COLD_FACTOR),
        "Factor of the distance between calls while the limit is cold.",
    )
    .or("3"),
    may("max_cost", UNITS, "The largest cost; default ten times what is stored when it is cold."),
];

/// The key for the part of a limit that is nearly all of it, in limits and in overrides.
pub(super) const NEAR: Key = may(
    "near_limit",
    Pattern("^([1-9][0-9]?|100)%$"),
    "A line and a metric say when the use passes this part.",
);

/// The key for the maximum debt, which accompanies an algorithm in limits and in overrides.
pub(super) const DEBT: Key = may(
    "max_debt",
    Defined("max_debt"),
    "Highest debt above the limit: units, or `unlimited`; default as many as the limit.",
);

pub(super) const FIXED_WINDOW: &[Key] = &[
    must("limit", UNITS, "Limit of each window."),
    may("window", Duration, "Length of a window; 1us to 100 years."),
    may("anchored", Boolean, "Windows begin with the first call rather than on the clock.").or("false"),
    may("spread", Boolean, "Each key's windows begin at a time of its own.").or("false"),
    may("calendar", Choice(&["day", "month"]), "Windows are days or months, instead of `window`."),
    may(
        "offset",
        Pattern("^[+-]([01][0-9]|2[0-3]):[0-5][0-9]$"),
        "Offset of the calendar's clocks from UTC.",
    )
    .or("+00:00"),
    may("count_denied", Boolean, "Denied calls are charged too.").or("false"),
];

pub(super) const INTERVAL_REFILL: &[Key] = &[
    must("capacity", UNITS, "Units that the stock holds."),
    must("refill", Count(1, CEILING - 1), "Units that each refill adds."),
    must("period", Duration, "Interval of refills; 1us to 100 years."),
    may("aligned", Boolean, "Refills come on the clock rather than from the first call on.").or("false"),
];

pub(super) const SLIDING_WINDOW: &[Key] = &[
    must("limit", Count(0, CEILING / 2 - 1), "Limit of the window."),
    must("window", Duration, "Length of the window; 1us to 100 years."),
];

pub(super) const BUCKETED_WINDOW: &[Key] = &[
    must("limit", UNITS, "Limit of the window."),
    must("window", Duration, "Length of the window; 1us to 100 years."),
    may("buckets", Count(1, MAX_BUCKETS), "Number of steps of the window."),
    may(
        "accuracy",
        Positive,
        "Parts per second, instead of `buckets`; the last part of a window may be shorter.",
    ),
    may("strict", Boolean, "No span of the window ever has more than the limit.").or("true"),
    may("expire", Duration, "Time for which a state is kept after its last charge; at least the window."),
];

pub(super) const SLIDING_LOG: &[Key] = &[
    must("limit", Count(0, MAX_ENTRIES), "Limit of any span as long as the window."),
    must("window", Duration, "Length of the span; 1us to 100 years."),
    may("count_denied", Boolean, "Denied calls are charged too; the limit is then at most 9999.").or("false"),
    may("min_gap", Duration, "Between two calls, at least; at most the window.").or("0s"),
    may("hold", Boolean, "Calls may be reserved; not with count_denied or min_gap.").or("false"),
    may("max_held", Count(1, MOST_MAX_HELD), "Most pending reservations; with hold only.").or("100"),
];

pub(super) const RESOURCE: &[Key] = &[
    must("match", NAMES, "A resource, or the beginning of many and a final *."),
    must("strategy", Defined("reference"), "One of `strategies`."),
    may("group", Defined("part"), "Resources of one routing group share a shard."),
];

pub(super) const GROUP: &[Key] = &[must(
    "apart_from",
    Set(&Defined("part"), 1, usize::MAX),
    "Groups of other resources that must not be on its shard.",
)];

pub(super) const OVERRIDE: &[Key] = &[
    must("consumer", NAMES, "A consumer, or the beginning of many and a final *."),
    must("strategy", Defined("reference"), "One of `strategies`."),
    may("resource", NAMES, "A resource, or the beginning of many and a final *.").or("*"),
    must("limits", Defined("changes"), "Names of limits that count by consumer, with their other algorithm."),
];

pub(super) const ACCESS: &[Key] = &[
    may("allow", List(&NAMES), "Consumers, or beginnings of many and a final *, who always pass."),
    may("deny", List(&NAMES), "The same, who never pass. Deny goes before allow."),
];
