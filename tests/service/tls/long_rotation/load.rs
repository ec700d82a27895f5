//! Load at saturation by callers whose credentials are in every version.

use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::super::NAME;
use super::versions::Versions;
use crate::support::Process;
use crate::support::command::{WEIR, text};

/// `weir load` with each kind of credential.
pub(super) struct Load(Vec<(&'static str, Child)>);

impl Load {
    /// Begins to call, for so many seconds.
    pub(super) fn start(to: SocketAddr, versions: &Versions, seconds: u64) -> Self {
        let stays = &versions.stays;
        let dir = versions.config();
        let secret = |name: &str, secret: &str| {
            let path = dir.with_file_name(name);
            std::fs::write(&path, secret).unwrap();
            path.display().to_string()
        };
        let (token, jwt) = (secret("token", &stays.token), secret("jwt", &stays.jwt));
        let (cert, key) = (stays.issued.cert.display().to_string(), stays.issued.key.display().to_string());
        let ca = versions.authority.ca_file().display().to_string();
        let (server, duration) = (format!("https://{to}"), format!("{seconds}s"));
        let credentials: [(&str, &[&str]); 3] = [
            ("a certificate", &["--tls-cert", &cert, "--tls-key", &key]),
            ("a token", &["--token-file", &token]),
            ("a JWT", &["--token-file", &jwt]),
        ];
        Self(
            credentials
                .map(|(what, credential)| {
                    let mut command = Process::command(WEIR);
                    command.args(["load", "--server", &server, "--tls-ca", &ca, "--tls-server-name", NAME]);
                    command.args([
                        "--resource",
                        "x",
                        "--connections",
                        "2",
                        "--in-flight",
                        "32",
                        "--output",
                        "json",
                    ]);
                    command.args(["--warm-up", "0s", "--duration", &duration, "--quiet"]).args(credential);
                    (what, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
                })
                .into(),
        )
    }

    /// Waits for their ends: no call has failed.
    pub(super) fn has_no_error(self) {
        for (what, child) in self.0 {
            let output = child.wait_with_output().unwrap();
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{what}: {told}");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["decisions"]["failed"], 0, "{what}: {report}");
            assert_eq!(report["ended_early"], Value::Null, "{what}: {report}");
            println!("{what}: {} calls", report["calls"]["made"]);
        }
    }
}
