//! A server with identity and rights, and the callers of the works that name one.

use std::sync::Arc;

use weir_config::{Config, ConfigOverrides};
use weir_grpc::{Peer, PeerAddress, PeerCertificate};
use weir_node::access::{CallerAccess, new_token};
use weir_node::server::MakeIntercept;
use weir_testing::certificates::{certificate_with, uri};
use weir_time::clock::Clock;

/// A configuration needs some.
const STRATEGIES: &str =
    "strategies: { a: { limits: [{ name: each, per: [consumer], uniform: { interval: 1s } }] } }";

/// The credential that the calls of a work present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// Nothing, and the server asks for nothing.
    None,
    /// The certificate of the connection.
    Certificate,
    /// A token in each call.
    Token,
}

/// One connection of a caller: the server's check, its peer, and the value of `authorization`.
pub(crate) struct Identified {
    pub(crate) intercept: Option<MakeIntercept>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) authorization: Option<String>,
}

impl Credential {
    /// Returns the credential of a work, and the work without it.
    pub(crate) fn from_work(work: &str) -> (Self, &str) {
        match (work.strip_prefix("certificate "), work.strip_prefix("token ")) {
            (Some(work), _) => (Self::Certificate, work),
            (_, Some(work)) => (Self::Token, work),
            _ => (Self::None, work),
        }
    }

    /// Creates the check of a server whose rules bound the caller's resources and consumers.
    pub(crate) fn identified(self) -> Identified {
        if self == Self::None {
            return Identified { intercept: None, peer: Arc::default(), authorization: None };
        }
        let (token, line) = new_token("shop").unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), line).unwrap();
        let text = format!(
            "server: {{ identity: {{ tokens_file: {} }} }}\n\
             authorize: [{{ callers: ['spiffe://prod/*', token:shop], may: [decide], resources: [api], consumers: ['user_*'] }}]\n\
             {STRATEGIES}",
            file.path().display()
        );
        let config = Config::parse(&text, "bench", &ConfigOverrides::default()).unwrap();
        let access = CallerAccess::from_config(&config, Clock::System, Arc::default()).unwrap().unwrap();
        let peer = Peer::new(PeerAddress::Unknown);
        let peer = match self {
            Self::Certificate => {
                let certificate = certificate_with("x", vec![uri("spiffe://prod/shop")]);
                peer.with_certificate(Arc::new(PeerCertificate::new([certificate]).unwrap()))
            }
            Self::None | Self::Token => peer,
        };
        let authorization = (self == Self::Token).then(|| format!("Bearer {token}"));
        let intercept: MakeIntercept = Box::new(move || access.intercept());
        Identified { intercept: Some(intercept), peer: Arc::new(peer), authorization }
    }
}
