//! The cases of the reference, by their numbers in the list of them. Further ones are beside this file.

mod ours;
mod settings;

pub(super) use ours::OURS;
pub(super) use settings::{
    ALL_IN_SHADOW, ALL_OR_NONE, BOTH_MODES, COUNT_REJECTED, HEADERS, NO_OVERRIDES, QUOTA_MODE, SHADOW_MODE,
    STOP_WHEN_OVER,
};

use super::play::Case;

/// A case of `share_threshold`, as 29 is.
pub(super) const SHARED: &str = "a shared counter is none of a value that reads like it";

const fn case(name: &'static str, lines: &'static str) -> Case {
    Case { name, lines }
}

/// With the settings that are the reference's defaults.
pub(super) const REFERENCE: &[Case] = &[
    case(
        "1",
        "nope [key2=x] => OK | OK
         metric weir_envoy_unknown_domain_total +1",
    ),
    case("2", "test-domain [key1=something] => OK | OK"),
    case("3", "test-domain [key1=value1] => OK | OK"),
    case("4", "test-domain [key2=value2,subkey=subvalue] => OK | OK"),
    case(
        "5 and 6",
        "test-domain [key1=value1,subkey1=x] => OK | OK 4 of 5/SECOND 1s
         test-domain [key1=value1,subkey1=x] => OK | OK 3 of 5/SECOND 1s
         test-domain [key1=value1,subkey1=x] => OK | OK 2 of 5/SECOND 1s
         test-domain [key1=value1,subkey1=x] => OK | OK 1 of 5/SECOND 1s
         test-domain [key1=value1,subkey1=x] => OK | OK 0 of 5/SECOND 1s
         test-domain [key1=value1,subkey1=x] => OVER | OVER 0 of 5/SECOND 1s
         test-domain [key1=value1,subkey1=subvalue1] => OK | OK 9 of 10/SECOND 1s",
    ),
    case(
        "7",
        "test-domain [key2=anything] => OK | OK 19 of 20/MINUTE 60s
         test-domain [key2=value2] => OK | OK 29 of 30/MINUTE 60s
         test-domain [key2=value3] => OK | OK",
    ),
    case(
        "8",
        "x20 test-domain [key2=a]
         test-domain [key2=a] => OVER | OVER 0 of 20/MINUTE 60s
         test-domain [key2=b] => OK | OK 19 of 20/MINUTE 60s",
    ),
    case(
        "9",
        "test-domain [key4=z] => OK | OK 0 of 1/DAY key4_rate_limit 86400s
         test-domain [key4=z] => OVER | OVER 0 of 1/DAY key4_rate_limit 86400s",
    ),
    case(
        "10",
        "x100 test-domain [key6=x]
         test-domain [key6=x] => OK | OK 4294967295
         metric weir_store_calls_total{result=\"ok\"} +0",
    ),
    case(
        "11",
        "x19 another [key2=v]
         another [key2=v] => OK | OK 0 of 20/MINUTE 60s
         x4 another [key2=v]
         another [key2=v] => OVER | OVER 0 of 20/MINUTE 60s",
    ),
    case(
        "12: the one that is not over is charged all the same",
        "x9 another [key2=v] [key3=v]
         another [key2=v] [key3=v] => OK | OK 10 of 20/MINUTE 60s | OK 0 of 10/HOUR 3600s
         another [key2=v] [key3=v] => OVER | OK 9 of 20/MINUTE 60s | OVER 0 of 10/HOUR 3600s
         another [key2=v] [key3=v] => OVER | OK 8 of 20/MINUTE 60s | OVER 0 of 10/HOUR 3600s",
    ),
    case(
        "14",
        "another [key4=v] => OK | OK 19 of 20/DAY 86400s
         after 2s
         another [key4=v] => OK | OK 18 of 20/DAY 86398s",
    ),
    case(
        "15",
        "after 2s
         another [key2=v] => OK | OK 19 of 20/MINUTE 58s",
    ),
    case(
        "16",
        "another [key2=v] +3 => OK | OK 17 of 20/MINUTE 60s
         metric weir_envoy_hits_total{domain=\"another\",rule=\"key2\"} +3
         metric weir_envoy_within_limit_total{domain=\"another\",rule=\"key2\"} +3",
    ),
    case("17", "another [key2=v] +0 => OK | OK 19 of 20/MINUTE 60s"),
    case(
        "18",
        "another [key2=v]!0 => OK | OK 20 of 20/MINUTE 60s
         another [key2=v] => OK | OK 19 of 20/MINUTE 60s",
    ),
    case(
        "19",
        "x10 another [key3=v]
         another [key2=v]!0 [key3=v]!1 => OVER | OK 20 of 20/MINUTE 60s | OVER 0 of 10/HOUR 3600s",
    ),
    case("20", "another [key2=v] [key3=v]!1 +3 => OK | OK 17 of 20/MINUTE 60s | OK 9 of 10/HOUR 3600s"),
    case("21", "basic [key1=x] +51 => OVER | OVER 0 of 50/SECOND 1s"),
    case("22", "rl [foo=x,bar=banned] => OVER | OVER 0 of 0/MINUTE banned_limit 60s"),
    case("23", "test-domain [key1=value1,subkey1=x]@10/DAY => OK | OK 9 of 10/DAY 86400s"),
    case("24", "nope [key2=x]@10/DAY => OK | OK"),
    case(
        "25",
        "w [wild=foo1] => OK | OK 19 of 20/MINUTE 60s
         w [wild=foo2] => OK | OK 19 of 20/MINUTE 60s
         w [wild=bar] => OK | OK",
    ),
    case("26", "w [noWild=foo1] => OK | OK"),
    case(
        "27",
        "w [midWild=barab] [midWild=bar123b] [midWild=barb] => \
         OK | OK 19 of 20/MINUTE 60s | OK 19 of 20/MINUTE 60s | OK 19 of 20/MINUTE 60s
         w [midWild=bara] [midWild=xbarb] => OK | OK | OK",
    ),
    case(
        "28",
        "w [multiWild=foo123bar456baz] [multiWild=foobarbaz] => \
         OK | OK 19 of 20/MINUTE 60s | OK 19 of 20/MINUTE 60s
         w [multiWild=foo123baz] [multiWild=bar456baz] => OK | OK | OK",
    ),
    case(
        "29",
        "x10 st [files=files/a.pdf]
         st [files=files/b.csv] => OVER | OVER 0 of 10/HOUR 3600s",
    ),
    case(
        "30",
        "st [files_no_share=files_no_share/1] => OK | OK 9 of 10/HOUR 3600s
         st [files_no_share=files_no_share/2] => OK | OK 9 of 10/HOUR 3600s",
    ),
    case(
        SHARED,
        "st [user=user/a,res=res/b] => OK | OK 4 of 5/HOUR 3600s
         st [user=user/c,res=res/d] => OK | OK 3 of 5/HOUR 3600s
         st [files=files/*]@10/HOUR => OK | OK 9 of 10/HOUR 3600s
         st [files=files/x] => OK | OK 9 of 10/HOUR 3600s",
    ),
    case(
        "31",
        "rl [foo=x,baz=shady] => OK | OK 2 of 3/MINUTE 60s
         rl [foo=x,baz=shady] => OK | OK 1 of 3/MINUTE 60s
         rl [foo=x,baz=shady] => OK | OK 0 of 3/MINUTE 60s
         rl [foo=x,baz=shady] => OK | OK 0 of 3/MINUTE 60s
         metric weir_envoy_shadow_mode_total{domain=\"rl\",rule=\"foo,baz=shady\"} +1",
    ),
    case(
        "33",
        "rl [foo=x,bar=bkthomps] [source_cluster=proxy,destination_cluster=bkthomps] => \
         OK | OK | OK 1 of 2/MINUTE 60s
         rl [foo=x,bar=bkthomps] [source_cluster=proxy,destination_cluster=bkthomps] => \
         OK | OK | OK 0 of 2/MINUTE 60s
         rl [foo=x,bar=bkthomps] [source_cluster=proxy,destination_cluster=bkthomps] => \
         OVER | OK | OVER 0 of 2/MINUTE 60s
         rl [foo=x,bar=bkthomps] => OK | OK 0 of 1/MINUTE bkthomps 60s",
    ),
    case(
        "34",
        "rl [service=service_1] => OK | OK 0 of 1/MINUTE 60s
         rl [service=service_1] => OVER | OVER 0 of 1/MINUTE 60s",
    ),
    case(
        "35 and 54",
        "rl [service=service_1] [service=service_2] => OK | OK 0 of 1/MINUTE 60s | OK 1 of 2/MINUTE 60s
         rl [service=service_1] [service=service_2] => OK | OVER 0 of 1/MINUTE 60s | OK 0 of 2/MINUTE 60s
         rl [service=service_1] [service=service_2] => OVER | OVER 0 of 1/MINUTE 60s | OVER 0 of 2/MINUTE 60s
         after 60s
         rl [service=service_1] [service=service_2] => OK | OK 0 of 1/MINUTE 60s | OK 1 of 2/MINUTE 60s",
    ),
    case("37", "\"\" [key2=v] => InvalidArgument: rate limit domain must not be empty"),
    case("38", "another => InvalidArgument: rate limit descriptor list must not be empty"),
    case(
        "47",
        "another [near=v] +11 => OK | OK 4 of 15/HOUR 3600s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"near\"} +0
         another [near=v] => OK | OK 3 of 15/HOUR 3600s
         another [near=v] => OK | OK 2 of 15/HOUR 3600s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"near\"} +1
         another [near=v] +2 => OK | OK 0 of 15/HOUR 3600s
         another [near=v] => OVER | OVER 0 of 15/HOUR 3600s
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"near\"} +1",
    ),
    case(
        "48",
        "another [key2=v] +19 => OK | OK 1 of 20/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"key2\"} +3
         another [key2=v] +3 => OVER | OVER 0 of 20/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"key2\"} +4
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"key2\"} +2",
    ),
    case("50", "rl [foo=x,bar=banned]!0 => OK | OK 0 of 0/MINUTE banned_limit 60s"),
    case("51", "rl [foo=x,bay=x] [qux=1] => OK | OK 4294967295 | OK 4294967295"),
    case(
        "53",
        "x3 rl [foo=x,baz=shady] [foo=x,baz=not-so-shady]
         rl [foo=x,baz=shady] [foo=x,baz=not-so-shady] => \
         OVER | OK 0 of 3/MINUTE 60s | OVER 0 of 3/MINUTE 60s",
    ),
    case(
        "55",
        "test-domain [key2=] => OK | OK 19 of 20/MINUTE 60s
         w [noWild=] => OK | OK",
    ),
];
