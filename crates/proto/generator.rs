//! Generates what `src/generated` has from `proto/`, without protoc: a file for each of our own protos with its messages, clients
//! and servers, a file for each package of others, and the descriptors.
//!
//! The build script writes them with the feature `generate`; a test compares them. So nobody who builds Weir compiles a compiler
//! of protos first.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use prost::Message as _;
use prost_build::Module;
use prost_types::{FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto};
use tonic_build::manual::{Builder, Method, Service};

/// Methods whose traits pass messages as bytes: they are called by the million.
const HOT: [&str; 4] = ["ShouldAllow", "ShouldAllowBatch", "ShouldAllowStream", "ShouldRateLimit"];

/// Our own package.
const OWN: &str = "weir.v1";

/// Headers and costs are written in the order of their names.
const SORTED: [&str; 5] = [
    ".weir.v1.ShouldAllowResponse.headers",
    ".google.rpc.ErrorInfo.metadata",
    ".weir.v1.UsageSeries.costs",
    ".weir.v1.UsageSeries.units",
    ".weir.v1.UsagePoint.costs",
];

/// The files by their names. `scratch` is an empty folder, for what is not finished.
pub(crate) fn generated(protos: &Path, scratch: &Path) -> Result<BTreeMap<String, Vec<u8>>, Box<dyn Error>> {
    let others = [
        "google/rpc/error_details.proto",
        "envoy/service/ratelimit/v3/rls.proto",
        "envoy/service/discovery/v3/ads.proto",
        "ratelimit/config/ratelimit/v3/rls_conf.proto",
    ];
    let others = others.map(ToOwned::to_owned);
    let descriptors = protox::compile([own_protos(protos)?, others.into()].concat(), [protos])?;
    let mut files = messages(&descriptors)?;
    for (name, text) in servers(&descriptors, scratch)? {
        files.entry(name).or_default().push_str(&text);
    }
    let own = files.keys().filter(|name| name.starts_with(OWN));
    let list = own.map(|name| format!("include!(\"{name}\");\n")).collect();
    files.insert(format!("{OWN}.rs"), list);
    let mut files: BTreeMap<_, _> = files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    files.insert("descriptors.bin".to_owned(), descriptors.encode_to_vec());
    Ok(files)
}

/// Returns our own protos. They are found by their folder, because each feature may have one.
fn own_protos(protos: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(protos.join("weir/v1"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        files.extend(name.ends_with(".proto").then(|| format!("weir/v1/{name}")));
    }
    files.sort();
    Ok(files)
}

/// Messages and clients. `tonic_prost_build` has one codec for all methods, so it does not write the servers.
fn messages(descriptors: &FileDescriptorSet) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut config = prost_build::Config::new();
    config.service_generator(tonic_prost_build::configure().build_server(false).service_generator());
    config.btree_map(SORTED);
    // Nothing is generated for `google.protobuf`, whose types are those of prost_types.
    let requests =
        descriptors.file.iter().map(|file| (Module::from_parts([stem(file)]), file.clone())).collect();
    let written = config.generate(requests)?;
    Ok(written.into_iter().map(|(module, text)| (module.to_file_name_or(OWN), text)).collect())
}

/// Server traits, by the file to which they belong.
fn servers(descriptors: &FileDescriptorSet, scratch: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let (mut services, mut places) = (vec![health()], Vec::new());
    for file in &descriptors.file {
        for service in &file.service {
            let mut builder = Service::builder().name(service.name()).package(file.package());
            for method in &service.method {
                builder = builder.method(server_method(file.package(), method)?);
            }
            services.push(builder.build());
            places.push((format!("{}.{}.rs", file.package(), service.name()), format!("{}.rs", stem(file))));
        }
    }
    places.push(("grpc.health.v1.Health.rs".to_owned(), "grpc.health.v1.rs".to_owned()));
    Builder::new().build_client(false).out_dir(scratch).compile(&services);
    let read = |(written, place): (String, String)| Ok((place, fs::read_to_string(scratch.join(written))?));
    places.into_iter().map(read).collect()
}

/// The name of the file for what a proto has: one for each of our own, one for each package of others.
fn stem(file: &FileDescriptorProto) -> String {
    let name = Path::new(file.name()).file_stem().unwrap_or_default().to_string_lossy();
    if file.package() == OWN { format!("{OWN}.{name}") } else { file.package().to_owned() }
}

/// `grpc.health.v1`, whose messages are those of tonic-health, which does not know `List` yet. Its own server has buffers that are many times as large
/// as a watch.
fn health() -> Service {
    let method = |name: &str, request: &str, response: &str| {
        Method::builder()
            .name(snake_case(name))
            .route_name(name)
            .input_type(request)
            .output_type(response)
            .codec_path("crate::CompactCodec")
    };
    let (request, response) =
        ("tonic_health::pb::HealthCheckRequest", "tonic_health::pb::HealthCheckResponse");
    Service::builder()
        .name("Health")
        .package("grpc.health.v1")
        .method(method("Check", request, response).build())
        .method(method("List", "super::HealthListRequest", "super::HealthListResponse").build())
        .method(method("Watch", request, response).server_streaming().build())
        .build()
}

fn server_method(package: &str, method: &MethodDescriptorProto) -> Result<Method, Box<dyn Error>> {
    let hot = HOT.contains(&method.name());
    let message = |name: &str| {
        let own = name.strip_prefix(&format!(".{package}.")).filter(|own| !own.contains('.'));
        let own = own.ok_or_else(|| format!("{name} is no message of package {package}"))?;
        Ok::<_, String>(if hot { format!("crate::Encoded<super::{own}>") } else { format!("super::{own}") })
    };
    let codec = if hot { "crate::EncodedCodec" } else { "crate::CompactCodec" };
    let mut builder = Method::builder()
        .name(snake_case(method.name()))
        .route_name(method.name())
        .input_type(message(method.input_type())?)
        .output_type(message(method.output_type())?)
        .codec_path(codec);
    if method.client_streaming() {
        builder = builder.client_streaming();
    }
    if method.server_streaming() {
        builder = builder.server_streaming();
    }
    Ok(builder.build())
}

/// `ShouldAllow` as `should_allow`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
