//! The commands of docs/helm.md and docs/deploy.md: those of Helm are run, and no image is named before it is built.

use std::process::Command;

use super::super::read;
use crate::support::clients::root;
use crate::support::helm::helm;
use crate::support::scratch;

/// Lines of the page's shell blocks; continued lines are one.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines =
        blocks.flat_map(|block| block.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| !line.trim_start().starts_with('#') && !line.is_empty()).collect()
}

/// Commands that ask a cluster render here: with the same templates and schema. Charts of others are not fetched.
const SHIMS: &str = r#"
set -eu
make() { :; }; kind() { :; }
kubectl() { ! command -v kubectl >/dev/null || command kubectl "$@" --dry-run=client --output=name; }
helm() {
    case "$1 $*" in
    *oci://* | test* | uninstall*) return ;;
    install*) shift ;;
    upgrade*) shift 2 ;;
    *) command helm "$@"; return ;;
    esac
    command helm template "$@"
}
"#;

/// Runs the page from its top, as it is written.
#[test]
fn every_command_of_helm_runs() {
    let Some(folder) = helm() else { return };
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let scratch = scratch::dir("chart-");
    std::os::unix::fs::symlink(root().join("deploy"), scratch.path().join("deploy")).unwrap();
    let page = read("docs/helm.md");
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script: String = std::iter::once(SHIMS).chain(blocks).collect();
    assert!(script.matches("\nhelm ").count() > 8);
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(scratch.path()).env("PATH", &path).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A reader who types a page from its top has built an image before a command needs one.
#[test]
fn no_command_names_an_image_that_nobody_can_pull() {
    let builds =
        ["make image", "docker build", "docker compose --file deploy/compose/compose.yaml up --build"];
    for page in
        ["README.md", "docs/README.md", "docs/deploy.md", "docs/helm.md", "docs/install.md", "docs/envoy.md"]
    {
        if !root().join(page).exists() {
            continue;
        }
        let mut is_built = false;
        for command in commands(&read(page)) {
            is_built |= builds.iter().any(|build| command.contains(build));
            let names = [
                "docker run",
                "weir:0.",
                "image.repository=",
                "ratelimit.image=",
                "container.image=",
                "--image",
            ];
            let needs = names.iter().any(|name| command.contains(name))
                || [
                    "helm install weir",
                    "helm upgrade --install weir",
                    "kubectl apply --kustomize deploy/kubernetes",
                ]
                .iter()
                .any(|start| command.starts_with(start));
            assert!(is_built || !needs, "{page}: {command}: nothing before it builds the image");
            assert!(!command.contains("OWNER"), "{page}: {command}: nobody can pull it");
        }
    }
}
