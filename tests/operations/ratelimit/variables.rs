//! What the variables mean, and what is said of them.

use std::collections::BTreeSet;
use std::path::Path;

use weir_envoy::ratelimit::{RATELIMIT_DIFFERENCES, VariableEffect, ratelimit_variables};

use super::{Ratelimit, command, files, host, variables};
use crate::support::clients::root;
use crate::support::command::{WEIR, text};

/// Starts with one more variable, which is a mistake: what it says.
pub(super) fn refused(more: &[(&str, &str)]) -> String {
    let files = files(super::FILE);
    let mut all = variables(files.path(), host());
    all.retain(|(name, _)| more.iter().all(|(other, _)| name != other));
    // Without its own store, that of the reference's variables counts.
    let more = more.iter().filter(|pair| **pair != ("WEIR_STORE", ""));
    all.extend(more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let ended = command(Path::new(WEIR), &["ratelimit"], &all).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
    text(&ended.stderr)
}

#[test]
fn a_mistake_names_its_variable() {
    let missing = refused(&[("RUNTIME_ROOT", "/nowhere")]);
    assert!(
        missing.contains("RUNTIME_ROOT, RUNTIME_SUBDIRECTORY, RUNTIME_APPDIRECTORY: \"/nowhere/ratelimit\""),
        "{missing}"
    );
    for (name, value, reason) in [
        ("SHADOW_MODE", "yes", "\"yes\" is neither true nor false"),
        ("PORT", "0", "0 is out of bounds: it must be from 1 to 65535"),
        ("GRPC_PORT", "65536", "65536 is out of bounds"),
        ("DEBUG_PORT", "x", "\"x\" is not a whole number"),
        ("HOST", "nobody.example", "\"nobody.example\" is not an IP address"),
        ("GRPC_MAX_CONNECTION_AGE", "1", "\"1\" is not a duration"),
        ("NEAR_LIMIT_RATIO", "2", "envoy.near_limit_ratio: \"2\" is not a part of one"),
        ("LIMIT_RESET_HEADER", "a b", "envoy.reset_header: "),
        ("CONFIG_TYPE", "HTTP", "\"HTTP\" is not one of FILE, GRPC_XDS_SOTW"),
        ("BACKEND_TYPE", "memcache", "memcache is not supported"),
        ("RUNTIME_SUBDIRECTORY", "", "is empty"),
        ("GRPC_SERVER_USE_TLS", "true", "is missing"),
        ("LOG_LEVEL", "loud", "\"loud\" is not one of"),
        ("EXTRA_TAGS", "zone", "\"zone\" is not NAME:VALUE"),
        ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "yes", "\"yes\" is neither true nor false"),
        ("PROMETHEUS_PATH", "metrics", ""),
    ] {
        if name == "PROMETHEUS_PATH" {
            let log = refused(&[(name, value), ("USE_PROMETHEUS", "true")]);
            assert!(log.contains("PROMETHEUS_PATH: \"metrics\" is not a path"), "{log}");
            continue;
        }
        let log = refused(&[(name, value)]);
        let label = if name == "GRPC_SERVER_USE_TLS" { "GRPC_SERVER_TLS_CERT" } else { name };
        assert!(log.contains(&format!("{label}: ")) && log.contains(reason), "{name}={value}: {log}");
    }
}

#[test]
fn a_mistake_in_a_file_of_tls_names_its_variable() {
    let folder = files("");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let (empty, missing) = (empty.display().to_string(), "/nowhere/a.pem");
    let redis = [
        ("WEIR_STORE", ""),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", "127.0.0.1:1"),
        ("REDIS_TLS", "true"),
    ];
    for (name, file, reason) in [
        ("REDIS_TLS_CACERT", empty.as_str(), "holds no certificate"),
        ("REDIS_TLS_CACERT", missing, "cannot be read"),
        ("REDIS_TLS_CLIENT_CERT", missing, "has no `key_file`"),
        ("REDIS_TLS_CLIENT_KEY", missing, "has no `cert_file`"),
    ] {
        let log = refused(&[&redis[..], &[(name, file)]].concat());
        assert!(log.contains(&format!("{name}: ")) && log.contains(reason), "{name}={file}: {log}");
    }
    let server = [
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", empty.as_str()),
        ("GRPC_SERVER_TLS_KEY", empty.as_str()),
    ];
    let log = refused(&server);
    assert!(log.contains("GRPC_SERVER_TLS_CERT: ") && log.contains("holds no certificate"), "{log}");
}

#[test]
fn a_mistake_about_the_control_plane_names_its_variable() {
    for (name, value, reason) in [
        ("CONFIG_GRPC_XDS_SERVER_URL", "https://canary@a:1", "\"https://\" is not supported here"),
        ("CONFIG_GRPC_XDS_SERVER_URL", "gateway", "\"gateway\" is not HOST:PORT"),
        ("CONFIG_GRPC_XDS_NODE_METADATA", "zone", "it must be KEY=VALUE,KEY=VALUE"),
        ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "canary", "it must be KEY:VALUE,KEY:VALUE"),
        ("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "12", "12 is out of bounds"),
        ("XDS_CLIENT_BACKOFF_MAX_INTERVAL", "soon", "\"soon\" is not a duration"),
    ] {
        let log = refused(&[("CONFIG_TYPE", "GRPC_XDS_SOTW"), (name, value)]);
        assert!(log.contains(&format!("{name}: {reason}")) && !log.contains("canary"), "{log}");
    }
    let tls = [("CONFIG_TYPE", "GRPC_XDS_SOTW"), ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true")];
    let log = refused(&[tls[0], tls[1], ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "/certs/tls.crt")]);
    assert!(
        log.contains("CONFIG_GRPC_XDS_CLIENT_TLS_CERT: envoy.xds.tls.cert_file: needs `key_file`"),
        "{log}"
    );
}

/// What the reference would refuse or do otherwise is said at the start.
#[test]
fn what_is_not_supported_is_said() {
    let started = Ratelimit::start(&[
        ("TRACING_ENABLED", "true"),
        ("REDIS_PERSECOND", "false"),
        ("USE_STATSD", "true"),
        ("REDIS_URL", "redis:6379"),
        ("CACHE_KEY_PREFIX", "Mine_"),
    ]);
    let (code, log) = started.stop();
    assert_eq!(code, Some(0), "{log}");
    for said in ["TRACING_ENABLED=\\\"true\\\": not supported", "USE_STATSD"] {
        assert!(log.replace('"', "\\\"").contains(said), "{said}: {log}");
    }
    assert!(!log.contains("REDIS_PERSECOND"), "{log}");
}

#[test]
fn secrets_are_never_shown() {
    const CANARY: &str = "canary7f3a";
    let secret = |name: &str| format!("{CANARY}{name}");
    let pairs = [
        ("REDIS_AUTH", secret("auth")),
        ("REDIS_SENTINEL_AUTH", format!("user:{}", secret("sentinel"))),
        ("REDIS_PERSECOND_AUTH", secret("persecond")),
        ("REDIS_URL", format!("redis://{CANARY}user:{CANARY}pass@redis:6379/x?password={CANARY}query")),
        ("CONFIG_GRPC_XDS_SERVER_URL", format!("https://{CANARY}:{CANARY}@xds:18000?{CANARY}")),
        ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", format!("authorization:{CANARY}")),
        ("LOG_LEVEL", "trace".to_owned()),
        ("REDIS_SOCKET_TYPE", "tcp".to_owned()),
    ];
    let files = files(super::FILE);
    for (store, args) in
        [(true, &["ratelimit"][..]), (false, &["ratelimit"]), (false, &["ratelimit", "--explain"])]
    {
        let mut all = variables(files.path(), host());
        // With their own store the address is a mistake, which is reported.
        all.retain(|(name, _)| name != "WEIR_STORE" || store);
        all.push(("PORT".to_owned(), if store { "0" } else { "8080" }.to_owned()));
        all.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let ended = command(Path::new(WEIR), args, &all).output().unwrap();
        let said = text(&ended.stdout) + &text(&ended.stderr);
        assert!(!said.is_empty());
        assert!(!said.contains(CANARY), "{said}");
    }
}

#[test]
fn explain_says_what_each_variable_does() {
    let files = files(super::FILE);
    let mut all = variables(files.path(), host());
    let more = [("SHADOW_MODE", "true"), ("REDIS_POOL_SIZE", "20"), ("TRACING_ENABLED", "1"), ("HOST", "")];
    all.retain(|(name, _)| name != "HOST");
    all.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let ended = command(Path::new(WEIR), &["ratelimit", "--explain"], &all).output().unwrap();
    let said = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    for line in [
        "SHADOW_MODE=\"true\": sets `envoy.shadow_mode`",
        "REDIS_POOL_SIZE=\"20\": ignored: each worker has one connection",
        "TRACING_ENABLED=\"1\": not supported: traces are not sent",
        "HOST=\"\": ignored: it is empty, which is as not set",
    ] {
        assert!(said.lines().any(|found| found.starts_with(line)), "{line}\n{said}");
    }
}

/// With a mistake, what the other variables mean is said before it. Differences beside the variables are said, too, and
/// docs/envoy.md has them.
#[test]
fn explain_says_all_before_what_is_wrong() {
    let files = files(super::FILE);
    let mut all = variables(files.path(), host());
    all.retain(|(name, _)| name != "RUNTIME_ROOT");
    all.extend(
        [("RUNTIME_ROOT", "/nowhere"), ("SHADOW_MODE", "true")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let ended = command(Path::new(WEIR), &["ratelimit", "--explain"], &all).output().unwrap();
    let (said, wrong) = (text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(2), "{wrong}");
    assert!(said.contains("SHADOW_MODE=\"true\": sets `envoy.shadow_mode`\n"), "{said}");
    assert!(
        wrong.contains("error: RUNTIME_ROOT, RUNTIME_SUBDIRECTORY, RUNTIME_APPDIRECTORY: \"/nowhere"),
        "{wrong}"
    );
    let page = std::fs::read_to_string(root().join("docs/envoy.md")).unwrap();
    for (what, there, here) in RATELIMIT_DIFFERENCES {
        assert!(said.contains(&format!("difference: {what}: there {there}; here {here}\n")), "{said}");
        assert!(page.contains(&format!("| {what} | {there} | {here} |\n")), "{what}");
    }
}

/// Weir's own variables go before those of the reference.
#[test]
fn native_variables_take_precedence() {
    let at = host().to_string();
    let started = Ratelimit::start(&[("WEIR_LISTEN", &format!("{at}:9999")), ("WEIR_LOG", "info")]);
    assert!(std::net::TcpStream::connect((at.as_str(), 9999)).is_ok());
    let (_, log) = started.stop();
    assert_eq!(log.matches("WEIR_LISTEN takes precedence over GRPC_HOST").count(), 1, "{log}");
}

/// Every variable of the table stands in docs/envoy.md with what it does.
#[test]
fn the_table_of_the_documents_is_that_of_the_program() {
    const START: &str = "<!-- ratelimit variables -->\n";
    const END: &str = "<!-- end of ratelimit variables -->";
    let mut table = "| variable | its default there | here |\n|---|---|---|\n".to_owned();
    let mut names = BTreeSet::new();
    for variable in ratelimit_variables() {
        assert!(names.insert(variable.name), "{} is in the table twice", variable.name);
        let here = match variable.effect {
            VariableEffect::Mapped(what) => what.to_owned(),
            VariableEffect::Ignored(why) => format!("ignored: {why}"),
            VariableEffect::Unsupported(instead) => format!("not supported: {instead}"),
        };
        let default =
            if variable.default.is_empty() { String::new() } else { format!("`{}`", variable.default) };
        table += &format!("| `{}` | {default} | {here} |\n", variable.name);
    }
    let path = root().join("docs/envoy.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).expect("the table has a start");
    let (found, after) = rest.split_once(END).expect("the table has an end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{START}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, table, "UPDATE_DOCS=1 writes the table");
}
