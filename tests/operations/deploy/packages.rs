//! Packages: the unit of systemd, its configuration, completions and man pages, and the pipeline that builds them.

use std::fs::read_to_string;
use std::process::Command;

use super::{longest_shutdown, read, yaml};
use crate::support::clients::{files, root, run};
use crate::support::command::weir;
use crate::support::scratch;

/// The values of a key in the unit.
fn unit(key: &str) -> Vec<String> {
    let text = read("deploy/systemd/weir.service");
    text.lines().filter_map(|line| line.strip_prefix(&format!("{key}="))).map(str::to_owned).collect()
}

#[test]
fn the_unit_fits_the_program() {
    assert_eq!(unit("Type"), ["notify"]);
    assert_eq!(unit("ExecStart"), ["/usr/bin/weir serve --config /etc/weir"]);
    assert_eq!(unit("ExecReload"), ["/bin/kill -HUP $MAINPID"]);
    let grace: u64 = unit("TimeoutStopSec")[0].strip_suffix('s').unwrap().parse().unwrap();
    assert!(grace > longest_shutdown("deploy/systemd/weir.yaml"));
    // Weir raises its limit of open files itself, and has no other rights.
    assert_eq!(unit("CapabilityBoundingSet"), [""]);
    assert!(unit("SystemCallFilter").iter().all(|filter| !filter.contains("~@resources")));
    for hardened in
        ["DynamicUser", "NoNewPrivileges", "PrivateDevices", "ProtectKernelTunables", "RestrictNamespaces"]
    {
        assert_eq!(unit(hardened), ["yes"], "{hardened}");
    }
    let checked = weir(&["check", root().join("deploy/systemd/weir.yaml").to_str().unwrap()]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn systemd_takes_the_unit() {
    let scratch = scratch::dir("unit-");
    let program = env!("CARGO_BIN_EXE_weir");
    let file = scratch::file(
        scratch.path(),
        "weir.service",
        read("deploy/systemd/weir.service").replace("/usr/bin/weir", program),
    );
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("there is no systemd-analyze: the unit is only read");
        return;
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(&file);
    let output = run(verify);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "no warning");
}

#[test]
fn completions_and_man_pages_are_of_every_command() {
    let scratch = scratch::dir("release-files-");
    let written = weir(&["release-files", scratch.path().to_str().unwrap()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let help = String::from_utf8(weir(&["--help"]).stdout).unwrap();
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let commands: Vec<&str> = (commands.lines())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert!(commands.len() > 15 && !commands.contains(&"release-files"), "{commands:?}");
    let bash = read_to_string(scratch.path().join("completions/weir.bash")).unwrap();
    for command in &commands {
        assert!(scratch.path().join(format!("man/weir-{command}.1")).is_file(), "{command}");
        assert!(bash.contains(command), "{command}");
    }
    assert_eq!(files(&scratch.path().join("completions"), "").len(), 3);
    let mut parse = Command::new("bash");
    parse.arg("-n").arg(scratch.path().join("completions/weir.bash"));
    run(parse);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let written = weir(&["release-files", "/dev/null/x"]);
    assert_eq!(written.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&written.stderr).contains("/dev/null/x"));
}

/// The pipeline runs what people run, and releases only what has passed.
#[test]
fn the_pipeline_checks_before_it_releases() {
    let pipeline = yaml(".github/workflows/release.yml");
    let steps = |job: &str| pipeline["jobs"][job]["steps"].as_array().unwrap().clone();
    assert!(steps("check").iter().any(|step| step["run"] == ".ci/run"));
    assert_eq!(pipeline["jobs"]["release"]["needs"], "check");
    let release = steps("release");
    let position = |wanted: &str| {
        let has = |step: &&serde_json::Value| {
            ["run", "uses"].iter().any(|key| step[*key].as_str().is_some_and(|text| text.contains(wanted)))
        };
        release.iter().position(|step| has(&step)).unwrap_or_else(|| panic!("no step with {wanted}"))
    };
    let order = [
        "make test-release",
        "make release",
        "cosign sign-blob",
        "attest-build-provenance",
        "cosign sign --yes",
        "gh release create",
    ];
    let places = order.map(position);
    assert!(places.is_sorted(), "{places:?}");
    for script in ["build-static", "image", "install-helm", "release", "test-release"] {
        let mut parse = Command::new("bash");
        parse.args(["-n", &format!("scripts/{script}.sh")]);
        run(parse);
    }
}
