//! Writes the generated code of `proto/` again, with the feature `generate`: `cargo build -p weir-proto --features generate`.
//!
//! The build script of `crates/proto`, and run there: paths begin in that folder. Without the feature it has nothing to do.

use std::error::Error;

#[cfg(feature = "generate")]
#[path = "crates/proto/generator.rs"]
mod generator;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../build.rs");
    #[cfg(feature = "generate")]
    write()?;
    Ok(())
}

/// Replaces all of `src/generated`.
#[cfg(feature = "generate")]
#[allow(clippy::disallowed_methods)] // cargo talks to build scripts through the environment
fn write() -> Result<(), Box<dyn Error>> {
    use std::path::Path;
    use std::{env, fs};

    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=generator.rs");
    let out = env::var("OUT_DIR")?;
    let files = generator::generated(Path::new("../../proto"), Path::new(&out))?;
    let folder = Path::new("src/generated");
    fs::remove_dir_all(folder).or_else(|error| if folder.exists() { Err(error) } else { Ok(()) })?;
    fs::create_dir(folder)?;
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}
