//! Access of a client to a server: TLS and a token.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// Maximum length of a token in bytes: what a server reads.
const MAX_TOKEN: usize = 8 << 10;

/// TLS and a token; neither by default.
#[derive(Clone, Default)]
pub struct ServerAccess {
    /// TLS, which `https://` needs.
    pub tls: Option<ClientTls>,
    /// The token of every call.
    pub token: Option<Token>,
}

/// Shows no token.
impl fmt::Debug for ServerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tls, token) = (self.tls.is_some(), self.token.is_some());
        f.debug_struct("ServerAccess").field("tls", &tls).field("token", &token).finish()
    }
}

/// TLS of a client.
#[derive(Clone)]
pub struct ClientTls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// A token, as the header `authorization` has it.
#[derive(Clone)]
pub struct Token(Arc<str>);

/// Reason why there is no TLS or no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The name of the server cannot be in a certificate.
    #[error("`{0}` is neither a host name nor an IP address that a certificate could have")]
    ServerName(String),
    /// The text is no token.
    #[error("the token must have 1 to {MAX_TOKEN} characters without spaces; it has {0} bytes")]
    Token(usize),
}

impl ClientTls {
    /// Expects a certificate for `name`, as `config` trusts it. The protocol is HTTP/2.
    pub fn new(config: &ClientConfig, name: &str) -> Result<Self, AccessError> {
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name =
            ServerName::try_from(bare.to_owned()).map_err(|_| AccessError::ServerName(name.to_owned()))?;
        let mut config = config.clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { config: Arc::new(config), name })
    }

    /// Speaks HTTP/1.1 in the place of HTTP/2.
    #[must_use]
    pub fn with_http_1(self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { config: Arc::new(config), ..self }
    }
}

impl Token {
    /// Checks the text of a token. Errors do not show it.
    pub fn new(text: &str) -> Result<Self, AccessError> {
        let is_good =
            (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_good {
            return Err(AccessError::Token(text.len()));
        }
        Ok(Self(format!("Bearer {text}").into()))
    }

    /// Returns the value of the header `authorization`.
    pub(super) fn header(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_never_shown() {
        assert_eq!(Token::new("canary").unwrap().header(), "Bearer canary");
        for text in ["", "two words", "line\nbreak", "naïve", &"x".repeat(MAX_TOKEN + 1)] {
            assert_eq!(Token::new(text).err(), Some(AccessError::Token(text.len())), "{text:?}");
        }
        let access = ServerAccess { tls: None, token: Token::new("canary").ok() };
        assert!(!format!("{access:?}").contains("canary"));
    }
}
