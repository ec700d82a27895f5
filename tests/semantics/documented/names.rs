//! Names in the documents exist, and everything that can be seen outside is documented.

use std::collections::BTreeSet;

use crate::support::command::{text, weir};
use crate::support::server::{Server, config};

/// Every document that a user reads.
fn documents() -> Vec<(String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("Makefile")];
    for (folder, ends) in [("docs", ".md"), ("deploy/compose", ".yaml"), ("deploy/kubernetes", ".yaml")] {
        files.extend(crate::support::clients::files(&root.join(folder), ends));
    }
    let read =
        |file: &std::path::PathBuf| (file.display().to_string(), std::fs::read_to_string(file).unwrap());
    files.iter().map(read).collect()
}

/// Words that begin with `WEIR_` and say more than that.
fn variables(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("WEIR_") && word.len() > "WEIR_".len()).collect()
}

#[test]
fn documented_variables_exist() {
    /// Of the tests, and the example of a misspelled one.
    const OTHERS: [&str; 4] = ["WEIR_SOAK_SECONDS", "WEIR_BUDGTE", "WEIR_TEST_TRANSPORT", "WEIR_SEED"];
    let mut help = text(&weir(&["--help"]).stdout);
    // What says how variables are called names none that is not there.
    for command in ["serve", "allow", "lease", "check", "schema", "explain", "import-envoy", "load"] {
        help += &text(&weir(&[command, "--help"]).stdout);
    }
    let known = variables(&help);
    assert!(known.contains("WEIR_LISTEN"), "{known:?}");
    for (file, text) in documents() {
        for name in variables(&text).difference(&known) {
            assert!(OTHERS.contains(name), "{file}: no option has the variable {name}");
        }
    }
}

#[test]
fn every_value_of_a_label_is_documented() {
    let page = Server::start(config()).get("/metrics").1;
    let documentation = include_str!("../../../docs/metrics.md");
    let mut seen = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("weir_")) {
        let Some((_, labels)) = line.split_once('{') else { continue };
        let labels = labels.split_once('}').unwrap().0.split(',');
        for (label, value) in labels.filter_map(|label| label.split_once('=')) {
            // These come from the configuration, or are numbers.
            if !["strategy", "limit", "rule", "domain", "le", "version", "hash"].contains(&label) {
                seen.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    assert!(seen.contains("allow_list"), "{seen:?}");
    for value in seen {
        assert!(
            documentation.contains(&format!("`{value}`")),
            "docs/metrics.md does not say what {value} is"
        );
    }
}
