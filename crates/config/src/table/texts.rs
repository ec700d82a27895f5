//! Kinds that are texts: addresses, names, secrets, sentences.

use std::net::SocketAddr;

use weir_core::key::{KeySecret, Namespace};

use super::super::Secret;
use super::super::address::username;
use super::super::listen::{ListenAddress, file_mode, listen_address};
use super::super::secret::password;
use super::super::values::{MAX_SECRET, Scalar, address, quote, secret, text_within};
use super::SettingKind;
use super::value_kind::ValueKind;

/// Maximum length of a denial message, in bytes. It is sent with every denial.
const MAX_MESSAGE: usize = 512;

/// Maximum length of the name of an HTTP header, in bytes.
const MAX_HEADER: usize = 64;

/// The listen address of gRPC.
pub(crate) struct Listen;
/// An IP address with a port.
pub(crate) struct SocketAddress;
/// The mode of a file.
pub(crate) struct Mode;
/// Text with a maximum length in bytes.
pub(crate) struct Name(pub(crate) usize);
/// The key prefix.
pub(crate) struct NamespaceText;
/// The secret of the keys.
pub(crate) struct KeySecretText;
/// A user of Redis.
pub(crate) struct Username;
/// A password of Redis.
pub(crate) struct Password;
/// The name of an HTTP header.
pub(crate) struct HeaderName;
/// A message with these placeholders.
pub(crate) struct Sentence(pub(crate) &'static [&'static str]);

impl SettingKind for Listen {
    type Value = ListenAddress;
    const NAME: &'static str = "ADDRESS";

    fn read(&self, scalar: Scalar<'_>) -> Result<ListenAddress, String> {
        listen_address(scalar)
    }

    fn write(&self, value: &ListenAddress) -> Option<String> {
        Some(value.to_string())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Pattern("^(unix:([^/]|/[^/]|///[^/])(.*[^/])?|\\S+:[0-9]+)$")
    }

    fn bounds(&self) -> String {
        "IP:PORT or unix:PATH".to_owned()
    }
}

impl SettingKind for SocketAddress {
    type Value = SocketAddr;
    const NAME: &'static str = "ADDRESS";

    fn read(&self, scalar: Scalar<'_>) -> Result<SocketAddr, String> {
        address(scalar)
    }

    fn write(&self, value: &SocketAddr) -> Option<String> {
        Some(value.to_string())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Pattern("^\\S+:[0-9]+$")
    }

    fn bounds(&self) -> String {
        "IP:PORT".to_owned()
    }
}

impl SettingKind for Mode {
    type Value = u32;
    const NAME: &'static str = "MODE";

    fn read(&self, scalar: Scalar<'_>) -> Result<u32, String> {
        file_mode(scalar)
    }

    fn write(&self, value: &u32) -> Option<String> {
        Some(format!("{value:04o}"))
    }

    fn values(&self) -> ValueKind {
        ValueKind::Pattern("^0?[0-7]{3}$")
    }

    fn bounds(&self) -> String {
        "three octal digits".to_owned()
    }
}

impl SettingKind for HeaderName {
    type Value = String;
    const NAME: &'static str = "NAME";

    fn read(&self, scalar: Scalar<'_>) -> Result<String, String> {
        let name = text_within(scalar, MAX_HEADER)?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match name.bytes().all(fits) {
            true => Ok(name),
            false => Err(format!(
                "{} is not the name of a header: letters, digits, `-`, `_` and `.`",
                quote(&name)
            )),
        }
    }

    fn write(&self, value: &String) -> Option<String> {
        Some(value.clone())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Pattern("^[A-Za-z0-9._-]{1,64}$")
    }

    fn bounds(&self) -> String {
        format!("1 to {MAX_HEADER} letters, digits, `-`, `_`, `.`")
    }
}

impl SettingKind for Name {
    type Value = String;
    const NAME: &'static str = "NAME";

    fn read(&self, scalar: Scalar<'_>) -> Result<String, String> {
        text_within(scalar, self.0)
    }

    fn write(&self, value: &String) -> Option<String> {
        Some(value.clone())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Text(1, self.0)
    }
}

impl SettingKind for NamespaceText {
    type Value = Namespace;
    const NAME: &'static str = "NAME";

    fn read(&self, scalar: Scalar<'_>) -> Result<Namespace, String> {
        Namespace::new(scalar.text)
            .map_err(|error| format!("{} is no namespace: {error}", quote(scalar.text)))
    }

    fn write(&self, value: &Namespace) -> Option<String> {
        Some(value.as_str().to_owned())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Defined("namespace")
    }

    fn bounds(&self) -> String {
        "1 to 32 of `a-z 0-9 -`".to_owned()
    }
}

impl SettingKind for KeySecretText {
    type Value = KeySecret;
    const NAME: &'static str = "TEXT";

    fn read(&self, scalar: Scalar<'_>) -> Result<KeySecret, String> {
        secret(scalar)
    }

    /// Secrets are never formatted.
    fn write(&self, _value: &KeySecret) -> Option<String> {
        None
    }

    fn values(&self) -> ValueKind {
        ValueKind::Text(1, MAX_SECRET)
    }
}

impl SettingKind for Username {
    type Value = String;
    const NAME: &'static str = "NAME";

    fn read(&self, scalar: Scalar<'_>) -> Result<String, String> {
        username(scalar)
    }

    fn write(&self, value: &String) -> Option<String> {
        Some(value.clone())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Text(1, MAX_SECRET)
    }
}

impl SettingKind for Password {
    type Value = Secret;
    const NAME: &'static str = "TEXT";

    fn read(&self, scalar: Scalar<'_>) -> Result<Secret, String> {
        password(scalar)
    }

    /// Secrets are never formatted.
    fn write(&self, _value: &Secret) -> Option<String> {
        None
    }

    fn values(&self) -> ValueKind {
        ValueKind::Text(1, MAX_SECRET)
    }
}

impl SettingKind for Sentence {
    type Value = String;
    const NAME: &'static str = "TEXT";

    /// Rejects unknown placeholders.
    fn read(&self, scalar: Scalar<'_>) -> Result<String, String> {
        let text = scalar.text;
        if text.len() > MAX_MESSAGE {
            return Err(format!("{} is {} bytes long: at most {MAX_MESSAGE}", quote(text), text.len()));
        }
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            let (before, from_brace) = rest.split_at(brace);
            let unbalanced = || format!("a brace has no partner after {}", quote(before));
            let inside = from_brace.strip_prefix('{').ok_or_else(unbalanced)?;
            let (name, after) = inside.split_once('}').ok_or_else(unbalanced)?;
            if !self.0.contains(&name) {
                let known: Vec<String> = self.0.iter().map(|known| format!("{{{known}}}")).collect();
                let unknown = quote(&format!("{{{name}}}"));
                return Err(format!("{unknown} is not a placeholder here; known are: {}", known.join(", ")));
            }
            rest = after;
        }
        Ok(text.to_owned())
    }

    fn write(&self, value: &String) -> Option<String> {
        Some(value.clone())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Text(0, MAX_MESSAGE)
    }
}
