//! JSON of every message, beside that of another library.

use prost_reflect::prost::Message as _;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    SerializeOptions, Value,
};
use prost_types::FileDescriptorSet;
use weir_http::json::{ProtoShapes, UnknownFields};

use super::same_answers::Numbers;

const ROUNDS: usize = 60;

#[test]
fn requests_are_read_and_answers_written_as_another_library_does() {
    let pool = DescriptorPool::decode(weir_proto::DESCRIPTORS).unwrap();
    let shapes = weir_http::shapes().unwrap();
    let options = SerializeOptions::new().skip_default_fields(false);
    let mut numbers = Numbers(42);
    let mut methods = 0;
    for service in pool.services().filter(|service| service.full_name().starts_with("weir.v1.")) {
        for method in service.methods() {
            let path = format!("/{}/{}", service.full_name(), method.name());
            let shape = shapes.method(&path).unwrap();
            assert_eq!(
                shape.is_stream,
                method.is_client_streaming() || method.is_server_streaming(),
                "{path}"
            );
            for _ in 0..ROUNDS {
                let request = message(&method.input(), &mut numbers, 3);
                let text = json(&request, &SerializeOptions::new());
                let read = shapes.read(shape, text.as_bytes(), UnknownFields::Refuse);
                let read = read.unwrap_or_else(|error| panic!("{path}: {text}: {error}"));
                let again = DynamicMessage::decode(method.input(), read.as_slice()).unwrap();
                // Fields that were set to their defaults are equal to unset ones.
                assert_eq!(value_of(&again), value_of(&request), "{path}: {text}");
                let answer = message(&method.output(), &mut numbers, 3);
                let written = shapes.write(shape, &answer.encode_to_vec()).unwrap();
                let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
                let wanted: serde_json::Value = serde_json::from_str(&json(&answer, &options)).unwrap();
                assert_eq!(written, wanted, "{path}");
            }
            methods += 1;
        }
    }
    assert!(methods > 30, "{methods}");
}

/// An `Any` has the fields of its message beside its type, which may stand behind them.
#[test]
fn messages_of_any_type() {
    const SERVICE: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
    let mut set = FileDescriptorSet::decode(weir_proto::DESCRIPTORS).unwrap();
    let services = set.file.iter_mut().flat_map(|file| &mut file.service);
    for method in services.flat_map(|service| &mut service.method) {
        method.input_type.clone_from(&method.output_type);
    }
    let (pool, shapes) = (DescriptorPool::decode(weir_proto::DESCRIPTORS).unwrap(), set.encode_to_vec());
    let shapes = ProtoShapes::new(&shapes).unwrap();
    let method = shapes.method(&format!("/{SERVICE}/StreamAggregatedResources")).unwrap();
    let message = pool.get_message_by_name("envoy.service.discovery.v3.DiscoveryResponse").unwrap();
    let read = |any: &str| {
        let text = format!(r#"{{"resources":[{any}]}}"#);
        let ours =
            shapes.read(method, text.as_bytes(), UnknownFields::Refuse).map_err(|it| it.to_string())?;
        let mut reader = serde_json::Deserializer::from_str(&text);
        let theirs = DynamicMessage::deserialize(message.clone(), &mut reader).unwrap();
        assert_eq!(DynamicMessage::decode(message.clone(), ours.as_slice()).unwrap(), theirs, "{text}");
        let written: serde_json::Value =
            serde_json::from_slice(&shapes.write(method, &ours).unwrap()).unwrap();
        let options = SerializeOptions::new().skip_default_fields(false);
        let wanted: serde_json::Value = serde_json::from_str(&json(&theirs, &options)).unwrap();
        assert_eq!(written, wanted, "{text}");
        Ok::<_, String>(())
    };
    read(r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"a":"b"}}"#).unwrap();
    read(r#"{"reason":"x","@type":"type.googleapis.com/google.rpc.ErrorInfo"}"#).unwrap();
    read(r#"{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1.5s"}"#).unwrap();
    let mistakes = [
        (r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reasn":"x"}"#, "did you mean `reason`?"),
        (r#"{"@type":"type.googleapis.com/none.None"}"#, "none.None is not an object with its type"),
        (r#"{"reason":"x"}"#, "is not an object with its type in `@type`"),
        (r#"{"reason":"x","reason":"y"}"#, "is given twice"),
    ];
    for (any, part) in mistakes {
        let mistake = read(any).unwrap_err();
        assert!(mistake.contains(part), "{any}: {mistake}");
    }
}

/// Whatever the bytes are, nothing panics: what is read is a message, or there is an error.
#[test]
fn mutated_bodies_are_messages_or_mistakes() {
    let shapes = weir_http::shapes().unwrap();
    let method = shapes.method("/weir.v1.RateLimitService/ShouldAllow").unwrap();
    let whole = br#"{"resource":"a","cost":"12","attributes":{"k":"v"},"inline":{"fixedWindow":{"limit":3,"window":"1.5s"}},"peek":true}"#;
    let pool = DescriptorPool::decode(weir_proto::DESCRIPTORS).unwrap();
    let request = pool.get_message_by_name("weir.v1.ShouldAllowRequest").unwrap();
    let (mut numbers, mut good) = (Numbers(7), 0);
    for _ in 0..20_000 {
        let mut text = whole.to_vec();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(text.len() as u64) as usize;
            match numbers.below(3) {
                0 => text[at] = numbers.below(256) as u8,
                1 => drop(text.remove(at)),
                _ => text.insert(at, b"{}[]\",:0e.-\\u"[numbers.below(13) as usize]),
            }
        }
        if let Ok(bytes) = shapes.read(method, &text, UnknownFields::Ignore) {
            DynamicMessage::decode(request.clone(), bytes.as_slice()).unwrap();
            good += 1;
        }
        let _ = shapes.write(method, &text);
    }
    assert!(good > 500, "{good}");
}

fn value_of(message: &DynamicMessage) -> serde_json::Value {
    serde_json::from_str(&json(message, &SerializeOptions::new())).unwrap()
}

fn json(message: &DynamicMessage, options: &SerializeOptions) -> String {
    let mut out = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut out, options).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

fn message(of: &MessageDescriptor, numbers: &mut Numbers, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    match of.full_name() {
        "google.protobuf.Duration" => {
            let seconds = numbers.below(1 << 40) as i64 % 315_576_000_000;
            let nanos = [0, 500_000_000, 1_000, 123_456_789][numbers.below(4) as usize];
            message.set_field_by_name("seconds", Value::I64(seconds));
            message.set_field_by_name("nanos", Value::I32(nanos));
            return message;
        }
        "google.protobuf.Timestamp" => {
            let seconds = numbers.below(315_537_897_600) as i64 - 62_135_596_800;
            message.set_field_by_name("seconds", Value::I64(seconds));
            message.set_field_by_name("nanos", Value::I32(numbers.below(1_000_000_000) as i32));
            return message;
        }
        _ => {}
    }
    for field in of.fields() {
        if numbers.below(3) == 0 || (depth == 0 && matches!(field.kind(), Kind::Message(_))) {
            continue;
        }
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else { unreachable!() };
            let held = entry.map_entry_value_field();
            let keys = ["", "a", "\u{e9}\"\n"];
            let count = numbers.below(4) as usize;
            Value::Map(
                keys.iter()
                    .take(count)
                    .map(|key| (MapKey::String((*key).into()), value(&held, numbers, depth)))
                    .collect(),
            )
        } else if field.cardinality() == Cardinality::Repeated {
            Value::List((0..numbers.below(3)).map(|_| value(&field, numbers, depth)).collect())
        } else {
            value(&field, numbers, depth)
        };
        message.set_field(&field, value);
    }
    message
}

fn value(field: &FieldDescriptor, numbers: &mut Numbers, depth: usize) -> Value {
    let number = match numbers.below(4) {
        0 => 0,
        1 => u64::MAX,
        2 => numbers.below(200),
        _ => numbers.next(),
    };
    match field.kind() {
        Kind::Bool => Value::Bool(number % 2 == 1),
        Kind::Int32 => Value::I32(number as i32),
        Kind::Int64 => Value::I64(number as i64),
        Kind::Uint32 => Value::U32(number as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(number),
        Kind::String => {
            Value::String(["", "plain", "\u{1}\u{2028}\"\\/\u{1f600}"][(number % 3) as usize].into())
        }
        Kind::Bytes => Value::Bytes(number.to_le_bytes()[..(number % 9) as usize].to_vec().into()),
        Kind::Enum(it) => {
            let values: Vec<i32> = it.values().map(|value| value.number()).collect();
            Value::EnumNumber(values[(number % values.len() as u64) as usize])
        }
        Kind::Message(of) => Value::Message(message(&of, numbers, depth.saturating_sub(1))),
        kind => unreachable!("{kind:?} is a kind that JSON is not written for"),
    }
}
