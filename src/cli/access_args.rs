//! The options of commands that call a server over TLS, or with a token.

use std::fs::{self, File};
use std::io::{Read as _, Write as _, stderr};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use weir_config::{ClientFiles, Identity};
use weir_load::{ClientTls, ServerAccess, Token};
use weir_store::tls;

/// More than the longest token, so that a longer one is noticed.
const READ_AT_MOST: u64 = 16 << 10;

/// Others may read a file with this bit.
const READABLE_BY_OTHERS: u32 = 0o004;

#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS and identity")]
pub(super) struct AccessArgs {
    /// Authorities to trust for https://, in PEM [default: those of the system]
    #[arg(long, env = "WEIR_TLS_CA", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// A client certificate, in PEM
    #[arg(long, env = "WEIR_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(long, env = "WEIR_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The name that the server's certificate must have [default: the host of --server]
    #[arg(long, env = "WEIR_TLS_SERVER_NAME", value_name = "NAME")]
    tls_server_name: Option<String>,
    /// A file with the token that is sent with each call
    #[arg(long, env = "WEIR_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Send the token over plain text, where everybody on the way can read it
    #[arg(long)]
    insecure_token: bool,
}

impl AccessArgs {
    /// Reads the files for calls of `server`.
    pub(super) fn access(&self, server: &str) -> Result<ServerAccess> {
        let tls = match server.strip_prefix("https://") {
            Some(rest) => Some(self.tls(rest)?),
            None if self.tls_cert.is_some() || self.tls_ca.is_some() || self.tls_server_name.is_some() => {
                bail!(
                    "`{server}` is plain text, where the options of TLS have no effect: write https://HOST:PORT"
                )
            }
            None => None,
        };
        let token = self.token_file.as_deref().map(token).transpose()?;
        if token.is_some() && tls.is_none() && !self.insecure_token && !is_here(server) {
            bail!(
                "the token would be sent to {server} in plain text, where others can read it: write \
                 https://HOST:PORT, or give --insecure-token if the network is safe"
            );
        }
        Ok(ServerAccess { tls, token })
    }

    fn tls(&self, authority: &str) -> Result<ClientTls> {
        let identity = self.tls_cert.clone().zip(self.tls_key.clone());
        let identity = identity.map(|(cert_file, key_file)| Identity { cert_file, key_file });
        let files = ClientFiles { ca_file: self.tls_ca.clone(), identity };
        let config = tls::load(&files).map_err(|error| {
            // The settings of Redis have other names for the same files.
            let option = match error.file {
                "ca_file" => "--tls-ca",
                "cert_file" => "--tls-cert",
                _ => "--tls-key",
            };
            anyhow::anyhow!("{option}: {}", error.reason)
        })?;
        let name = self.tls_server_name.as_deref().unwrap_or_else(|| host(authority));
        Ok(ClientTls::new(&config, name)?)
    }
}

/// Returns the host of `HOST:PORT`.
fn host(authority: &str) -> &str {
    let authority = authority.trim_end_matches('/');
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// True if nobody else can read what is sent to the server: a Unix socket, or an address of this machine. Other names
/// than `localhost` are not looked up: they might be another machine's by the time of the call.
fn is_here(server: &str) -> bool {
    if server.starts_with("unix:") {
        return true;
    }
    let host = host(server.strip_prefix("http://").unwrap_or(server));
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

fn token(path: &Path) -> Result<Token> {
    let name = || format!("--token-file: {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(name)?;
    file.take(READ_AT_MOST).read_to_string(&mut text).with_context(name)?;
    let token = Token::new(text.trim_end_matches(['\r', '\n'])).with_context(name)?;
    if fs::metadata(path).is_ok_and(|found| found.permissions().mode() & READABLE_BY_OTHERS != 0) {
        // A warning that cannot be printed is no reason not to call.
        let _ = writeln!(
            stderr(),
            "warning: every user of this machine can read the token in {}",
            path.display()
        );
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leaves_this_machine_only_over_tls() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        fs::write(&file, "canary\n").unwrap();
        let args = |insecure_token| AccessArgs {
            token_file: Some(file.clone()),
            insecure_token,
            ..AccessArgs::default()
        };
        for here in ["127.0.0.1:1", "http://localhost:1", "[::1]:1", "unix:/run/weir", "http://127.9.9.9:1/"]
        {
            assert!(args(false).access(here).unwrap().token.is_some(), "{here}");
        }
        for far in ["192.0.2.1:1", "http://weir.example:1", "localhost.example:1", "[2001:db8::1]:1"] {
            let refusal = args(false).access(far).unwrap_err().to_string();
            assert!(refusal.contains("--insecure-token") && !refusal.contains("canary"), "{refusal}");
            assert!(args(true).access(far).unwrap().token.is_some(), "{far}");
        }
    }

    #[test]
    fn options_of_tls_need_https() {
        let args = AccessArgs { tls_server_name: Some("weir".to_owned()), ..AccessArgs::default() };
        assert!(args.access("127.0.0.1:1").unwrap_err().to_string().contains("https://"));
    }
}
