//! Cases with settings of their own.

use super::super::play::Case;
use super::case;

/// With `headers` and `dynamic_metadata`.
pub(crate) const HEADERS: &[Case] = &[
    case(
        "36",
        "after 2s
         x10 another [stream=v]
         another [stream=v] => OVER | OVER 0 of 10/MINUTE 58s
         headers 3
         header RateLimit-Limit 10
         header RateLimit-Remaining 0
         header RateLimit-Reset 58",
    ),
    case(
        "headers tell of the least that is left, or of the last that denies",
        "another [key2=v] [key3=v] [nope=v] => OK | OK 19 of 20/MINUTE 60s | OK 9 of 10/HOUR 3600s | OK
         header RateLimit-Limit 10
         header RateLimit-Remaining 9
         header RateLimit-Reset 3600
         another [key3=v] [key2=v] +20 => OVER | OVER 0 of 10/HOUR 3600s | OVER 0 of 20/MINUTE 60s
         header RateLimit-Limit 20
         header RateLimit-Reset 60",
    ),
    case(
        "no limit, no headers",
        "another [nope=v] => OK | OK
         headers 0
         test-domain [key6=x] => OK | OK 4294967295
         headers 0",
    ),
    case(
        "metadata are those of the rules that passed; the first of two values counts",
        "rl [service=service_1] [service=service_2]!1 +2 => \
         OK | OVER 0 of 1/MINUTE 60s | OK 1 of 2/MINUTE 60s
         metadata {\"descriptors\":[{\"entries\":[\"service=service_1\"]},{\"entries\":[\"service=service_2\"],\
         \"hitsAddend\":1}],\"domain\":\"rl\",\"hitsAddend\":2,\"metadata\":{\"group\":\"second\",\
         \"tier\":{\"two\":2}}}
         rl [service=service_1] [service=service_2] => OK | OK 0 of 1/MINUTE 60s | OK 0 of 2/MINUTE 60s
         metadata {\"descriptors\":[{\"entries\":[\"service=service_1\"]},{\"entries\":[\"service=service_2\"]}],\
         \"domain\":\"rl\",\"metadata\":{\"group\":\"first\",\"tier\":{\"one\":1,\"two\":2}}}",
    ),
    case(
        "metadata tell the limit that the request brought along",
        "another [key2=v]@10/DAY => OK | OK 9 of 10/DAY 86400s
         metadata {\"descriptors\":[{\"entries\":[\"key2=v\"],\"limit\":\"requests_per_unit:10 unit:DAY\"}],\
         \"domain\":\"another\"}",
    ),
];

/// With `shadow_mode`.
pub(crate) const SHADOW_MODE: &[Case] = &[case(
    "32",
    "x10 another [key3=v]
     metric weir_envoy_global_shadow_total +0
     another [key3=v] => OK | OVER 0 of 10/HOUR 3600s
     metric weir_envoy_global_shadow_total +1",
)];

/// With `stop_when_over`.
pub(crate) const STOP_WHEN_OVER: &[Case] = &[
    case(
        "one that is over keeps the others from being charged, wherever it stands",
        "x10 another [key3=v]
         another [key3=v] [key2=v] => OVER | OVER 0 of 10/HOUR 3600s | OK 20 of 20/MINUTE 60s
         another [key2=v] [key3=v] => OVER | OK 20 of 20/MINUTE 60s | OVER 0 of 10/HOUR 3600s
         another [key2=v] => OK | OK 19 of 20/MINUTE 60s",
    ),
    case(
        "if all pass, all are charged",
        "another [key3=v] [key2=v] => OK | OK 9 of 10/HOUR 3600s | OK 19 of 20/MINUTE 60s
         another [key3=v] [nope=v] +9 => OK | OK 0 of 10/HOUR 3600s | OK
         another [key3=v] [key2=v] => OVER | OVER 0 of 10/HOUR 3600s | OK 19 of 20/MINUTE 60s",
    ),
    case(
        "a bill is charged in any case",
        "x10 another [key3=v]
         another [key3=v] [key2=v]!7 => OVER | OVER 0 of 10/HOUR 3600s | OK 13 of 20/MINUTE 60s",
    ),
];

/// With `all_or_none` for `another` and `rl` as a whole, and for `basic` by `user`.
pub(crate) const ALL_OR_NONE: &[Case] = &[
    case(
        "of a denied request nothing is charged, wherever it is over",
        "x10 another [key3=v]
         another [key3=v] [key2=v] => OVER | OVER 0 of 10/HOUR 3600s | OK 20 of 20/MINUTE 60s
         another [key2=v] [key3=v] => OVER | OK 20 of 20/MINUTE 60s | OVER 0 of 10/HOUR 3600s
         another [key2=v] [nope=v] => OK | OK 19 of 20/MINUTE 60s | OK",
    ),
    case(
        "a counter is the same in every request",
        "another [key3=v] [key2=v] => OK | OK 9 of 10/HOUR 3600s | OK 19 of 20/MINUTE 60s
         another [key2=v] => OK | OK 18 of 20/MINUTE 60s
         another [key2=v] [key3=v] +9 => OK | OK 9 of 20/MINUTE 60s | OK 0 of 10/HOUR 3600s
         another [key2=w] => OK | OK 19 of 20/MINUTE 60s
         another [key3=v] [key2=v] => OVER | OVER 0 of 10/HOUR 3600s | OK 9 of 20/MINUTE 60s",
    ),
    case(
        "together are those of one user; what has no user is alone",
        "basic [user=bob,a=1]@2/HOUR [user=eve,a=1]@2/HOUR [user=bob,b=1]@1/HOUR => \
         OK | OK 1 of 2/HOUR 3600s | OK 1 of 2/HOUR 3600s | OK 0 of 1/HOUR 3600s
         basic [user=bob,a=1]@2/HOUR [user=eve,a=1]@2/HOUR [user=bob,b=1]@1/HOUR => \
         OVER | OK 1 of 2/HOUR 3600s | OK 0 of 2/HOUR 3600s | OVER 0 of 1/HOUR 3600s
         basic [one_per_minute=x] [user=bob,b=1]@1/HOUR => OVER | OK 0 of 1/MINUTE 60s | OVER 0 of 1/HOUR 3600s
         basic [a=1,user=bob]@1/HOUR [user=bob,a=1]@2/HOUR => OK | OK 0 of 1/HOUR 3600s | OK 0 of 2/HOUR 3600s",
    ),
    case(
        "a rule in shadow mode keeps none from being charged, and is charged with them",
        "x3 rl [foo=x,baz=shady]
         rl [foo=x,baz=shady] [nope=v]@1/MINUTE => OK | OK 0 of 3/MINUTE 60s | OK 0 of 1/MINUTE 60s
         rl [foo=y,baz=shady] [nope=v]@1/MINUTE => OVER | OK 3 of 3/MINUTE 60s | OVER 0 of 1/MINUTE 60s
         rl [foo=y,baz=shady] => OK | OK 2 of 3/MINUTE 60s",
    ),
    case(
        "bills are charged in any case, and before the others; refunds too",
        "x10 another [key3=v]
         another [key3=v] [key2=v]!7 => OVER | OVER 0 of 10/HOUR 3600s | OK 13 of 20/MINUTE 60s
         another [key3=v]~ [key2=v] +5 => OK | OK 5 of 10/HOUR 3600s | OK 8 of 20/MINUTE 60s
         another [key3=v] [key2=v]!0 +6 => OVER | OVER 0 of 10/HOUR 3600s | OK 8 of 20/MINUTE 60s",
    ),
    case(
        "equal descriptors are one counter, which takes the hits of both",
        "another [key3=v] [key3=v] +5 => OK | OK 0 of 10/HOUR 3600s | OK 0 of 10/HOUR 3600s
         another [key3=w] [key3=w] +6 => OVER | OVER 0 of 10/HOUR 3600s | OVER 0 of 10/HOUR 3600s
         another [key3=w] +10 => OK | OK 0 of 10/HOUR 3600s
         another [key2=v] [key2=v]@5/MINUTE => InvalidArgument: descriptors is \"7:another/4:key2=1:v\" with two \
         limits: descriptors that are charged together have one limit for each counter",
    ),
    case(
        "eight at most, and then nothing is charged",
        "another [a=1]@9/DAY [a=2]@9/DAY [a=3]@9/DAY [a=4]@9/DAY [a=5]@9/DAY [a=6]@9/DAY [a=7]@9/DAY [key2=v] \
         [nope=v] => OK | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s \
         | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 19 of 20/MINUTE 60s | OK
         another [a=1]@9/DAY [a=2]@9/DAY [a=3]@9/DAY [a=4]@9/DAY [a=5]@9/DAY [a=6]@9/DAY [a=7]@9/DAY [key2=v] \
         [key3=v] => InvalidArgument: descriptors is 9 that are charged together: at most 8 may be: the domain is in \
         envoy.all_or_none by []
         another [key2=v] => OK | OK 18 of 20/MINUTE 60s",
    ),
];

/// With `all_or_none` and `shadow_mode`: nothing is denied, so each is charged for itself.
pub(crate) const ALL_IN_SHADOW: &[Case] = &[case(
    "what denies nothing keeps none from being charged",
    "x10 another [key3=v]
     another [key3=v] [key2=v] => OK | OVER 0 of 10/HOUR 3600s | OK 19 of 20/MINUTE 60s
     another [a=1]@9/DAY [a=2]@9/DAY [a=3]@9/DAY [a=4]@9/DAY [a=5]@9/DAY [a=6]@9/DAY [a=7]@9/DAY [key2=v] => \
     OK | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | \
     OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 8 of 9/DAY 86400s | OK 18 of 20/MINUTE 60s",
)];

/// With `quota_mode`.
pub(crate) const QUOTA_MODE: &[Case] = &[
    case(
        "every descriptor is a quota, and what matches nothing is one that is left",
        "x10 another [key3=v]
         another [key3=v] => OVER | OVER 0 of 10/HOUR 3600s
         another [key3=v] [key2=v] => OK | OVER 0 of 10/HOUR 3600s | OK 19 of 20/MINUTE 60s
         another [key3=v] [nope=v] => OK | OVER 0 of 10/HOUR 3600s | OK",
    ),
    case(
        "what is unlimited is no quota",
        "test-domain [key3=v] [key6=v] => OK | OK 0 of 1/HOUR 3600s | OK 4294967295
         test-domain [key3=v] [key6=v] => OVER | OVER 0 of 1/HOUR 3600s | OK 4294967295",
    ),
];

/// With `shadow_mode` and `quota_mode`.
pub(crate) const BOTH_MODES: &[Case] = &[case(
    "52",
    "x20 another [key2=v] [key3=v]
     another [key2=v] [key3=v] => OK | OVER 0 of 20/MINUTE 60s | OVER 0 of 10/HOUR 3600s
     metric weir_envoy_global_shadow_total +1",
)];

/// With `count_rejected`.
pub(crate) const COUNT_REJECTED: &[Case] = &[
    case(
        "denied hits are charged",
        "another [key3=v] +8 => OK | OK 2 of 10/HOUR 3600s
         another [key3=v] +5 => OVER | OVER 0 of 10/HOUR 3600s
         another [key3=v] => OVER | OVER 0 of 10/HOUR 3600s
         another [key3=v] => OVER | OVER 0 of 10/HOUR 3600s
         another [key3=v] => OVER | OVER 0 of 10/HOUR 3600s",
    ),
    case(
        "so are those of limits in requests",
        "another [nope=v]@10/HOUR +8 => OK | OK 2 of 10/HOUR 3600s
         another [nope=v]@10/HOUR +5 => OVER | OVER 0 of 10/HOUR 3600s
         another [nope=v]@10/HOUR => OVER | OVER 0 of 10/HOUR 3600s",
    ),
];

/// With `overrides_in_request: false`.
pub(crate) const NO_OVERRIDES: &[Case] = &[case(
    "a limit of the request's own is as if it were not there",
    "another [key2=v]@1/DAY => OK | OK 19 of 20/MINUTE 60s
     another [key2=v]@1/UNKNOWN => OK | OK 18 of 20/MINUTE 60s
     another [nope=v]@1/DAY => OK | OK",
)];
