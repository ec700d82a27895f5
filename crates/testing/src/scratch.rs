//! Scratch directories that are gone when the test binary is, even when it was killed.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A new directory, removed on drop, or at the latest when the test binary has ended: a static is never
/// dropped, and a killed process drops nothing.
pub fn dir(prefix: &str) -> TempDir {
    static ROOT: OnceLock<Root> = OnceLock::new();
    let root = ROOT.get_or_init(Root::create);
    tempfile::Builder::new().prefix(prefix).tempdir_in(&root.path).expect("make a scratch directory")
}

/// Writes a file, and returns its path.
pub fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("write a file");
    path
}

struct Root {
    path: PathBuf,
    /// Reads from a pipe that ends when this process does, in whatever way.
    _sweeper: Child,
}

impl Root {
    fn create() -> Self {
        let name = format!("weir-it-{}", std::process::id());
        let path = folder().join(name);
        std::fs::create_dir_all(&path).expect("make the root of the scratch directories");
        let mut sweeper = Command::new("sh");
        sweeper.args(["-c", SWEEP, "sweeper"]).arg(&path);
        sweeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: an interrupt from the terminal ends the tests but not the sweeper.
        sweeper.process_group(0);
        let sweeper = sweeper.spawn().expect("start sh, which removes the directories at the end");
        Self { path, _sweeper: sweeper }
    }
}

/// `tmp` in Cargo's target directory, where test binaries are two folders below that. Cargo names this folder
/// to integration tests only, and not to what they use.
fn folder() -> PathBuf {
    let binary = std::env::current_exe().expect("a test binary knows where it is");
    let target =
        binary.ancestors().find(|path| path.ends_with("deps")).and_then(|deps| deps.parent()?.parent());
    target.map_or_else(std::env::temp_dir, |target| target.join("tmp"))
}

/// Waits for the end of the test binary. A server that is just being killed may still write a file.
const SWEEP: &str = r#"
cat
for _ in 1 2 3 4 5; do
    rm -rf -- "$1" && exit
    sleep 0.1
done
"#;
