//! `RateLimitResponse`, encoded directly from an answer.

use weir_node::service::put::{Packed, nested, number, put, text};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::{headers, metadata};
use crate::limiter::{DescriptorStatus, RateLimitAnswer, RateLimitAsk};
use crate::settings::EnvoyConfig;

/// Appends the response.
pub(super) fn write(
    out: &mut Vec<u8>,
    answer: &RateLimitAnswer<'_>,
    ask: &RateLimitAsk<'_>,
    config: &EnvoyConfig,
) {
    number(out, 1, code(answer.overall.over));
    for one in &answer.statuses {
        nested(out, 2, |out| StatusFields::new(one).write(out));
    }
    if config.headers {
        for (name, value) in headers::limit_headers(config, answer) {
            nested(out, 3, |out| {
                text(out, 1, name);
                text(out, 2, itoa::Buffer::new().format(value));
            });
        }
    }
    if config.standard_headers {
        for (name, value) in headers::standard(answer).into_iter().flatten() {
            nested(out, 3, |out| {
                text(out, 1, name);
                text(out, 2, &value);
            });
        }
    }
    if config.dynamic_metadata {
        nested(out, 6, |out| metadata::write(out, answer, ask));
    }
}

const fn code(over: bool) -> u64 {
    (if over { Code::OverLimit } else { Code::Ok }) as u64
}

/// Most seconds that are packed with what remains: five sevens of bits.
const MOST_SECONDS: u64 = (1 << 35) - 1;

/// Content of a status.
#[derive(Clone, Copy)]
struct StatusFields<'a> {
    code: u64,
    /// Requests per unit, the number of the unit, and the name.
    limit: Option<(u32, u32, &'a str)>,
    remaining: u32,
    until_reset_s: Option<u64>,
}

impl<'a> StatusFields<'a> {
    #[inline]
    fn new(one: &'a DescriptorStatus<'_>) -> Self {
        let name = one.rule().map_or("", |rule| &rule.name);
        // Both of Envoy's enumerations number the units alike.
        let limit =
            one.limit().map(|limit| (limit.requests_per_unit(), limit.unit().wire().unsigned_abs(), name));
        let (remaining, until_reset_s) = (one.remaining, one.until_reset_s);
        Self { code: code(one.is_over()), limit, remaining, until_reset_s }
    }

    /// Each half of the usual status is put together in a register.
    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        let Self { code, limit: Some((requests, unit, "")), until_reset_s: Some(seconds), .. } = self else {
            return self.write_any(out);
        };
        if seconds > MOST_SECONDS {
            return self.write_any(out);
        }
        let limit = field(field(Packed::NOTHING, 1, requests.into()), 2, unit.into());
        put(out, field(Packed::NOTHING, 1, code).then(limit.nested(2)));
        let reset = field(Packed::NOTHING, 1, seconds);
        put(out, field(Packed::NOTHING, 3, self.remaining.into()).then(reset.nested(4)));
    }

    fn write_any(self, out: &mut Vec<u8>) {
        number(out, 1, self.code);
        if let Some((requests, unit, name)) = self.limit {
            nested(out, 2, |out| {
                number(out, 1, requests.into());
                number(out, 2, unit.into());
                text(out, 3, name);
            });
        }
        number(out, 3, self.remaining.into());
        if let Some(seconds) = self.until_reset_s {
            nested(out, 4, |out| number(out, 1, seconds));
        }
    }
}

/// Appends a number, omitted if it is 0.
#[inline]
const fn field(before: Packed, field: u32, number: u64) -> Packed {
    if number == 0 { before } else { before.number(field, number) }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use weir_proto::envoy::service::ratelimit::v3::RateLimitResponse;
    use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::{DescriptorStatus, RateLimit};

    use super::*;

    #[test]
    fn a_status_is_written_as_the_generated_type_writes_it() {
        let edges = (0..=50).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for (place, seconds) in edges.enumerate() {
            let [requests, remaining] = [seconds, seconds.rotate_left(17)].map(|number| number as u32);
            for name in ["", "name"] {
                let unit = place as u32 % 8;
                let fields = StatusFields {
                    code: 1 + place as u64 % 2,
                    limit: (place % 5 != 0).then_some((requests, unit, name)),
                    remaining,
                    until_reset_s: (place % 7 != 0).then_some(seconds),
                };
                let mut out = Vec::new();
                nested(&mut out, 2, |out| fields.write(out));
                let current_limit = fields.limit.map(|(requests_per_unit, unit, name)| RateLimit {
                    name: name.to_owned(),
                    requests_per_unit,
                    unit: unit as i32,
                });
                let until = |seconds| prost_types::Duration { seconds: seconds as i64, nanos: 0 };
                let status = DescriptorStatus {
                    code: fields.code as i32,
                    current_limit,
                    limit_remaining: remaining,
                    duration_until_reset: fields.until_reset_s.map(until),
                };
                let expected = RateLimitResponse { statuses: vec![status], ..RateLimitResponse::default() };
                assert_eq!(out, expected.encode_to_vec(), "{seconds} {name}");
            }
        }
    }
}
