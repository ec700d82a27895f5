//! Programs that scripts/install-helm.sh puts into `.cache/helm`: Helm, a renderer of charts, and decoders of Kubernetes' types.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::clients::{installed, is_skipped, root};

/// The versions of `k8s.io/api` that manifests are decoded into: that of the chart's oldest Kubernetes, one between, a new one.
pub const KUBERNETES: [&str; 3] = ["v0.27", "v0.32", "v0.37"];

/// A chart under some values.
pub struct Rendered {
    /// Name of the case.
    pub name: String,
    /// The manifests, hooks included, or why there are none.
    pub manifests: Result<Vec<String>, String>,
    /// The text that Helm prints after the installation.
    pub notes: String,
}

/// The folder of the programs. `None` only where SKIP_HELM=1 asks for it; a folder that is missing or out of date fails the test.
#[track_caller]
pub fn helm() -> Option<PathBuf> {
    static CHECKED: OnceLock<Result<(), String>> = OnceLock::new();
    installed(&CHECKED, "SKIP_HELM", "helm")
}

/// The schema of Compose files. `None` only where SKIP_HELM=1 asks for it.
#[track_caller]
pub fn compose_schema() -> Option<Value> {
    if is_skipped("SKIP_HELM") {
        return None;
    }
    let checked = Command::new("scripts/install-compose.sh").arg("--check").current_dir(root()).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let text = std::fs::read_to_string(root().join(".cache/compose/compose-spec.json")).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// Renders a chart under the values of each case.
#[track_caller]
pub fn render(chart: &str, cases: &[(String, Value)]) -> Option<Vec<Rendered>> {
    let program = helm()?.join("render");
    let cases: Vec<Value> =
        cases.iter().map(|(name, values)| json!({ "name": name, "values": values })).collect();
    let output = piped(Command::new(program), &json!({ "chart": root().join(chart), "cases": cases }));
    let results: Vec<Value> = serde_json::from_str(&output.unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rendered = results.iter().map(|result| Rendered {
        name: text(&result["name"]),
        manifests: match result["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(result["manifests"].as_array().unwrap().iter().map(text).collect()),
        },
        notes: text(&result["notes"]),
    });
    Some(rendered.collect())
}

/// Decodes manifests, with the name of their case, strictly into the types of each version of Kubernetes.
#[track_caller]
pub fn decode(manifests: &[(&str, &str)]) {
    let Some(folder) = helm() else { return };
    for version in KUBERNETES {
        let decoder = Command::new(folder.join(format!("kubernetes-{version}")));
        let decoded =
            piped(decoder, &json!(manifests)).unwrap_or_else(|errors| panic!("{version}: {errors}"));
        assert_eq!(decoded.trim(), manifests.len().to_string(), "{version}");
    }
}

/// Runs a program with JSON as its input: its output, or what it says of an error.
fn piped(mut command: Command, input: &Value) -> Result<String, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Both programs read all of it before they write.
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}
