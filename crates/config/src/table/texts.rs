//! Kinds that are texts: addresses, names, secrets, sentences.

use std::net::SocketAddr;

use weir_core::key::{KeySecret, Namespace};

use super::super::Secret;
use super::super::address::username;
use super::super::listen::{ListenAddress, file_mode, listen_address};
use super::super::secret::password;
use super::super::values::{MAX_SECRET, Scalar, address, quote, secret, text_within};
use super::SettingKind;
use super::kinds::{kinds, text_of};
use super::value_kind::ValueKind;

/// Maximum length of a denial message, in bytes. It is sent with every denial.
const MAX_MESSAGE: usize = 512;

/// Maximum length of the name of an HTTP header, in bytes.
const MAX_HEADER: usize = 64;

/// Text with a maximum length in bytes.
pub(crate) struct Name(pub(crate) usize);
/// A message with these placeholders.
pub(crate) struct Sentence(pub(crate) &'static [&'static str]);

kinds! {
    /// The listen address of gRPC.
    Listen: ListenAddress {
        name: "ADDRESS",
        read: listen_address,
        write: text_of,
        values: ValueKind::Pattern("^(unix:([^/]|/[^/]|///[^/])(.*[^/])?|\\S+:[0-9]+)$"),
        bounds: "IP:PORT or unix:PATH".to_owned(),
    }
    /// An IP address with a port.
    SocketAddress: SocketAddr {
        name: "ADDRESS",
        read: address,
        write: text_of,
        values: ValueKind::Pattern("^\\S+:[0-9]+$"),
        bounds: "IP:PORT".to_owned(),
    }
    /// The mode of a file.
    Mode: u32 {
        name: "MODE",
        read: file_mode,
        write: octal,
        values: ValueKind::Pattern("^0?[0-7]{3}$"),
        bounds: "three octal digits".to_owned(),
    }
    /// The name of an HTTP header.
    HeaderName: String {
        name: "NAME",
        read: header_name,
        write: text_of,
        values: ValueKind::Pattern("^[A-Za-z0-9._-]{1,64}$"),
        bounds: format!("1 to {MAX_HEADER} letters, digits, `-`, `_`, `.`"),
    }
    /// The key prefix.
    NamespaceText: Namespace {
        name: "NAME",
        read: namespace,
        write: text_of,
        values: ValueKind::Defined("namespace"),
        bounds: "1 to 32 of `a-z 0-9 -`".to_owned(),
    }
    /// The secret of the keys, which is never formatted.
    KeySecretText: KeySecret {
        name: "TEXT",
        read: secret,
        write: no_text,
        values: ValueKind::Text(1, MAX_SECRET),
    }
    /// A user of Redis.
    Username: String {
        name: "NAME",
        read: username,
        write: text_of,
        values: ValueKind::Text(1, MAX_SECRET),
    }
    /// A password of Redis, which is never formatted.
    Password: Secret {
        name: "TEXT",
        read: password,
        write: no_text,
        values: ValueKind::Text(1, MAX_SECRET),
    }
}

fn octal(mode: &u32) -> Option<String> {
    Some(format!("{mode:04o}"))
}

/// Formats no secret.
fn no_text<T>(_: &T) -> Option<String> {
    None
}

fn header_name(scalar: Scalar<'_>) -> Result<String, String> {
    let name = text_within(scalar, MAX_HEADER)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match name.bytes().all(fits) {
        true => Ok(name),
        false => {
            Err(format!("{} is not the name of a header: letters, digits, `-`, `_` and `.`", quote(&name)))
        }
    }
}

fn namespace(scalar: Scalar<'_>) -> Result<Namespace, String> {
    Namespace::new(scalar.text).map_err(|error| format!("{} is no namespace: {error}", quote(scalar.text)))
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
