//! Cases that the reference lacks, or answers otherwise.

use super::super::play::Case;
use super::case;

/// With the settings that are the reference's defaults.
pub(crate) const OURS: &[Case] = &[
    case(
        "a key and its value never run into each other",
        "test-domain [key2_value2=] => OK | OK
         test-domain [key1=value1_subkey1] => OK | OK",
    ),
    case(
        "a rejected hit costs nothing",
        "another [stream=v] +8 => OK | OK 2 of 10/MINUTE 60s
         another [stream=v] +5 => OVER | OVER 0 of 10/MINUTE 60s
         another [stream=v] +2 => OK | OK 0 of 10/MINUTE 60s",
    ),
    case(
        "but where the rule counts it",
        "another [strict=v] +8 => OK | OK 2 of 10/MINUTE 60s
         another [strict=v] +5 => OVER | OVER 0 of 10/MINUTE 60s
         another [strict=v] +2 => OVER | OVER 0 of 10/MINUTE 60s",
    ),
    // The counter is what a later bill starts from: 7 above a limit of 2 leave 5 hits that were over it.
    case(
        "bills count in full where denied hits count, on a fresh and on a used key",
        "another [small=fresh]!7 => OVER | OVER 0 of 2/MINUTE 60s
         another [small=used] +2 => OK | OK 0 of 2/MINUTE 60s
         another [small=used]!7 => OVER | OVER 0 of 2/MINUTE 60s
         another [small=used] => OVER | OVER 0 of 2/MINUTE 60s",
    ),
    case(
        "finished work is charged above the limit: streams of 6 at 10 a minute",
        "another [stream=v]!0 => OK | OK 10 of 10/MINUTE 60s
         another [stream=v]!6 => OK | OK 4 of 10/MINUTE 60s
         another [stream=v]!0 => OK | OK 4 of 10/MINUTE 60s
         another [stream=v]!6 => OVER | OVER 0 of 10/MINUTE 60s
         another [stream=v]!0 => OVER | OVER 0 of 10/MINUTE 60s
         another [stream=v] => OVER | OVER 0 of 10/MINUTE 60s
         after 60s
         another [stream=v]!0 => OK | OK 10 of 10/MINUTE 60s",
    ),
    case(
        "more than can be counted is debt until the window ends",
        "another [stream=v]!18446744073709551615 => OVER | OVER 0 of 10/MINUTE 60s
         another [stream=v]!18446744073709551615 => OVER | OVER 0 of 10/MINUTE 60s
         another [stream=v]!0 => OVER | OVER 0 of 10/MINUTE 60s
         another [key2=v] +4294967295 => OVER | OVER 0 of 20/MINUTE 60s
         after 60s
         another [stream=v] => OK | OK 9 of 10/MINUTE 60s",
    ),
    // A denied bill once was charged all the same, so a client that kept asking got 5 requests and then none.
    case(
        "a bill that a bucket denies is not charged: 5 requests of 2 pass in each second",
        "another [tokens=v]!2 => OK | OK 8 of 10/SECOND 1s
         x3 another [tokens=v]!2
         another [tokens=v]!2 => OK | OK 0 of 10/SECOND 1s
         x9 another [tokens=v]!2
         after 1s
         x4 another [tokens=v]!2
         another [tokens=v]!2 => OK | OK 0 of 10/SECOND 1s
         another [tokens=v]!2 => OVER | OVER 0 of 10/SECOND 1s",
    ),
    case(
        "where the rule bills it is charged, and the debt has a bound",
        "another [billed=v]!100 => OVER | OVER 0 of 10/SECOND 2s
         another [billed=v]!100 => OVER | OVER 0 of 10/SECOND 2s
         after 1s
         another [billed=v]!0 => OK | OK 5 of 10/SECOND 1s
         another [billed=v]!7 => OVER | OVER 0 of 10/SECOND 2s",
    ),
    case(
        "forced hits that cross a line count on both sides of it",
        "another [key2=v]!15 => OK | OK 5 of 20/MINUTE 60s
         another [key2=v]!7 => OVER | OVER 0 of 20/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"key2\"} +4
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"key2\"} +2
         another [key2=v]!7 => OVER | OVER 0 of 20/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"key2\"} +4
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"key2\"} +9",
    ),
    case(
        "so do denied ones, which charge nothing",
        "another [key2=v] +15 => OK | OK 5 of 20/MINUTE 60s
         another [key2=v] +7 => OVER | OVER 0 of 20/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"key2\"} +4
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"key2\"} +2
         another [key2=v] +7 => OVER | OVER 0 of 20/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"key2\"} +8
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"key2\"} +4",
    ),
    case(
        "so do rejected ones that the rule counts",
        "another [strict=v] +7 => OK | OK 3 of 10/MINUTE 60s
         another [strict=v] +5 => OVER | OVER 0 of 10/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"strict\"} +2
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"strict\"} +2
         another [strict=v] +3 => OVER | OVER 0 of 10/MINUTE 60s
         metric weir_envoy_near_limit_total{domain=\"another\",rule=\"strict\"} +2
         metric weir_envoy_over_limit_total{domain=\"another\",rule=\"strict\"} +5",
    ),
    case(
        "shadow mode counts the hits that were over",
        "rl [foo=x,baz=shady] +2 => OK | OK 1 of 3/MINUTE 60s
         rl [foo=x,baz=shady] +3 => OK | OK 0 of 3/MINUTE 60s
         metric weir_envoy_shadow_mode_total{domain=\"rl\",rule=\"foo,baz=shady\"} +2",
    ),
    case(
        "hits are given back, never above the limit",
        "x5 another [key2=v]
         another [key2=v]~ => OK | OK 16 of 20/MINUTE 60s
         another [key2=v]~ +2 => OK | OK 18 of 20/MINUTE 60s
         another [key2=v]!7~ => OK | OK 20 of 20/MINUTE 60s
         another [key2=v]!0~ => OK | OK 20 of 20/MINUTE 60s
         metric weir_envoy_hits_total{domain=\"another\",rule=\"key2\"} +5",
    ),
    case(
        "what is given back passes at once",
        "x20 another [key2=v]
         another [key2=v] => OVER | OVER 0 of 20/MINUTE 60s
         another [key2=v]!1~ => OK | OK 1 of 20/MINUTE 60s
         another [key2=v] => OK | OK 0 of 20/MINUTE 60s",
    ),
    case(
        "nothing is given back to who counts rejected hits, and nothing else is charged",
        "another [key2=v] [strict=v]!1~ => FailedPrecondition: rule `another.strict` counts rejected hits, \
         so hits on it cannot be given back
         another [key2=v]!0 => OK | OK 20 of 20/MINUTE 60s",
    ),
    case(
        "the same descriptor twice is two hits, in order",
        "x9 another [key3=v]
         another [key3=v] [key3=v] => OVER | OK 0 of 10/HOUR 3600s | OVER 0 of 10/HOUR 3600s",
    ),
    case(
        "descriptors that share a counter are decided in their order",
        "another [key2=a]@20/MINUTE [key2=a] => OK | OK 19 of 20/MINUTE 60s | OK 18 of 20/MINUTE 60s
         another [key2=b] [key2=b]@20/MINUTE [key2=b] => OK | OK 19 of 20/MINUTE 60s | OK 18 of 20/MINUTE 60s \
         | OK 17 of 20/MINUTE 60s
         another [key2=c]@20/MINUTE [key3=c] [key2=c] => OK | OK 19 of 20/MINUTE 60s | OK 9 of 10/HOUR 3600s \
         | OK 18 of 20/MINUTE 60s
         another [key2=d]@20/MINUTE [key2=d] => OK | OK 19 of 20/MINUTE 60s | OK 18 of 20/MINUTE 60s",
    ),
    case(
        "what follows a refund is not denied by what was known before it",
        "x20 another [key2=v]
         another [key2=v] => OVER | OVER 0 of 20/MINUTE 60s
         another [key2=v]!1~ [key2=v] => OK | OK 1 of 20/MINUTE 60s | OK 0 of 20/MINUTE 60s
         another [key2=v] [key2=v]!2~ [key2=v] => OVER | OVER 0 of 20/MINUTE 60s | OK 2 of 20/MINUTE 60s \
         | OK 1 of 20/MINUTE 60s",
    ),
    case(
        "a limit of the request's own has the counter of its unit",
        "x3 another [key2=v]
         another [key2=v]@20/MINUTE => OK | OK 16 of 20/MINUTE 60s
         another [key2=v]@100/MINUTE => OK | OK 95 of 100/MINUTE 60s
         another [key2=v]@10/HOUR => OK | OK 9 of 10/HOUR 3600s
         another [key2=v]@10/SECOND => OK | OK 9 of 10/SECOND 1s
         another [key2=v] => OK | OK 14 of 20/MINUTE 60s
         another [new=v]@0/DAY => OVER | OVER 0 of 0/DAY 86400s
         metric weir_envoy_hits_total{domain=\"another\",rule=\"override\"} +5",
    ),
    case(
        "a unit that is none is refused, and nothing is charged",
        "another [key2=v] [key2=v]@10/UNKNOWN => InvalidArgument: descriptors.limit.unit is 0: it must be \
         SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), YEAR (6) or WEEK (7)
         another [key2=v] [key2=v]@10/8 => InvalidArgument: descriptors.limit.unit is 8: it must be \
         SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), YEAR (6) or WEEK (7)
         nope [key2=v]@10/-1 => InvalidArgument: descriptors.limit.unit is -1: it must be \
         SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), YEAR (6) or WEEK (7)
         another [key2=v] => OK | OK 19 of 20/MINUTE 60s",
    ),
    case(
        "a descriptor without entries matches nothing",
        "another [] [key2=v] => OK | OK | OK 19 of 20/MINUTE 60s",
    ),
];
