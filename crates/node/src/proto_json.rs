//! The mapping of Protobuf to JSON, for messages that are written rarely.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

static POOL: LazyLock<Option<DescriptorPool>> =
    LazyLock::new(|| DescriptorPool::decode(weir_proto::DESCRIPTORS).ok());

/// The descriptors of everything in `proto/`. They are part of the program, so none is missing.
pub fn pool() -> Option<&'static DescriptorPool> {
    POOL.as_ref()
}

/// Returns a message of this full name on one line, without fields that have their defaults.
pub fn line(name: &str, message: &impl Message) -> Option<String> {
    let descriptor = pool()?.get_message_by_name(name)?;
    let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).ok()?;
    let mut out = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut out, &SerializeOptions::new()).ok()?;
    String::from_utf8(out.into_inner()).ok()
}
