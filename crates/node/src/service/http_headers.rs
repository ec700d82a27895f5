//! HTTP headers for the binding limit: those of draft-ietf-httpapi-ratelimit-headers-11, `Retry-After`, and the three
//! `X-RateLimit-*` that many clients know.
//!
//! Times are whole seconds, rounded up. Built only if the question asks for them.

use sfv::{Integer, KeyRef, ListSerializer, StringRef, key_ref};
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::Strategy;
use weir_units::{Micros, Retry};

use super::put::{nested, text};
use crate::limiter::Advice;

/// Field number of the map of headers.
const HEADERS: u32 = 14;
const BINDING: u32 = 15;

const RETRY_AFTER: &str = "Retry-After";

const QUOTA: &KeyRef = key_ref("q");
const WINDOW: &KeyRef = key_ref("w");
const REMAINING: &KeyRef = key_ref("r");
const NEXT_UNIT: &KeyRef = key_ref("t");

/// Appends the headers and the name of their limit. Values that no header can hold are omitted.
pub(crate) fn write(
    out: &mut Vec<u8>,
    strategy: &Strategy,
    verdict: &Verdict,
    limits: &[LimitVerdict],
    advice: Advice,
) {
    let (Some(limit), Some(said)) = (strategy.limits().get(advice.binding), limits.get(advice.binding))
    else {
        return;
    };
    let Ok(name) = StringRef::from_str(&limit.name) else { return };
    let reset = said.reset_after.secs_ceil();
    let window = Some(limit.algorithm.window(verdict.now).secs_ceil()).filter(|seconds| *seconds > 0);
    let next_unit = advice.next_unit.map(|wait| wait.secs_ceil());
    header(out, "RateLimit", &item(name, (REMAINING, said.remaining), (NEXT_UNIT, next_unit)));
    header(out, "RateLimit-Policy", &item(name, (QUOTA, limit.algorithm.limit()), (WINDOW, window)));
    if let (false, Retry::After(wait)) = (verdict.allowed, said.retry) {
        header(out, RETRY_AFTER, &wait.secs_ceil().to_string());
    }
    header(out, "X-RateLimit-Limit", &limit.algorithm.limit().to_string());
    header(out, "X-RateLimit-Remaining", &said.remaining.to_string());
    header(out, "X-RateLimit-Reset", &reset.to_string());
    text(out, BINDING, &limit.name);
}

/// Appends the header that says how long to wait, for a denial by no limit.
pub(crate) fn write_retry_after(out: &mut Vec<u8>, wait: Micros) {
    header(out, RETRY_AFTER, &wait.secs_ceil().to_string());
}

/// The two fields of a limit, for answers that are no map of headers: its name, how much it lets pass in a period of so many
/// seconds, what remains, and the seconds until it is full again. `None` if no header can hold the name.
pub fn fields(
    name: &str,
    limit: u64,
    remaining: u64,
    period_s: u64,
    reset_s: Option<u64>,
) -> Option<[(&'static str, String); 2]> {
    let name = StringRef::from_str(name).ok()?;
    Some([
        ("RateLimit", item(name, (REMAINING, remaining), (NEXT_UNIT, reset_s))),
        ("RateLimit-Policy", item(name, (QUOTA, limit), (WINDOW, Some(period_s)))),
    ])
}

/// An entry of the map; keys are written in order.
fn header(out: &mut Vec<u8>, name: &str, value: &str) {
    nested(out, HEADERS, |out| {
        text(out, 1, name);
        text(out, 2, value);
    });
}

/// A list of one item with one or two parameters.
fn item(
    name: &StringRef,
    (first, count): (&KeyRef, u64),
    (second, seconds): (&KeyRef, Option<u64>),
) -> String {
    let mut list = ListSerializer::new();
    let item = list.bare_item(name).parameter(first, integer(count));
    if let Some(seconds) = seconds {
        let _ = item.parameter(second, integer(seconds));
    }
    list.finish().unwrap_or_default()
}

/// The largest integer of a structured field has 15 digits; a limit may have 16.
fn integer(number: u64) -> Integer {
    Integer::try_from(number).unwrap_or(Integer::MAX)
}
