//! Callers that show who they are in different ways, and the servers that they call.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::ClientConfig;
use serde_json::{Value, json};
use weir_config::{ClientFiles, Identity};
use weir_node::access::new_token;
use weir_testing::certificates::{Authority, Issued};
use weir_testing::jwt::JwtKeyPair;

use crate::served::{Served, WEIR};

/// The name in the server's certificate.
pub(crate) const NAME: &str = "weir.test";

/// A kind of caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) name: &'static str,
    tls: bool,
    certificate: bool,
    secret: Option<&'static str>,
    rules: bool,
}

/// No credential, over plain text.
const PLAIN: Caller =
    Caller { name: "plain text", tls: false, certificate: false, secret: None, rules: false };

pub(crate) const TLS: Caller = Caller { name: "TLS 1.3", tls: true, ..PLAIN };

pub(crate) const MUTUAL: Caller = Caller { name: "client certificate", certificate: true, ..TLS };

const ALL: [Caller; 6] = [
    PLAIN,
    TLS,
    MUTUAL,
    Caller { name: "token, over TLS 1.3", secret: Some("token"), ..TLS },
    Caller { name: "JWT, over TLS 1.3", secret: Some("jwt"), ..TLS },
    Caller { name: "client certificate and rules with lists", rules: true, ..MUTUAL },
];

/// The files of all callers and servers.
pub(crate) struct Callers {
    authority: Authority,
    server: Issued,
    client: Issued,
    dir: tempfile::TempDir,
}

impl Callers {
    pub(crate) fn create() -> Self {
        let authority = Authority::create();
        let (server, client) =
            (authority.issue("server", &[NAME]), authority.issue("client", &["spiffe://prod/shop"]));
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let (token, line) = new_token("shop").unwrap();
        write("tokens", &line);
        write("token", &token);
        let key = JwtKeyPair::p256("key");
        write("jwks", &json!({ "keys": [key.jwk()] }).to_string());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({ "iss": "idp", "aud": "weir", "sub": "shop", "exp": now + 86_400 });
        write("jwt", &key.sign(key.header(), claims));
        Self { authority, server, client, dir }
    }

    pub(crate) fn all(&self) -> [Caller; 6] {
        ALL
    }

    /// Writes the configuration of the server that a caller calls.
    pub(crate) fn config(&self, caller: &Caller) -> PathBuf {
        let (cert, key, ca) = (&self.server.cert, &self.server.key, self.authority.ca_file());
        let clients = format!("client_ca_file: {ca:?}, client_auth: required");
        let clients = if caller.certificate { clients } else { "client_auth: none".to_owned() };
        let tls = format!("  tls: {{ cert_file: {cert:?}, key_file: {key:?}, {clients} }}\n");
        let identity = match caller.secret {
            Some("token") => "  identity: { tokens_file: tokens }\n",
            Some(_) => {
                "  identity: { jwt: [{ jwks_file: jwks, issuer: idp, audience: weir, algorithms: [ES256] }] }\n"
            }
            None => "",
        };
        let rules = "authorize:
  - { callers: ['spiffe://prod/*'], may: [decide], resources: [api, 'load*', 'resource*'], strategies: [default] }
  - { callers: ['spiffe://prod/shop'], may: [lease], resources: ['exports/*'], consumers: [$caller] }
";
        let text = format!(
            "server:\n  workers: 0\n{}{identity}{}strategies:
  default: {{ limits: [{{ name: each, per: [resource, consumer], token_bucket: {{ rate: 1000/s, burst: 1_000_000 }} }}] }}
",
            if caller.tls { &tls } else { "" },
            if caller.rules { rules } else { "" },
        );
        let file = self.dir.path().join("weir.yaml");
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Puts load on a server. Returns its CPU time per call, in µs.
    pub(crate) fn cpu_of_a_call(&self, caller: &Caller, served: &Served, span: Duration) -> f64 {
        let mut load = Command::new(WEIR);
        let scheme = if caller.tls { "https" } else { "http" };
        load.args(["load", "--server", &format!("{scheme}://{}", served.address), "--strategy", "default"]);
        load.args(["--resource", "api", "--connections", "8", "--in-flight", "128", "--keys", "100000"]);
        load.args(["--warm-up", "1s", "--quiet", "--output", "json", "--pid", &served.pid().to_string()]);
        load.args(["--duration", &format!("{}ms", span.as_millis())]);
        if caller.tls {
            load.arg("--tls-ca").arg(self.authority.ca_file()).args(["--tls-server-name", NAME]);
        }
        if caller.certificate {
            load.arg("--tls-cert").arg(&self.client.cert).arg("--tls-key").arg(&self.client.key);
        }
        if let Some(secret) = caller.secret {
            load.arg("--token-file").arg(self.dir.path().join(secret));
        }
        let output = load.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["decisions"]["failed"], 0, "{report}");
        report["cpu"]["servers"][0]["us_per_decision"].as_f64().unwrap()
    }

    /// The configuration of a client without `weir load`.
    pub(crate) fn client(&self, caller: &Caller) -> Arc<ClientConfig> {
        let own = |path: &Path| path.to_owned();
        let identity = caller
            .certificate
            .then(|| Identity { cert_file: own(&self.client.cert), key_file: own(&self.client.key) });
        let files = ClientFiles { ca_file: Some(self.authority.ca_file()), identity };
        weir_store::tls::load(&files).unwrap()
    }
}
