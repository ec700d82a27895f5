//! A user and a password of Redis: from a section, its settings, or its addresses.

use std::path::Path;

use super::address::username;
use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::secret::{missing, password, password_file};
use super::{Login, Secret};

/// What the three fields of a login are called: in the file, and as settings.
pub(super) struct LoginKeys {
    pub(super) username: (&'static str, &'static str),
    pub(super) password: (&'static str, &'static str),
    pub(super) password_file: (&'static str, &'static str),
}

/// Weir's own user.
pub(super) const OWN: LoginKeys = LoginKeys {
    username: ("username", "redis_username"),
    password: ("password", "redis_password"),
    password_file: ("password_file", "redis_password_file"),
};

/// The user at the sentinels.
pub(super) const SENTINEL: LoginKeys = LoginKeys {
    username: ("sentinel_username", "redis_sentinel_username"),
    password: ("sentinel_password", "redis_sentinel_password"),
    password_file: ("sentinel_password_file", "redis_sentinel_password_file"),
};

/// The login under `names`, if there is one. A setting of either kind goes before both in the file.
pub(super) fn login(
    fields: &mut Mapping<'_>,
    names: &LoginKeys,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<Login> {
    let before = report.len();
    let username = fields.choose(names.username.0, settings.of(names.username.1), report, username);
    let in_file = one_of(fields, names, report);
    let (text, file) = (settings.of(names.password.1), settings.of(names.password_file.1));
    if text.text.is_some() && file.text.is_some() {
        file.report(&fields.path_of(names.password_file.0), report, "there is a password too".to_owned());
    }
    let from_text = text.read(&fields.path_of(names.password.0), report, password);
    let from_file =
        file.read(&fields.path_of(names.password_file.0), report, |s| password_file(Path::new(s.text)));
    let password = from_text.or(from_file).or(in_file);
    match (username, password) {
        (username, Some(password)) => Some(Login { username, password }),
        (Some(_), None) => {
            // A password that was given and is wrong has been reported already.
            if report.len() == before {
                fields.report(names.username.0, report, "has no password; give one");
            }
            None
        }
        (None, None) => None,
    }
}

fn one_of(fields: &mut Mapping<'_>, names: &LoginKeys, report: &mut MistakeReport) -> Option<Secret> {
    let both = fields.take(names.password.0).is_some() && fields.take(names.password_file.0).is_some();
    let text = fields.read(names.password.0, report, password);
    let file = fields.take(names.password_file.0).and_then(|value| {
        let path = value.read(report, |s| Ok(s.text))?;
        let path = report.resolve(Path::new(path));
        match missing(&path) {
            // What the secret is makes no other mistake, so any does for a check.
            Some(reason) if report.notes_missing_files() => {
                report.missing(|report| value.report(report, reason));
                Some(Secret::new(""))
            }
            _ => password_file(&path).map_err(|reason| value.report(report, reason)).ok(),
        }
    });
    if both {
        fields.report(names.password_file.0, report, format!("there is a `{}` too", names.password.0));
    }
    text.or(file)
}
