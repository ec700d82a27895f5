//! Files of limits as the messages that a control plane would send of them.

use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::{Descriptor, Matcher, Metadata};
use weir_proto::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitReplace,
};

/// The domains of these files. What the protocol has no field for is left out.
pub(crate) fn as_messages<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<RateLimitConfig> {
    let named: Vec<(String, &str)> =
        texts.into_iter().enumerate().map(|(index, text)| (format!("{index}.yaml"), text)).collect();
    let read = EnvoyFiles::parse(named.iter().map(|(name, text)| (name.as_str(), *text)), false)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let config = |(domain, descriptors): &(String, Vec<Descriptor>)| RateLimitConfig {
        name: format!("name-{domain}"),
        domain: domain.clone(),
        descriptors: descriptors.iter().map(message).collect(),
    };
    read.domains.iter().map(config).collect()
}

fn message(descriptor: &Descriptor) -> RateLimitDescriptor {
    let value = match &descriptor.matcher {
        Matcher::Any => String::new(),
        matcher => matcher.text(),
    };
    let draft = descriptor.rule.as_deref();
    let rate_limit = draft.map(|draft| {
        let replaces = draft.replaces.iter().map(|name| RateLimitReplace { name: name.clone() }).collect();
        let name = draft.name.clone();
        match &draft.limit {
            Some(limit) => RateLimitPolicy {
                unit: limit.unit().wire(),
                requests_per_unit: limit.requests_per_unit(),
                name,
                replaces,
                ..RateLimitPolicy::default()
            },
            None => RateLimitPolicy { unlimited: true, name, replaces, ..RateLimitPolicy::default() },
        }
    });
    let metadata = draft.and_then(|draft| draft.metadata.as_ref()).map(|metadata| match value_of(metadata) {
        prost_types::Value { kind: Some(prost_types::value::Kind::StructValue(fields)) } => fields,
        other => panic!("metadata are a mapping, not {other:?}"),
    });
    RateLimitDescriptor {
        key: descriptor.key.to_string(),
        value,
        rate_limit,
        descriptors: descriptor.descriptors.iter().map(message).collect(),
        shadow_mode: draft.is_some_and(|draft| draft.shadow_mode),
        quota_mode: draft.is_some_and(|draft| draft.quota_mode),
        detailed_metric: draft.is_some_and(|draft| draft.detailed_metric),
        metadata,
    }
}

fn value_of(metadata: &Metadata) -> prost_types::Value {
    use prost_types::value::Kind;
    let kind = match metadata {
        Metadata::Null => Kind::NullValue(0),
        Metadata::Bool(value) => Kind::BoolValue(*value),
        Metadata::Number(number) => Kind::NumberValue(*number),
        Metadata::Text(text) => Kind::StringValue(text.to_string()),
        Metadata::List(values) => {
            Kind::ListValue(prost_types::ListValue { values: values.iter().map(value_of).collect() })
        }
        Metadata::Map(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.to_string(), value_of(value)));
            Kind::StructValue(prost_types::Struct { fields: fields.collect() })
        }
    };
    prost_types::Value { kind: Some(kind) }
}
