//! Package `grpc.health.v1`: the messages of tonic-health, and `List`, which it does not know yet.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
};
use tonic_health::pb::HealthCheckResponse;

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod generated {
    use super::{HealthListRequest, HealthListResponse};

    include!("generated/grpc.health.v1.rs");
}

pub use generated::health_server;

/// Asks for the status of all services.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct HealthListRequest {}

/// The status of each service.
#[derive(Clone, PartialEq, Message)]
pub struct HealthListResponse {
    /// By full name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub statuses: BTreeMap<String, HealthCheckResponse>,
}

/// The descriptors of the package, encoded: those of tonic-health, with `List`.
#[must_use]
pub fn descriptors() -> Vec<u8> {
    let known = tonic_health::pb::FILE_DESCRIPTOR_SET;
    let Ok(mut set) = FileDescriptorSet::decode(known) else { return known.to_vec() };
    for file in &mut set.file {
        let Some(service) = file.service.iter_mut().find(|service| service.name() == "Health") else {
            continue;
        };
        if service.method.iter().any(|method| method.name() == "List") {
            continue;
        }
        let of = |name: &str| Some(format!(".grpc.health.v1.{name}"));
        service.method.push(MethodDescriptorProto {
            name: Some("List".to_owned()),
            input_type: of("HealthListRequest"),
            output_type: of("HealthListResponse"),
            ..MethodDescriptorProto::default()
        });
        file.message_type.extend(list_messages());
    }
    set.encode_to_vec()
}

/// The two messages of `List`. A map is a list of entries.
fn list_messages() -> [DescriptorProto; 2] {
    let field =
        |name: &str, number, label: Label, kind: Type, type_name: Option<&str>| FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            label: Some(label.into()),
            r#type: Some(kind.into()),
            type_name: type_name.map(str::to_owned),
            json_name: Some(name.to_owned()),
            ..FieldDescriptorProto::default()
        };
    let message = |name: &str, field| DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    };
    let response = Some(".grpc.health.v1.HealthCheckResponse");
    let entry = message(
        "StatusesEntry",
        vec![
            field("key", 1, Label::Optional, Type::String, None),
            field("value", 2, Label::Optional, Type::Message, response),
        ],
    );
    let options = MessageOptions { map_entry: Some(true), ..MessageOptions::default() };
    let entry = DescriptorProto { options: Some(options), ..entry };
    let entries = Some(".grpc.health.v1.HealthListResponse.StatusesEntry");
    let list =
        message("HealthListResponse", vec![field("statuses", 1, Label::Repeated, Type::Message, entries)]);
    [message("HealthListRequest", Vec::new()), DescriptorProto { nested_type: vec![entry], ..list }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_have_list() {
        let set = FileDescriptorSet::decode(&descriptors()[..]).unwrap();
        let file = set.file.iter().find(|file| file.package() == "grpc.health.v1").unwrap();
        let methods: Vec<_> = file.service[0].method.iter().map(MethodDescriptorProto::name).collect();
        assert!(methods.contains(&"List") && methods.contains(&"Check"), "{methods:?}");
        let messages: Vec<_> = file.message_type.iter().map(DescriptorProto::name).collect();
        assert!(messages.contains(&"HealthListRequest") && messages.contains(&"HealthListResponse"));
    }
}
