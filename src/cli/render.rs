//! Formats an answer as text and as proto-JSON.

use std::fmt::Write as _;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use weir_proto::DESCRIPTORS;
use weir_proto::v1::{LimitStatus, Reason, ShouldAllowResponse};

pub(super) const RESPONSE: &str = "weir.v1.ShouldAllowResponse";
pub(super) const RESERVE_RESPONSE: &str = "weir.v1.ReserveResponse";
pub(super) const DEBIT_RESPONSE: &str = "weir.v1.DebitResponse";
pub(super) const REFUND_RESPONSE: &str = "weir.v1.RefundResponse";
#[cfg(feature = "envoy")]
pub(super) const ENVOY_RESPONSE: &str = "envoy.service.ratelimit.v3.RateLimitResponse";

/// Formats pretty-printed proto-JSON with every field that has a value, including defaults.
pub(super) fn json(name: &str, response: &impl Message) -> Result<String> {
    let mut out = serde_json::Serializer::pretty(Vec::new());
    dynamic(name, response)?.serialize_with_options(&mut out, &with_defaults())?;
    Ok(String::from_utf8(out.into_inner())? + "\n")
}

/// The same on one line.
pub(super) fn json_line(name: &str, message: &impl Message) -> Result<String> {
    let mut out = serde_json::Serializer::new(Vec::new());
    dynamic(name, message)?.serialize_with_options(&mut out, &with_defaults())?;
    Ok(String::from_utf8(out.into_inner())? + "\n")
}

/// The message by its descriptor.
fn dynamic(name: &str, message: &impl Message) -> Result<DynamicMessage> {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    let pool = match POOL.get() {
        Some(pool) => pool,
        None => {
            let decoded = DescriptorPool::decode(DESCRIPTORS)?;
            POOL.get_or_init(|| decoded)
        }
    };
    let descriptor = pool.get_message_by_name(name).context("the message has no descriptor")?;
    Ok(DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())?)
}

fn with_defaults() -> SerializeOptions {
    SerializeOptions::new().skip_default_fields(false)
}

/// Formats the verdict, the numbers, and one line per limit.
pub(super) fn text(response: &ShouldAllowResponse) -> String {
    let mut out = String::from(if response.allowed { "allowed" } else { "denied" });
    if !response.message.is_empty() {
        let _ = write!(out, ": {}", response.message);
    }
    out.push('\n');
    if response.reason() == Reason::AllowList {
        out.push_str("  the consumer is on the allow list: no limit was asked, nothing was charged\n");
    }
    if response.degraded {
        out.push_str("  degraded: the store failed, and the strategy's failure policy answered\n");
    }
    if let (Some(remaining), Some(limit)) = (response.remaining, response.limit) {
        let waits = waits(response.retry_after.as_ref(), response.reset_after.as_ref());
        let _ = writeln!(out, "  {remaining} of {limit} remaining{waits}");
    }
    if let Some(granted) = response.granted.filter(|_| response.allowed) {
        let known = if response.applied == Some(false) { ", as it was answered before" } else { "" };
        let _ = writeln!(out, "  {granted} granted{known}");
    }
    if let Some(held_for) = response.held_for.as_ref() {
        let _ = writeln!(out, "  held for {}, until it is settled", duration(held_for));
    }
    if let Some(wait) = response.wait.as_ref().filter(|_| response.allowed) {
        let _ = writeln!(out, "  starts in {}", duration(wait));
    }
    let width = response.limits.iter().map(|limit| limit.name.len()).max().unwrap_or(0);
    for limit in &response.limits {
        let _ = writeln!(out, "    {:width$}  {}", limit.name, limit_line(limit));
    }
    for (name, value) in &response.headers {
        let _ = writeln!(out, "  {name}: {value}");
    }
    out
}

fn limit_line(limit: &LimitStatus) -> String {
    let verdict = match limit.cause.as_str() {
        _ if limit.allowed => "allows",
        "never" => "denies: the cost is above the limit",
        _ => "denies",
    };
    let waits = waits(limit.retry_after.as_ref(), limit.reset_after.as_ref());
    let granted = match limit.granted {
        0 => String::new(),
        granted if granted < limit.cost => format!(" {granted} of {}", limit.cost),
        granted => format!(" {granted}"),
    };
    let held = if limit.held > 0 { format!(", {} held", limit.held) } else { String::new() };
    format!("{verdict}{granted}, {} of {} remaining{held}{waits}", limit.remaining, limit.limit)
}

fn waits(retry: Option<&prost_types::Duration>, reset: Option<&prost_types::Duration>) -> String {
    let mut out = String::new();
    if let Some(retry) = retry {
        let _ = write!(out, ", retry in {}", duration(retry));
    }
    if let Some(reset) = reset {
        let _ = write!(out, ", full again in {}", duration(reset));
    }
    out
}

/// Formats what remains of a limit after a change by hand, at the end of a line.
pub(super) fn remaining(remaining: u64, limit: u64, reset_after: Option<&prost_types::Duration>) -> String {
    let full = reset_after.map(duration).unwrap_or_default();
    format!("{remaining} of {limit} remaining, full again in {full}\n")
}

/// Formats a duration for people: below a second exactly, below a minute to the millisecond, above it in two units. The
/// JSON output has the exact number.
pub(super) fn duration(span: &prost_types::Duration) -> String {
    if span.seconds < MINUTE {
        let text = match span.seconds {
            0 => format!("0.{:06}", span.nanos / 1_000),
            seconds => {
                let ms = seconds * 1_000 + i64::from(span.nanos).saturating_add(500_000) / 1_000_000;
                format!("{}.{:03}", ms / 1_000, ms % 1_000)
            }
        };
        return format!("{}s", text.trim_end_matches('0').trim_end_matches('.'));
    }
    let seconds = span.seconds.saturating_add(i64::from(span.nanos >= 500_000_000));
    match seconds {
        ..HOUR => two_units(seconds, (MINUTE, "m"), (1, "s")),
        HOUR..DAY => two_units(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ => two_units(seconds, (DAY, "d"), (HOUR, "h")),
    }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn two_units(seconds: i64, (large, large_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let rounded = seconds.saturating_add(small / 2) / small * small;
    match rounded % large / small {
        0 => format!("{}{large_name}", rounded / large),
        rest => format!("{}{large_name} {rest}{small_name}", rounded / large),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    fn shown(seconds: i64, nanos: i32) -> String {
        duration(&prost_types::Duration { seconds, nanos })
    }

    #[test]
    fn seconds_have_the_decimals_they_need() {
        assert_eq!(shown(9, 500_000_000), "9.5s");
        assert_eq!(shown(10, 0), "10s");
        assert_eq!(shown(0, 0), "0s");
        assert_eq!(shown(0, 1_000), "0.000001s");
        assert_eq!(shown(0, 999_999_000), "0.999999s");
        assert_eq!(shown(29, 968_556_000), "29.969s");
        assert_eq!(shown(59, 999_999_000), "60s");
    }

    #[test]
    fn durations_above_a_minute_have_two_units() {
        assert_eq!(shown(60, 0), "1m");
        assert_eq!(shown(599, 991_030_000), "10m");
        assert_eq!(shown(119, 400_000_000), "1m 59s");
        assert_eq!(shown(3_600, 0), "1h");
        assert_eq!(shown(86_399, 0), "24h");
        assert_eq!(shown(822_224, 534_347_000), "9d 12h");
        assert_eq!(shown(i64::MAX, 999_999_999), "106751991167300d 15h");
    }
}
