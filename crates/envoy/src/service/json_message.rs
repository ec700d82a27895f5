//! The mapping of Envoy's messages to proto3 JSON and back.

use prost::Message as _;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};
use weir_node::proto_json;

fn descriptor(name: &str) -> Option<MessageDescriptor> {
    proto_json::pool()?.get_message_by_name(&format!("envoy.service.ratelimit.v3.{name}"))
}

/// Returns the bytes of a request. Fields have either of their names; unknown ones are mistakes.
pub(super) fn from_json(text: &[u8]) -> Result<Vec<u8>, String> {
    let descriptor = descriptor("RateLimitRequest").ok_or("the request has no descriptor")?;
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let message = DynamicMessage::deserialize_with_options(descriptor, &mut reader, &options);
    let message = message.map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(message.encode_to_vec())
}

/// Returns an answer as JSON: names in lower camel case, 64-bit numbers as text, defaults left out.
pub(super) fn to_json(bytes: &[u8]) -> Option<String> {
    let message = DynamicMessage::decode(descriptor("RateLimitResponse")?, bytes).ok()?;
    let mut out = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut out, &SerializeOptions::new()).ok()?;
    String::from_utf8(out.into_inner()).ok()
}

#[cfg(test)]
mod tests {
    use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

    use super::*;

    #[test]
    fn requests_have_either_name_of_a_field() {
        for text in [
            r#"{"domain":"d","hitsAddend":3,"descriptors":[{"entries":[{"key":"k","value":"v"}],"hitsAddend":"5"}]}"#,
            r#"{"domain":"d","hits_addend":3,"descriptors":[{"entries":[{"key":"k","value":"v"}],"hits_addend":5}]}"#,
        ] {
            let request = RateLimitRequest::decode(&*from_json(text.as_bytes()).unwrap()).unwrap();
            assert_eq!((&*request.domain, request.hits_addend), ("d", 3));
            assert_eq!(request.descriptors[0].hits_addend, Some(5));
            assert_eq!(request.descriptors[0].entries[0].value, "v");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["", "[]", "{", r#"{"domain":1}"#, r#"{"nobody":1}"#, r#"{"domain":"d"} x"#] {
            assert!(from_json(text.as_bytes()).is_err(), "{text}");
        }
        let reason = from_json(br#"{"domain":"d","nobody":1}"#).unwrap_err();
        assert!(reason.contains("nobody"), "{reason}");
    }

    #[test]
    fn numbers_of_64_bits_are_text() {
        let message = RateLimitResponse { overall_code: 2, ..RateLimitResponse::default() };
        assert_eq!(to_json(&message.encode_to_vec()).unwrap(), r#"{"overallCode":"OVER_LIMIT"}"#);
    }
}
