//! Versions of all files of a server. What callers show of version N is allowed by version N and by version N + 1.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use weir_node::access::new_token;
use weir_testing::certificates::replace;
use weir_testing::jwt::JwtKeyPair;

use super::super::*;
use crate::support::grpc::framed;
use crate::transports::client::{Call, Client as HttpClient};

/// The files, in one directory.
pub(super) struct Versions {
    dir: PathBuf,
    /// The authority of the server, and of the load.
    pub(super) authority: Authority,
    /// The credentials of every version, which the load shows.
    pub(super) stays: Arc<Shown>,
    before: Arc<Shown>,
    current: Arc<Shown>,
    number: u64,
}

/// The credentials that callers show.
pub(super) struct Shown {
    authority: Authority,
    pub(super) issued: Issued,
    pub(super) token: String,
    pub(super) jwt: String,
    /// The line of the tokens file.
    line: String,
    /// The public key.
    key: Value,
    /// Clients with the certificate, and without one.
    certificate: Arc<rustls::ClientConfig>,
    nothing: Arc<rustls::ClientConfig>,
}

/// The way in which a caller shows who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Certificate,
    Token,
    Jwt,
}

impl By {
    pub(super) const ALL: [Self; 3] = [Self::Certificate, Self::Token, Self::Jwt];
}

impl Versions {
    /// Writes the configuration and the first version.
    pub(super) fn create(dir: &Path) -> Self {
        let authority = Authority::create();
        let stays = Arc::new(Shown::new("stays", &authority));
        let first = Arc::new(Shown::new("first", &authority));
        let (before, current) = (Arc::clone(&first), first);
        let versions = Self { dir: dir.to_owned(), authority, stays, before, current, number: 0 };
        let server = versions.authority.issue("server", &[NAME]);
        let config = format!(
            "server:
  tls: {{ cert_file: {:?}, key_file: {:?}, client_ca_file: ca, client_crl_file: crl, client_auth: optional }}
  identity:
    tokens_file: tokens
    jwt: [{{ jwks_file: jwks, issuer: idp, audience: weir, algorithms: [EdDSA] }}]
authorize: [{{ callers: [dns:client, token:shop, 'jwt:idp:*'], may: [decide] }}]
strategies: {{ free: {{ limits: [{{ name: each, per: [consumer], token_bucket: {{ rate: 1000000/s, burst: 1000000 }} }}] }} }}
resources: [{{ match: '*', strategy: free }}]
",
            server.cert, server.key
        );
        std::fs::write(versions.config(), config).unwrap();
        versions.write();
        versions
    }

    pub(super) fn config(&self) -> PathBuf {
        self.dir.join("weir.yaml")
    }

    /// Returns the credentials of the callers of this version.
    pub(super) fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.current)
    }

    /// Replaces all files: those of the version before last go, and new ones come.
    pub(super) fn write_next(&mut self) {
        self.number += 1;
        let next = Arc::new(Shown::new(&format!("version {}", self.number), &self.authority));
        self.before = std::mem::replace(&mut self.current, next);
        self.authority.issue("server", &[NAME]);
        self.write();
    }

    fn write(&self) {
        let all = [&self.stays, &self.before, &self.current];
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        let authorities = all.map(|shown| read(shown.authority.ca_file())).concat();
        // Each time with another serial number that nobody has.
        let lists = all.map(|shown| read(shown.authority.revoke(&[1_000_000 + self.number]))).concat();
        let mut lines = all.map(|shown| shown.line.clone());
        let mut keys = all.map(|shown| shown.key.clone()).to_vec();
        if self.number.is_multiple_of(2) {
            lines.reverse();
            keys.reverse();
        }
        keys.dedup();
        let mut lines = lines.to_vec();
        lines.dedup();
        for (name, content) in [
            ("ca", authorities),
            ("crl", lists),
            ("tokens", lines.join("\n")),
            ("jwks", json!({ "keys": keys }).to_string()),
        ] {
            replace(&self.dir.join(name), content.as_bytes());
        }
    }
}

impl Shown {
    fn new(name: &str, server: &Authority) -> Self {
        let authority = Authority::named(name);
        let issued = authority.issue("client", &["client"]);
        let (token, line) = new_token("shop").unwrap();
        let key = JwtKeyPair::ed25519(name);
        let claims = json!({ "iss": "idp", "aud": "weir", "sub": "shop", "exp": unix_now() + 3600 });
        let jwt = key.sign(key.header(), claims);
        let certificate = client_files(server, Some(&issued));
        let (key, nothing) = (key.jwk(), client_files(server, None));
        Self { authority, issued, token, jwt, line, key, certificate, nothing }
    }

    /// Connects as a client that shows itself in this way.
    pub(super) async fn connect(&self, to: SocketAddr, by: By) -> std::io::Result<HttpClient> {
        let config = if by == By::Certificate { &self.certificate } else { &self.nothing };
        let socket = TcpStream::connect(to).await?;
        let connector = TlsConnector::from(Arc::clone(config));
        let name = ServerName::try_from(NAME).unwrap();
        let stream: TlsStream<TcpStream> = connector.connect(name, socket).await?;
        Ok(HttpClient::connect(stream).await)
    }

    /// A call with what it shows in headers, if anything.
    pub(super) fn call(&self, by: By) -> Call {
        use prost::Message as _;
        let call =
            Call::new("/weir.v1.RateLimitService/ShouldAllow", framed(0, &ask("x", "a").encode_to_vec()));
        match by {
            By::Certificate => call,
            By::Token => call.with("authorization", &format!("Bearer {}", self.token)),
            By::Jwt => call.with("authorization", &format!("Bearer {}", self.jwt)),
        }
    }

    /// True if a new connection of each kind is served.
    pub(super) async fn passes(&self, to: SocketAddr) -> bool {
        for by in By::ALL {
            let Ok(mut client) = self.connect(to, by).await else { return false };
            if client.call(&self.call(by)).await.code != Some(0) {
                return false;
            }
        }
        true
    }
}

#[allow(clippy::disallowed_methods)] // the server has the real clock
fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
