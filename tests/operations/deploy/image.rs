//! Checks of the image without a daemon that builds it.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use super::read;
use crate::support::clients::{files, root};

#[test]
fn the_image_holds_one_program_and_no_rights() {
    let dockerfile = read("deploy/Dockerfile");
    let last = dockerfile.split_once("\nFROM scratch AS base\n").unwrap().1;
    let command = r#"CMD ["serve", "--listen", "0.0.0.0:8081", "--admin", "0.0.0.0:8080"]"#;
    for line in ["USER 65532:65532", "ENTRYPOINT [\"/weir\"]", command] {
        assert!(last.lines().any(|found| found == line), "{line}");
    }
    // A variable of the image would stay where the command is replaced, and go before the configuration file.
    let instructions = last.lines().filter(|line| !line.starts_with('#') && !line.starts_with("CMD"));
    assert!(!instructions.into_iter().any(|line| line.starts_with("ENV") || line.contains("WEIR_")));
    assert!(last.contains(&format!("ARG VERSION={}\n", env!("CARGO_PKG_VERSION"))));
    assert!(last.contains(" /etc/ssl/certs/ca-certificates.crt\n"), "rediss:// would trust nobody");
    let rust = format!("FROM --platform=$BUILDPLATFORM rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(dockerfile.lines().any(|line| line.starts_with(&rust)), "{rust}");
    // What is copied must be let in.
    let ignored = read(".dockerignore");
    for copied in
        dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|line| !line.starts_with('-'))
    {
        let (sources, _) = copied.rsplit_once(' ').unwrap();
        for source in sources.split(' ') {
            assert!(root().join(source).exists(), "{source} is copied");
            assert!(ignored.lines().any(|line| line == format!("!{source}")), "{source} is let in");
        }
    }
}

/// The image that is built without --target is Weir; the other image differs only in the program that it starts.
#[test]
fn the_second_image_starts_the_program_under_the_name_of_the_reference() {
    let dockerfile = read("deploy/Dockerfile");
    let stages: Vec<&str> = dockerfile.split("\nFROM ").skip(2).collect();
    let code = |stage: &str| -> Vec<String> {
        stage.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    };
    assert_eq!(code(stages[1]), ["base AS weir-ratelimit", "ENTRYPOINT [\"/bin/ratelimit\"]"]);
    assert_eq!(code(stages[2])[..2], ["base AS weir", "ENTRYPOINT [\"/weir\"]"]);
    assert_eq!(stages.len(), 3);
    assert!(dockerfile.contains("ln -s ../weir /image/bin/ratelimit"));
}

/// The files that Cargo.toml, the build script and the sources name are among those that are copied.
#[test]
fn the_image_is_built_from_all_that_the_build_reads() {
    let dockerfile = read("deploy/Dockerfile");
    let copied: Vec<&str> = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY ").filter(|line| !line.starts_with('-')))
        .flat_map(|line| line.rsplit_once(' ').unwrap().0.split(' '))
        .collect();
    let real =
        |path: &Path| path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_copied = |path: &Path| copied.iter().any(|one| real(path).starts_with(real(&root().join(one))));
    let mut needed: Vec<PathBuf> =
        ["Cargo.toml", "Cargo.lock", "build.rs"].map(|file| root().join(file)).into();
    let manifest = read("Cargo.toml");
    let quoted = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    needed.extend(
        manifest.lines().filter(|line| line.starts_with("path = ")).map(|line| root().join(quoted(line))),
    );
    let benches = manifest.split("[[bench]]").skip(1).map(|bench| root().join("benches").join(quoted(bench)));
    needed.extend(benches.map(|bench| if bench.is_dir() { bench } else { bench.with_extension("rs") }));
    // What the sources include.
    let sources = ["src", "crates"].map(|folder| files(&root().join(folder), ".rs"));
    // Tests are not built there.
    let is_built = |file: &PathBuf| !file.iter().any(|folder| folder == "tests");
    for file in sources.into_iter().flatten().filter(is_built) {
        let text = read_to_string(&file).unwrap();
        let included = text.split("include_str!(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        needed.extend(included.map(|path| file.parent().unwrap().join(path)));
    }
    assert!(needed.len() > 10, "{needed:?}");
    for path in needed {
        assert!(is_copied(&path), "{} is not copied into the image", path.display());
    }
}
