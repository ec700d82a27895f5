//! Credentials for Redis: from a section and its settings.

use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::overrides::ConfigOverrides;
use super::secret::{login_file, missing, password_file};
use super::table::{Entry, FilePath, Optional, Password, SettingKind, Username, redis as redis_keys};
use super::values::{quote, text_within};
use super::{Login, Secret};

/// The keys of a login.
pub(super) struct LoginKeys {
    pub(super) username: Entry<Optional<Username>>,
    pub(super) password: Entry<Optional<Password>>,
    pub(super) password_file: Entry<Optional<FilePath>>,
    pub(super) password_command: &'static str,
}

/// Weir's own user.
pub(super) const OWN: LoginKeys = LoginKeys {
    username: redis_keys::USERNAME,
    password: redis_keys::PASSWORD,
    password_file: redis_keys::PASSWORD_FILE,
    password_command: "password_command",
};

/// The user at the sentinels.
pub(super) const SENTINEL: LoginKeys = LoginKeys {
    username: redis_keys::SENTINEL_USERNAME,
    password: redis_keys::SENTINEL_PASSWORD,
    password_file: redis_keys::SENTINEL_PASSWORD_FILE,
    password_command: "sentinel_password_command",
};

/// Reads the login under `keys`, if there is one. A flag or a variable of either kind overrides both in the file.
pub(super) fn login(
    fields: &mut Mapping<'_>,
    keys: &LoginKeys,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<Login> {
    let before = report.len();
    let username = fields.setting(&keys.username, &overrides.given, report).flatten();
    let in_file = one_of(fields, keys, report);
    let (text, file) =
        (overrides.given.get(&keys.password.outside), overrides.given.get(&keys.password_file.outside));
    let file_path = fields.path_of(keys.password_file.key);
    if text.text.is_some() && file.text.is_some() {
        file.report(&file_path, report, "there is a password too".to_owned());
    }
    let from_text = text.read(&fields.path_of(keys.password.key), report, |s| keys.password.kind.read(s));
    let names_user = overrides.user_in_password_file && keys.username.key == OWN.username.key;
    let from_file = file.read(&file_path, report, |s| match FilePath.read(s)? {
        path if names_user => login_file(&path),
        path => password_file(&path),
    });
    let password = from_text.flatten().or(from_file).or(in_file);
    match (username, password) {
        (username, Some(password)) => Some(Login { username, password }),
        (Some(_), None) => {
            // An invalid password has been reported already.
            if report.len() == before {
                fields.report(keys.username.key, report, "has no password; give one");
            }
            None
        }
        (None, None) => None,
    }
}

fn one_of(fields: &mut Mapping<'_>, keys: &LoginKeys, report: &mut MistakeReport) -> Option<Secret> {
    let text = fields.read(keys.password.key, report, |s| keys.password.kind.read(s)).flatten();
    let file = fields.take(keys.password_file.key).and_then(|value| {
        let path = value.read(report, |s| FilePath.read(s))?;
        let path = report.resolve(value.at(), &path);
        match missing(&path) {
            // The content of the secret affects no other check, so any placeholder will do.
            Some(reason) if report.notes_missing_files() => {
                report.missing(|report| value.report(report, reason));
                Some(Secret::new(""))
            }
            _ => password_file(&path).map_err(|reason| value.report(report, reason)).ok(),
        }
    });
    let command = fields.take(keys.password_command).and_then(|value| command(&value, report));
    let all = [keys.password.key, keys.password_file.key, keys.password_command];
    let given: Vec<&str> = all.into_iter().filter(|key| fields.take(key).is_some()).collect();
    if let [first, others @ ..] = given.as_slice() {
        for other in others {
            fields.report(other, report, format!("there is a `{first}` too"));
        }
    }
    text.or(file).or(command)
}

/// Reads the words of a command. It is not run here, where Weir may be another user on another machine.
fn command(value: &NamedNode<'_>, report: &mut MistakeReport) -> Option<Secret> {
    let items = value.items(report)?;
    if !(1..=redis_keys::MAX_WORDS).contains(&items.len()) {
        value.report(
            report,
            format!("has {} words: it must have from 1 to {}", items.len(), redis_keys::MAX_WORDS),
        );
        return None;
    }
    let words = items.iter().map(|item| {
        item.read(report, |scalar| match scalar.text {
            text if text.contains('\0') => Err("must not contain a NUL".to_owned()),
            _ => text_within(scalar, redis_keys::MAX_COMMAND_WORD),
        })
    });
    let words: Vec<String> = words.collect::<Option<_>>()?;
    let (program, first) = (words.first()?, items.first()?);
    if !program.starts_with('/') {
        let reason = "is no absolute path; the command has an empty environment, and so no PATH";
        first.report(report, format!("{} {reason}", quote(program)));
        return None;
    }
    Some(Secret::printed_by(words))
}
