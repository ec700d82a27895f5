//! Compiles `proto/` without protoc, and keeps the descriptors for server reflection and proto-JSON.
//!
//! The build script of `crates/proto`, and run there: paths begin in that folder.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

#[allow(clippy::disallowed_methods)] // cargo talks to build scripts through the environment
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=../../build.rs");
    let services =
        ["weir/v1/rate_limit.proto", "weir/v1/admin.proto", "envoy/service/ratelimit/v3/rls.proto"];
    let descriptors = protox::compile(services, ["../../proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
