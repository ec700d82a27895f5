//! The called method: its path, and the message for given keys.

use prost::Message as _;

use super::plan::{CallMode, CallProtocol, PlannedQuestion};
use super::spread::Keys;
use super::stamp::Stamp;
use weir_proto::v1::ShouldAllowRequest;

/// gRPC's prefix of every message: a flag, not compressed, and the length.
const PREFIX: usize = 5;

/// Message template of a plan's calls.
#[derive(Debug)]
pub(super) struct CallShape {
    pub(super) mode: CallMode,
    pub(super) protocol: CallProtocol,
    /// The messages for each resource; keys use them in turn.
    stamps: Vec<Stamp>,
}

impl CallShape {
    pub(super) fn new(mode: CallMode, protocol: CallProtocol, ask: &PlannedQuestion) -> Self {
        // A map of attributes has no order, so it is encoded once for all calls.
        let attributes = ShouldAllowRequest {
            attributes: ask.attributes.iter().cloned().collect(),
            ..ShouldAllowRequest::default()
        }
        .encode_to_vec();
        let largest = ask.keys.saturating_sub(1);
        let stamp = |resource: &String| {
            let single =
                |key: &str| [request(ask, resource, key).encode_to_vec(), attributes.clone()].concat();
            match mode {
                CallMode::Other(method) | CallMode::OtherGet(method) => Stamp::new(largest, method.message),
                _ if protocol == CallProtocol::Http => Stamp::new(largest, |key| json(ask, resource, key)),
                CallMode::Unary => Stamp::new(largest, single),
                CallMode::Batch(_) => Stamp::new(largest, |key| field(1, &single(key))),
                CallMode::Stream(_) => Stamp::new(largest, |key| field(2, &single(key))),
                CallMode::Envoy => Stamp::new(largest, |key| envoy(ask, key)),
            }
        };
        Self { mode, protocol, stamps: ask.resources.iter().map(stamp).collect() }
    }

    fn stamp(&self, key: u64) -> Option<&Stamp> {
        match &self.stamps[..] {
            [one] => Some(one),
            all => all.get((key % all.len().max(1) as u64) as usize),
        }
    }

    /// The method, as a path.
    pub(super) const fn path(&self) -> &'static str {
        match self.mode {
            CallMode::Unary => "/weir.v1.RateLimitService/ShouldAllow",
            CallMode::Batch(_) => "/weir.v1.RateLimitService/ShouldAllowBatch",
            CallMode::Stream(_) => "/weir.v1.RateLimitService/ShouldAllowStream",
            CallMode::Envoy => "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            CallMode::Other(method) | CallMode::OtherGet(method) => method.path,
        }
    }

    /// Replaces `out` by the next call's message, of gRPC with its prefix. Returns the last of its keys.
    pub(super) fn write(&self, keys: &mut Keys, out: &mut Vec<u8>) -> u64 {
        out.clear();
        if self.protocol == CallProtocol::Http {
            return self.write_json(keys, out);
        }
        out.extend_from_slice(&[0; PREFIX]);
        let mut key = 0;
        for question in 0..self.mode.decisions() {
            key = keys.next();
            let Some(stamp) = self.stamp(key) else { continue };
            if self.mode.is_stream() {
                open_question(question as u64, stamp.length(key), out);
            }
            stamp.write(key, out);
        }
        let length = u32::try_from(out.len() - PREFIX).unwrap_or(u32::MAX);
        out[1..PREFIX].copy_from_slice(&length.to_be_bytes());
        key
    }

    fn write_json(&self, keys: &mut Keys, out: &mut Vec<u8>) -> u64 {
        let is_batch = matches!(self.mode, CallMode::Batch(_));
        let (open, close): (&[u8], &[u8]) = if is_batch { (b"{\"requests\":[", b"]}") } else { (b"", b"") };
        out.extend_from_slice(open);
        let mut key = 0;
        for question in 0..self.mode.decisions() {
            key = keys.next();
            if question > 0 {
                out.push(b',');
            }
            if let Some(stamp) = self.stamp(key) {
                stamp.write(key, out);
            }
        }
        out.extend_from_slice(close);
        key
    }

    /// Length of the longest message.
    pub(super) fn longest(&self) -> usize {
        // The id of a question on a stream is its position in the message.
        const ID: usize = 16;
        let longest = self.stamps.iter().map(Stamp::longest).max().unwrap_or(0);
        (longest + ID) * self.mode.decisions()
    }
}

/// The beginning of a `StreamedRequest` whose request has `length` bytes.
fn open_question(id: u64, length: usize, out: &mut Vec<u8>) {
    const REQUESTS: u8 = 1 << 3 | 2;
    const ID: u8 = 1 << 3;
    let id_length = 1 + prost::encoding::encoded_len_varint(id);
    out.push(REQUESTS);
    prost::encoding::encode_varint((id_length + length) as u64, out);
    out.push(ID);
    prost::encoding::encode_varint(id, out);
}

fn fill(template: &str, key: &str) -> String {
    template.replace("{key}", key)
}

fn request(ask: &PlannedQuestion, resource: &str, key: &str) -> ShouldAllowRequest {
    ShouldAllowRequest {
        resource: fill(resource, key),
        consumer: fill(&ask.consumer, key),
        strategy: ask.strategy.clone(),
        cost: (ask.cost != 1).then_some(ask.cost),
        ..ShouldAllowRequest::default()
    }
}

/// Writes a question as JSON.
fn json(ask: &PlannedQuestion, resource: &str, key: &str) -> Vec<u8> {
    let mut request =
        serde_json::json!({ "resource": fill(resource, key), "consumer": fill(&ask.consumer, key) });
    if !ask.strategy.is_empty() {
        request["strategy"] = ask.strategy.as_str().into();
    }
    if ask.cost != 1 {
        request["cost"] = ask.cost.into();
    }
    if !ask.attributes.is_empty() {
        let attributes = ask.attributes.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        request["attributes"] = serde_json::Value::Object(attributes.collect());
    }
    request.to_string().into_bytes()
}

/// Envoy's `RateLimitRequest` with the few fields that matter here.
fn envoy(ask: &PlannedQuestion, key: &str) -> Vec<u8> {
    let entry = |(name, value): &(String, String)| {
        field(1, &[field(1, name.as_bytes()), field(2, fill(value, key).as_bytes())].concat())
    };
    let descriptor: Vec<u8> = ask.descriptor.iter().flat_map(entry).collect();
    let mut out = [field(1, ask.domain.as_bytes()), field(2, &descriptor)].concat();
    const HITS_ADDEND: u8 = 3 << 3;
    out.push(HITS_ADDEND);
    prost::encoding::encode_varint(ask.cost, &mut out);
    out
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spread;
    use weir_proto::v1::{ShouldAllowBatchRequest, ShouldAllowStreamRequest, StreamedRequest};

    fn ask() -> PlannedQuestion {
        PlannedQuestion {
            resources: vec!["api/{key}".to_owned()],
            consumer: "user_{key}".to_owned(),
            strategy: "burst".to_owned(),
            attributes: vec![("region".to_owned(), "eu".to_owned()), ("tenant".to_owned(), "a".to_owned())],
            cost: 7,
            domain: "edge".to_owned(),
            descriptor: vec![("user".to_owned(), "user_{key}".to_owned())],
            keys: 1,
            spread: Spread::Uniform,
        }
    }

    fn message(mode: CallMode) -> Vec<u8> {
        let mut out = Vec::new();
        let mut keys = Keys::new(1, Spread::Uniform, 1).unwrap();
        CallShape::new(mode, CallProtocol::Grpc, &ask()).write(&mut keys, &mut out);
        assert_eq!(out[0], 0);
        assert_eq!(u32::from_be_bytes([out[1], out[2], out[3], out[4]]) as usize, out.len() - PREFIX);
        out.split_off(PREFIX)
    }

    #[test]
    fn requests_are_what_a_client_would_send() {
        let one = ShouldAllowRequest {
            attributes: ask().attributes.into_iter().collect(),
            ..request(&ask(), "api/{key}", "0")
        };
        assert_eq!(one.consumer, "user_0");
        assert_eq!(ShouldAllowRequest::decode(&*message(CallMode::Unary)).unwrap(), one);
        let batch = ShouldAllowBatchRequest::decode(&*message(CallMode::Batch(3))).unwrap();
        assert_eq!(batch.requests, vec![one.clone(); 3]);
        let streamed = ShouldAllowStreamRequest::decode(&*message(CallMode::Stream(300))).unwrap();
        let question = |id| StreamedRequest { id, request: Some(one.clone()) };
        assert_eq!(streamed.requests, (0..300).map(question).collect::<Vec<_>>());
    }

    #[test]
    fn keys_use_the_resources_in_turn() {
        let ask = PlannedQuestion {
            resources: ["a", "b", "c/{key}"].map(str::to_owned).into(),
            keys: 100,
            ..ask()
        };
        let shape = CallShape::new(CallMode::Unary, CallProtocol::Grpc, &ask);
        for (key, resource) in [(0, "a"), (1, "b"), (2, "c/2"), (3, "a"), (11, "c/11")] {
            let mut message = Vec::new();
            shape.stamp(key).unwrap().write(key, &mut message);
            assert_eq!(ShouldAllowRequest::decode(&*message).unwrap().resource, resource);
        }
    }

    #[test]
    fn envoy_is_asked_in_its_own_words() {
        let expected = b"\x0a\x04edge\x12\x10\x0a\x0e\x0a\x04user\x12\x06user_0\x18\x07";
        assert_eq!(message(CallMode::Envoy), expected);
    }
}
