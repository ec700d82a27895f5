//! WireMessages of any method of `proto/`, from bytes to JSON and back.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, SerializeOptions};
use serde_json::{Map, Value};

/// The descriptors.
pub(crate) struct WireMessages(DescriptorPool);

impl WireMessages {
    /// Reads the descriptors of `proto/`.
    pub(crate) fn new() -> Result<Self, String> {
        let pool = DescriptorPool::decode(weir_proto::DESCRIPTORS);
        Ok(Self(pool.map_err(|error| format!("descriptors: {error}"))?))
    }

    /// Returns the fields of a request, all of them, or nothing if the bytes are no request of this path.
    pub(crate) fn request(&self, path: &str, bytes: &[u8]) -> Option<Map<String, Value>> {
        let message = DynamicMessage::decode(self.method(path)?.input(), bytes).ok()?;
        let options = SerializeOptions::new().stringify_64_bit_integers(false);
        match message.serialize_with_options(serde_json::value::Serializer, &options) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        }
    }

    /// Returns the bytes of an answer of this path.
    pub(crate) fn answer(&self, path: &str, fields: &Value) -> Result<Bytes, String> {
        let method = self.method(path).ok_or_else(|| format!("{path} is no method"))?;
        let fields = if fields.is_null() { &Value::Object(Map::new()) } else { fields };
        let message = DynamicMessage::deserialize(method.output(), fields);
        Ok(message.map_err(|error| format!("decision: {error}"))?.encode_to_vec().into())
    }

    fn method(&self, path: &str) -> Option<MethodDescriptor> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        self.0.get_service_by_name(service)?.methods().find(|method| method.name() == name)
    }
}
