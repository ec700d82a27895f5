//! No secret is shown, whatever happens at whatever level of the log.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use weir_config::{Config, ConfigOverrides};
use weir_testing::certificates::Authority;
use weir_testing::jwt::JwtKeyPair;
use weir_testing::{SOON, eventually};

use super::STRATEGIES;
use crate::support::command::{Serve, text, weir, weir_command};
use crate::support::{RedisServer, scratch};

/// Returns the output of a command.
fn printed(args: &[&str]) -> String {
    let output = weir_command(args).stderr(Stdio::piped()).output().unwrap();
    text(&[output.stdout, output.stderr].concat())
}

/// A GET of the admin port with this credential.
fn get(serve: &Serve, path: &str, authorization: &str) -> String {
    let head = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: {authorization}\r\n\r\n");
    let mut stream = TcpStream::connect(serve.admin()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    answer
}

/// A JWT that is valid for an hour.
fn jwt(key: &JwtKeyPair) -> String {
    #[allow(clippy::disallowed_methods)] // the server has the real clock
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    key.sign(key.header(), json!({ "iss": "idp", "aud": "weir", "sub": "app", "exp": now + 3600 }))
}

/// The longest line of a file in PEM.
fn middle_of(pem: &Path) -> String {
    let pem = fs::read_to_string(pem).unwrap();
    pem.lines().filter(|line| !line.starts_with('-')).max_by_key(|line| line.len()).unwrap().to_owned()
}

/// A secret in each place that takes one, and all output at `trace`: answers, logs, commands, mistakes.
#[test]
fn no_secret_is_shown_anywhere() {
    let dir = scratch::dir("canary");
    let made = weir(&["token", "new", "shop"]);
    let token = text(&made.stdout).trim().to_owned();
    let line = text(&made.stderr).trim().to_owned();
    let digest = line.strip_prefix("shop ").unwrap().to_owned();
    assert_eq!((token.len(), digest.len()), (43, 64));
    fs::write(dir.path().join("tokens"), format!("{line}\n")).unwrap();
    let key = JwtKeyPair::ed25519("ed");
    let jwt = jwt(&key);
    fs::write(dir.path().join("jwks"), json!({ "keys": [key.jwk()] }).to_string()).unwrap();
    let authority = Authority::create();
    let issued = authority.issue("server", &["weir.test"]);
    let tls_key = middle_of(&issued.key);
    let redis = RedisServer::start();
    let (key_secret, password) = ("canary-of-the-key-secret", "canary-of-the-password");
    let (cert, key_file, url) = (issued.cert.display(), issued.key.display(), redis.url());
    let config = format!(
        "server:
  admin_tls: {{ cert_file: {cert}, key_file: {key_file} }}
  identity:
    tokens_file: tokens
    jwt: [{{ jwks_file: jwks, issuer: idp, audience: weir, algorithms: [EdDSA] }}]
store:
  key_secret: {key_secret}
  redis: {{ nodes: ['{url}'], username: nobody, password: {password} }}
{STRATEGIES}"
    );
    let file = scratch::file(dir.path(), "weir.yaml", &config);
    let admin_tls = config.lines().find(|line| line.contains("admin_tls")).unwrap();
    let plain = scratch::file(dir.path(), "plain.yaml", config.replace(admin_tls, "  workers: 1"));
    let [file, plain] = [&file, &plain].map(|path| path.to_str().unwrap());
    let mut shown = format!("{:?}", Config::load(file, &ConfigOverrides::default()).unwrap());
    // The user of Redis is unknown, so each connection is refused and logged.
    let serve = Serve::start(&["--config", plain, "--log", "trace"]);
    let good = [format!("Bearer {token}"), format!("Bearer {jwt}")];
    let fails =
        |page: &str| page.contains("WRONGPASS") || page.contains("password") || page.contains("login");
    eventually(SOON, "Redis refuses the password", || fails(&serve.get("/readyz")));
    for path in ["/", "/metrics", "/readyz", "/ui", "/ui/data"] {
        for good in &good {
            shown += &get(&serve, path, good);
        }
        // One that nobody has, and some that are malformed.
        for bad in
            [format!("Bearer {token}x"), format!("Basic {token}"), token.clone(), format!("Bearer {jwt}x")]
        {
            shown += &get(&serve, path, &bad);
        }
    }
    for reason in ["unknown", "signature", "malformed"] {
        assert!(shown.contains(&format!("weir_refused_calls_total{{reason=\"{reason}\"}}")), "{shown}");
    }
    let credential = dir.path().join("credential");
    for secret in [&token, &jwt] {
        fs::write(&credential, secret).unwrap();
        let call = ["allow", "api/x", "bob", "--server", &serve.server, "--token-file"];
        shown += &printed(&[&call[..], &[credential.to_str().unwrap()]].concat());
    }
    shown += &printed(&["check", file]);
    shown += &printed(&["explain", "api/x", "bob", "--config", file, "--caller", "token:shop"]);
    // Mistakes are shown with their values, but not these.
    fs::write(dir.path().join("bad"), format!("{token}\nshop {digest} never\n")).unwrap();
    let mistakes = config.replace("tokens_file: tokens", "tokens_file: bad");
    let mistakes = mistakes.replace(&format!("cert_file: {cert}"), &format!("cert_file: {key_file}"));
    let mistaken =
        scratch::file(dir.path(), "mistaken.yaml", mistakes.replace("key_secret: ", "key_secrets: "));
    shown += &printed(&["check", mistaken.to_str().unwrap()]);
    let (_, log) = serve.stop("TERM");
    assert!(log.contains("call refused"), "{log}");
    shown += &log;
    let signature = jwt.rsplit_once('.').unwrap().1;
    for (what, secret) in [
        ("the token", token.as_str()),
        ("its digest", &digest),
        ("the JWT", &jwt),
        ("its signature", signature),
        ("the key of TLS", &tls_key),
        ("the secret of keys", key_secret),
        ("the password", password),
    ] {
        assert!(!shown.contains(secret), "{what} is shown in\n{shown}");
    }
}

/// One line, and only if every user of the machine can read the file.
#[test]
fn a_token_file_that_others_can_read_is_told_of() {
    let dir = scratch::dir("token-file");
    let config = scratch::file(dir.path(), "weir.yaml", STRATEGIES);
    let serve = Serve::start(&["--config", config.to_str().unwrap()]);
    let file = scratch::file(dir.path(), "token", "canary");
    for (mode, lines) in [(0o600, 0), (0o640, 0), (0o644, 1), (0o604, 1)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let call = ["allow", "api/x", &mode.to_string(), "--server", &serve.server, "--token-file"];
        let output = weir(&[&call[..], &[file.to_str().unwrap()]].concat());
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert_eq!(told.matches("every user of this machine can read").count(), lines, "{mode:o}: {told}");
        assert!(!told.contains("canary"), "{told}");
    }
}

/// Resets are logged by default, with caller and result and without the token.
#[test]
fn resets_are_logged_with_their_caller() {
    let dir = scratch::dir("reset-log");
    let made = weir(&["token", "new", "operator"]);
    let (token, line) = (text(&made.stdout).trim().to_owned(), text(&made.stderr));
    fs::write(dir.path().join("tokens"), line).unwrap();
    let server = "server: { admin_service: true, identity: { tokens_file: tokens } }";
    let file = scratch::file(dir.path(), "weir.yaml", format!("{server}{STRATEGIES}"));
    let serve = Serve::start(&["--config", file.to_str().unwrap()]);
    for resource in ["api/x", "unknown/x"] {
        reset(&serve, &token, resource);
    }
    let (_, log) = serve.stop("TERM");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("limits reset by an operator")).collect();
    let [done, failed] = lines[..] else { panic!("{log}") };
    for part in ["token:operator", "Reset", "api/x", "bob"] {
        assert!(done.contains(part) && !done.contains("error"), "{part}: {done}");
    }
    assert!(failed.contains("unknown/x") && failed.contains("error"), "{failed}");
    assert!(!log.contains(&token), "{log}");
}

fn reset(serve: &Serve, token: &str, resource: &str) {
    use tonic::metadata::MetadataValue;
    use tonic::transport::Endpoint;
    use weir_proto::v1::ResetRequest;
    use weir_proto::v1::admin_service_client::AdminServiceClient;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(serve.server.clone()).unwrap().connect().await.unwrap();
        let mut client = AdminServiceClient::new(channel);
        let request = ResetRequest {
            resource: resource.to_owned(),
            consumer: "bob".to_owned(),
            ..ResetRequest::default()
        };
        let mut request = tonic::Request::new(request);
        let bearer: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        let _ = client.reset(request).await;
    });
}
