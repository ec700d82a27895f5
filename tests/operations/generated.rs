//! The generated code of crates/proto is what its generator makes of `proto/`.

#[path = "../../crates/proto/generator.rs"]
mod generator;

use std::collections::BTreeMap;

use crate::support::clients::root;

#[test]
fn the_generated_code_is_that_of_the_protos() {
    let scratch = tempfile::tempdir().unwrap();
    let expected = generator::generated(&root().join("proto"), scratch.path()).unwrap();
    let folder = root().join("crates/proto/src/generated");
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    let there: BTreeMap<String, Vec<u8>> = std::fs::read_dir(folder).unwrap().map(file).collect();
    let differs = |name: &&String| there.get(*name) != expected.get(*name);
    let different: Vec<&String> = expected.keys().chain(there.keys()).filter(differs).collect();
    assert!(
        different.is_empty(),
        "{different:?} of crates/proto/src/generated: `cargo build -p weir-proto --features generate` writes them again"
    );
}
