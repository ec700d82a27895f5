//! Compiles `proto/` without protoc, and keeps the descriptors for server reflection and proto-JSON.
//!
//! The build script of `crates/proto`, and run there: paths begin in that folder.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;
use prost_types::{FileDescriptorSet, MethodDescriptorProto};
use tonic_build::manual::{Builder, Method, Service};

/// Methods whose traits pass messages as bytes: they are called by the million.
const HOT: [&str; 4] = ["ShouldAllow", "ShouldAllowBatch", "ShouldAllowStream", "ShouldRateLimit"];

#[allow(clippy::disallowed_methods)] // cargo talks to build scripts through the environment
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=../../build.rs");
    let files = [
        "weir/v1/rate_limit.proto",
        "weir/v1/leases.proto",
        "weir/v1/queues.proto",
        "weir/v1/admin.proto",
        "weir/v1/control.proto",
        "weir/v1/usage.proto",
        "google/rpc/error_details.proto",
        "envoy/service/ratelimit/v3/rls.proto",
        "envoy/service/discovery/v3/ads.proto",
        "ratelimit/config/ratelimit/v3/rls_conf.proto",
    ];
    let descriptors = protox::compile(files, ["../../proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    generate_servers(&descriptors, &out)?;
    // Messages and clients. `tonic_prost_build` has one codec for all methods.
    // Headers are written in the order of their names.
    let sorted = [".weir.v1.ShouldAllowResponse.headers", ".google.rpc.ErrorInfo.metadata"];
    let configured = sorted.into_iter().fold(tonic_prost_build::configure(), |all, path| all.btree_map(path));
    configured.build_server(false).compile_fds(descriptors)?;
    Ok(())
}

/// Writes the server traits of all services, each into a file `PACKAGE.SERVICE.rs`.
fn generate_servers(descriptors: &FileDescriptorSet, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut services = Vec::new();
    for file in &descriptors.file {
        for service in &file.service {
            let mut builder = Service::builder().name(service.name()).package(file.package());
            for method in &service.method {
                builder = builder.method(server_method(file.package(), method)?);
            }
            services.push(builder.build());
        }
    }
    services.push(health());
    Builder::new().build_client(false).out_dir(out).compile(&services);
    Ok(())
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
