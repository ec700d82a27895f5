//! The user at Redis: of a native variable, of `REDIS_AUTH` or `REDIS_AUTH_FILE`, or of the address.

use super::given::RatelimitGiven;
use super::mapped::Mapped;

/// The user at Redis, and what names it.
pub(super) enum RedisUser {
    /// A native variable.
    Native(&'static str),
    /// A variable with the password, or with user and password.
    Text(&'static str, (Option<String>, String)),
    /// `REDIS_AUTH_FILE`
    File(String),
}

impl RedisUser {
    /// The user of the variables. Without one, the address may name it.
    pub(super) fn from_given(given: &mut RatelimitGiven, mapped: &Mapped) -> Option<Self> {
        let native =
            [("redis_password", "WEIR_REDIS_PASSWORD"), ("redis_password_file", "WEIR_REDIS_PASSWORD_FILE")];
        if let Some((_, name)) = native.into_iter().find(|(setting, _)| mapped.native.has(setting)) {
            return Some(Self::Native(name));
        }
        let text = given.text("REDIS_AUTH").map(|auth| Self::Text("REDIS_AUTH", login(auth)));
        let file = given.text("REDIS_AUTH_FILE").map(|path| Self::File(path.to_owned()));
        if text.is_some() && file.is_some() {
            given.wrong("REDIS_AUTH_FILE", "REDIS_AUTH is set too: set one of them");
        }
        text.or(file)
    }

    /// Sets the user and the password.
    pub(super) fn map_to(self, given: &mut RatelimitGiven, mapped: &mut Mapped) {
        match self {
            Self::Native(native) => {
                for name in ["REDIS_AUTH", "REDIS_AUTH_FILE"].into_iter().filter(|name| given.has(name)) {
                    mapped.notes.push(format!("{native} takes precedence over {name}, which is set too"));
                }
            }
            Self::Text(label, (user, password)) => {
                mapped.set_some("redis_username", label, user);
                mapped.set("redis_password", label, password);
            }
            Self::File(path) => {
                mapped.set("redis_password_file", "REDIS_AUTH_FILE", path);
                mapped.overrides = std::mem::take(&mut mapped.overrides).with_user_in_password_file();
            }
        }
    }
}

/// `password` or `user:password`.
pub(super) fn login(auth: &str) -> (Option<String>, String) {
    match auth.split_once(':') {
        Some((user, password)) => {
            (Some(user.to_owned()).filter(|user| !user.is_empty()), password.to_owned())
        }
        None => (None, auth.to_owned()),
    }
}
