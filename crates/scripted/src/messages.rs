//! Messages of any method of `proto/`, from bytes to JSON and back.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, SerializeOptions};
use serde_json::{Map, Value};

/// The form in which a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptedForm {
    /// As bytes, over gRPC.
    Proto,
    /// As JSON, over HTTP.
    Json,
}

/// The descriptors.
pub(crate) struct WireMessages(DescriptorPool);

impl WireMessages {
    /// Reads the descriptors of `proto/`.
    pub(crate) fn new() -> Result<Self, String> {
        let pool = DescriptorPool::decode(weir_proto::DESCRIPTORS);
        Ok(Self(pool.map_err(|error| format!("descriptors: {error}"))?))
    }

    /// Returns the fields of a request, all of them, or nothing if the bytes are no request of this path.
    pub(crate) fn request(&self, path: &str, bytes: &[u8], form: ScriptedForm) -> Option<Map<String, Value>> {
        let input = self.method(path)?.input();
        let message = match form {
            ScriptedForm::Proto => DynamicMessage::decode(input, bytes).ok()?,
            ScriptedForm::Json => {
                DynamicMessage::deserialize(input, serde_json::from_slice::<Value>(bytes).ok()?).ok()?
            }
        };
        let options = SerializeOptions::new().stringify_64_bit_integers(false);
        match message.serialize_with_options(serde_json::value::Serializer, &options) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        }
    }

    /// Returns the bytes of an answer of this path.
    pub(crate) fn answer(&self, path: &str, fields: &Value, form: ScriptedForm) -> Result<Bytes, String> {
        let method = self.method(path).ok_or_else(|| format!("{path} is no method"))?;
        let fields = if fields.is_null() { &Value::Object(Map::new()) } else { fields };
        let message = DynamicMessage::deserialize(method.output(), fields);
        let message = message.map_err(|error| format!("decision: {error}"))?;
        match form {
            ScriptedForm::Proto => Ok(message.encode_to_vec().into()),
            ScriptedForm::Json => {
                // As Weir writes it: with the fields that have their default.
                let options = SerializeOptions::new().skip_default_fields(false);
                let json = message.serialize_with_options(serde_json::value::Serializer, &options);
                Ok(json.map_err(|error| format!("decision: {error}"))?.to_string().into())
            }
        }
    }

    fn method(&self, path: &str) -> Option<MethodDescriptor> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        self.0.get_service_by_name(service)?.methods().find(|method| method.name() == name)
    }
}
