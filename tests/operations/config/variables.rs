//! Flags and variables of every setting, as the program reads them.

use std::process::Output;

use weir_config::{Setting, settings};

use crate::support::command::{text, weir_command};

/// `weir serve` with an empty text for each of these, which no setting takes. It ends with every mistake.
fn serve_with(given: &[(String, Setting)], as_flags: bool) -> Output {
    let mut command = weir_command(&["serve"]);
    for (_, setting) in given {
        match setting.flag().filter(|_| as_flags) {
            Some(flag) => command.arg(format!("--{flag}=")),
            None => command.env(setting.variable().unwrap(), ""),
        };
    }
    command.output().unwrap()
}

fn named(setting: &Setting) -> String {
    let variable = setting.variable().unwrap();
    match setting.flag() {
        Some(flag) => format!("--{flag} or {variable}: "),
        None => format!("{variable}: "),
    }
}

/// Nothing of the table can be forgotten between the command line and the configuration.
#[test]
fn every_flag_and_every_variable_is_read() {
    let outside = |setting: &Setting| setting.outside.name().is_some();
    let given: Vec<(String, Setting)> = settings().into_iter().filter(|(_, it)| outside(it)).collect();
    assert!(given.len() > 30, "{} settings", given.len());
    // Both stores: what belongs to the other one is refused too, and not read.
    for as_flags in [false, true] {
        let out = serve_with(&given, as_flags);
        let errors = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{errors}");
        for (path, setting) in &given {
            let reported = errors.lines().any(|line| line.starts_with(&named(setting)));
            assert!(reported, "{path} is not read, as flags: {as_flags}\n{errors}");
        }
    }
}

/// Every option of `weir serve` says its default and its variable.
#[test]
fn the_help_has_every_setting() {
    let help = text(&weir_command(&["serve", "--help"]).output().unwrap().stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (path, setting) in settings() {
        let Some(variable) = setting.variable() else { continue };
        assert!(help.contains(&variable), "{path}: {variable}\n{help}");
        let Some(flag) = setting.flag() else { continue };
        let (_, option) = help.split_once(&format!("--{flag} ")).unwrap_or_else(|| panic!("{path}\n{help}"));
        let (option, _) = option.split_once("[env: ").unwrap();
        if let Some(default) = &setting.default {
            assert!(option.contains(&format!("[default: {default}]")), "{path}: {option}");
        }
        assert!(option.contains(setting.about.trim_end_matches('.')), "{path}: {option}");
    }
}
