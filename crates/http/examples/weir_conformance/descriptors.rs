//! The descriptors of the suite's messages, with which the layer reads and writes their JSON.

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
};
use weir_http::json::ProtoShapes;

pub(crate) const PACKAGE: &str = "connectrpc.conformance.v1";

/// A field: its name, number and type.
type FieldRow = (&'static str, i32, &'static str);

/// The messages, and their fields in the order of the proto. `[]` is a list, `?` a field with presence, and
/// `|` a member of a oneof.
const MESSAGES: [(&str, &[FieldRow]); 9] = [
    ("UnaryRequest", REQUEST),
    ("IdempotentUnaryRequest", REQUEST),
    ("UnaryResponse", RESPONSE),
    ("IdempotentUnaryResponse", RESPONSE),
    (
        "UnaryResponseDefinition",
        &[
            ("response_headers", 1, "[]Header"),
            ("response_data", 2, "|bytes"),
            ("error", 3, "|Error"),
            ("response_trailers", 4, "[]Header"),
            ("response_delay_ms", 6, "uint32"),
        ],
    ),
    ("Error", &[("code", 1, "Code"), ("message", 2, "?string"), ("details", 3, "[]Any")]),
    ("Header", &[("name", 1, "string"), ("value", 2, "[]string")]),
    ("ConformancePayload", &[("data", 1, "bytes"), ("request_info", 2, "ConformancePayload.RequestInfo")]),
    (
        "ConformancePayload.RequestInfo",
        &[("request_headers", 1, "[]Header"), ("timeout_ms", 2, "?int64"), ("requests", 3, "[]Any")],
    ),
];
const REQUEST: &[FieldRow] =
    &[("response_definition", 1, "UnaryResponseDefinition"), ("request_data", 2, "bytes")];
const RESPONSE: &[FieldRow] = &[("payload", 1, "ConformancePayload")];

const CODES: [&str; 17] = [
    "UNSPECIFIED",
    "CANCELED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

pub(crate) fn shapes() -> ProtoShapes {
    let message_type = MESSAGES.iter().map(|(name, fields)| message(name, fields)).collect();
    let value = |(number, code): (i32, &&str)| EnumValueDescriptorProto {
        name: Some(format!("CODE_{code}")),
        number: Some(number),
        ..Default::default()
    };
    let codes = EnumDescriptorProto {
        name: Some("Code".to_owned()),
        value: (0..).zip(&CODES).map(value).collect(),
        ..Default::default()
    };
    let method = |name: &str| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(format!(".{PACKAGE}.{name}Request")),
        output_type: Some(format!(".{PACKAGE}.{name}Response")),
        ..Default::default()
    };
    let service = ServiceDescriptorProto {
        name: Some("ConformanceService".to_owned()),
        method: ["Unary", "IdempotentUnary"].map(method).into(),
        ..Default::default()
    };
    let file = FileDescriptorProto {
        package: Some(PACKAGE.to_owned()),
        message_type,
        enum_type: vec![codes],
        service: vec![service],
        ..Default::default()
    };
    ProtoShapes::new(&FileDescriptorSet { file: vec![file] }.encode_to_vec()).unwrap()
}

fn message(name: &str, fields: &[FieldRow]) -> DescriptorProto {
    let field = fields.iter().map(|(name, number, kind)| field(name, *number, kind)).collect();
    DescriptorProto { name: Some(name.to_owned()), field, ..Default::default() }
}

fn field(name: &str, number: i32, kind: &str) -> FieldDescriptorProto {
    let of = kind.trim_start_matches(['[', ']', '?', '|']);
    let (of, type_name) = match of {
        "bytes" => (Type::Bytes, None),
        "string" => (Type::String, None),
        "uint32" => (Type::Uint32, None),
        "int64" => (Type::Int64, None),
        "Any" => (Type::Message, Some(".google.protobuf.Any".to_owned())),
        "Code" => (Type::Enum, Some(format!(".{PACKAGE}.Code"))),
        message => (Type::Message, Some(format!(".{PACKAGE}.{message}"))),
    };
    let label = if kind.starts_with('[') { Label::Repeated } else { Label::Optional };
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(of.into()),
        type_name,
        oneof_index: kind.starts_with(['?', '|']).then_some(0),
        proto3_optional: Some(kind.starts_with('?')),
        ..Default::default()
    }
}
