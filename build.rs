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

/// Our own package.
const OWN: &str = "weir.v1";

#[allow(clippy::disallowed_methods)] // cargo talks to build scripts through the environment
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=../../build.rs");
    let others = [
        "google/rpc/error_details.proto",
        "envoy/service/ratelimit/v3/rls.proto",
        "envoy/service/discovery/v3/ads.proto",
        "ratelimit/config/ratelimit/v3/rls_conf.proto",
    ];
    let others = others.map(ToOwned::to_owned);
    let descriptors = protox::compile([own_protos()?, others.into()].concat(), ["../../proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    generate_servers(&descriptors, &out)?;
    // Messages and clients. `tonic_prost_build` has one codec for all methods.
    // Headers and costs are written in the order of their names.
    let sorted = [
        ".weir.v1.ShouldAllowResponse.headers",
        ".google.rpc.ErrorInfo.metadata",
        ".weir.v1.UsageSeries.costs",
        ".weir.v1.UsageSeries.units",
        ".weir.v1.UsagePoint.costs",
    ];
    let configured = sorted.into_iter().fold(tonic_prost_build::configure(), |all, path| all.btree_map(path));
    configured.build_server(false).compile_fds(descriptors)?;
    Ok(())
}

/// Returns our own protos. They are found by their folder, because each feature may have one.
fn own_protos() -> Result<Vec<String>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir("../../proto/weir/v1")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        files.extend(name.ends_with(".proto").then(|| format!("weir/v1/{name}")));
    }
    files.sort();
    Ok(files)
}

/// Writes the server traits of all services, each into a file `PACKAGE.SERVICE.rs`, and a file that includes our own.
fn generate_servers(descriptors: &FileDescriptorSet, out: &Path) -> Result<(), Box<dyn Error>> {
    let (mut services, mut own) = (Vec::new(), String::new());
    for file in &descriptors.file {
        for service in &file.service {
            let mut builder = Service::builder().name(service.name()).package(file.package());
            for method in &service.method {
                builder = builder.method(server_method(file.package(), method)?);
            }
            services.push(builder.build());
            if file.package() == OWN {
                let path = format!("/{OWN}.{}.rs", service.name());
                own += &format!("include!(concat!(env!(\"OUT_DIR\"), \"{path}\"));\n");
            }
        }
    }
    services.push(health());
    fs::write(out.join(format!("{OWN}.services.rs")), own)?;
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
