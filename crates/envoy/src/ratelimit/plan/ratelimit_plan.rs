//! From the variables to settings of Weir.

use std::path::{Path, PathBuf};

use weir_core::key::Namespace;

use super::given::{RatelimitErrors, RatelimitGiven, RatelimitLine};
use super::mapped::Mapped;
use super::variables::VariableEffect;
use super::{mapper, ports, store, xds};
use crate::ratelimit::RatelimitPorts;
use crate::settings::EnvoyLayout;
use weir_config::foreign::quote;
use weir_config::{ConfigOverrides, ServesAlone, unix_path, unreadable};

/// Everything that the variables say.
#[derive(Debug)]
pub struct RatelimitPlan {
    /// The settings, beside those that are given natively.
    pub overrides: ConfigOverrides,
    /// The services on gRPC.
    pub alone: ServesAlone,
    /// The ports beside gRPC.
    pub ports: RatelimitPorts,
    /// A line for each variable that is set.
    pub lines: Vec<RatelimitLine>,
    /// Lines about variables that others take precedence over.
    pub notes: Vec<String>,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatelimitLog {
    /// Level of the log.
    pub level: &'static str,
    /// True for JSON.
    pub json: bool,
}

/// Inputs besides the variables.
#[derive(Debug)]
pub struct RatelimitSurroundings {
    /// The settings that `WEIR_*` variables give.
    pub native: ConfigOverrides,
    /// True if `WEIR_CONFIG` names a file.
    pub has_file: bool,
    /// The first 16 digits of the SHA-256 of a text, in hex.
    pub digest: fn(&str) -> String,
}

impl RatelimitLog {
    /// Reads `LOG_LEVEL` and `LOG_FORMAT`; mistakes are reported with the plan.
    #[must_use]
    pub fn from_given(given: &RatelimitGiven) -> Self {
        let level = match given.text("LOG_LEVEL").unwrap_or("warn") {
            "panic" | "fatal" | "error" => "error",
            "info" => "info",
            "debug" => "debug",
            "trace" => "trace",
            _ => "warn",
        };
        Self { level, json: given.text("LOG_FORMAT") == Some("json") }
    }
}

impl RatelimitPlan {
    /// Maps the variables, or reports every mistake in them.
    pub fn new(mut given: RatelimitGiven, around: RatelimitSurroundings) -> Result<Self, RatelimitErrors> {
        let RatelimitSurroundings { native, has_file, digest } = around;
        let admin = native.has("admin");
        let overrides = native.clone();
        let mut mapped = Mapped { native, overrides, notes: Vec::new() };
        if !given.has("USE_STATSD") {
            let note = "USE_STATSD is not false: statsd is not sent; scrape /metrics on DEBUG_PORT or PROMETHEUS_ADDR";
            mapped.notes.push(note.to_owned());
        }
        mapped.notes.extend(mapper::note(&given));
        listen(&mut given, &mut mapped);
        tls(&mut given, &mut mapped);
        files(&mut given, &mut mapped);
        answers(&mut given, &mut mapped);
        if let Some(prefix) = given.text("CACHE_KEY_PREFIX") {
            let namespace = match Namespace::new(prefix) {
                Ok(namespace) => namespace.as_str().to_owned(),
                Err(_) => format!("rl-{}", digest(prefix)),
            };
            mapped.notes.push(format!("CACHE_KEY_PREFIX: the namespace of all keys is {namespace}"));
            mapped.set("store.namespace", "CACHE_KEY_PREFIX", namespace);
        }
        let mapped = store::store(&mut given, mapped, has_file);
        let ports = ports::ports(&mut given);
        let lines = given.lines();
        let Mapped { overrides, notes, .. } = mapped;
        match ports.filter(|_| given.errors.is_empty()) {
            Some((ports, labels)) => {
                let alone = ServesAlone { feature: "envoy", labels, admin };
                Ok(Self { overrides, alone, ports, lines, notes })
            }
            None => Err(RatelimitErrors { mistakes: given.errors, lines }),
        }
    }
}

/// Maps the address of gRPC, and the services on it.
fn listen(given: &mut RatelimitGiven, mapped: &mut Mapped) {
    let address = match given.text("GRPC_UDS").map(|path| format!("unix:{path}")) {
        Some(path) => match unix_path(&path) {
            Some(Ok(_)) => Some(("GRPC_UDS", path)),
            Some(Err(error)) => {
                given.wrong("GRPC_UDS", error);
                None
            }
            None => None,
        },
        None => ports::address(given, "GRPC_HOST", "GRPC_PORT", 8081).map(|address| {
            (if given.has("GRPC_HOST") { "GRPC_HOST" } else { "GRPC_PORT" }, address.to_string())
        }),
    };
    let is_set = ["GRPC_UDS", "GRPC_HOST", "GRPC_PORT"].iter().any(|name| given.has(name));
    if let Some((label, address)) = address.filter(|_| is_set || !mapped.native.has("listen")) {
        mapped.set("listen", label, address);
    }
    if !mapped.native.has("reflection") {
        mapped.set("reflection", "reflection", "false");
    }
    if !mapped.native.has("plaintext") {
        // A mesh has the TLS, as with the reference.
        mapped.set("plaintext", "plaintext", "intended");
    }
    // At least a second, and at most what the setting takes.
    let age = given.micros("GRPC_MAX_CONNECTION_AGE").unwrap_or(24 * 3_600_000_000);
    let age = age.clamp(1_000_000, 7 * 24 * 3_600_000_000);
    mapped.set("server.limits.max_connection_age", "GRPC_MAX_CONNECTION_AGE", format!("{age}us"));
    let grace = given.micros("GRPC_MAX_CONNECTION_AGE_GRACE").unwrap_or(u64::MAX).min(3_600_000_000);
    let label = "GRPC_MAX_CONNECTION_AGE_GRACE";
    mapped.set("server.limits.max_connection_age_grace", label, format!("{grace}us"));
}

fn tls(given: &mut RatelimitGiven, mapped: &mut Mapped) {
    const FILES: [(&str, &str); 3] = [
        ("GRPC_SERVER_TLS_CERT", "server.tls.cert_file"),
        ("GRPC_SERVER_TLS_KEY", "server.tls.key_file"),
        ("GRPC_CLIENT_TLS_CACERT", "server.tls.client_ca_file"),
    ];
    if given.boolean("GRPC_SERVER_USE_TLS") != Some(true) {
        for name in FILES.map(|(name, _)| name).into_iter().chain(["GRPC_CLIENT_TLS_SAN"]) {
            given.explain(name, VariableEffect::Ignored("GRPC_SERVER_USE_TLS is not true"));
        }
        return;
    }
    for (name, path) in FILES {
        match given.text(name) {
            Some(file) => mapped.set(path, name, file),
            None if name == "GRPC_CLIENT_TLS_CACERT" => {}
            None => given.wrong(name, "is missing; GRPC_SERVER_USE_TLS needs a certificate and its key"),
        }
    }
    let san = given.text("GRPC_CLIENT_TLS_SAN").map(str::to_owned);
    if san.is_some() && !given.has("GRPC_CLIENT_TLS_CACERT") {
        given.explain("GRPC_CLIENT_TLS_SAN", VariableEffect::Ignored("GRPC_CLIENT_TLS_CACERT is not set"));
    } else {
        mapped.set_some("server.tls.client_san", "GRPC_CLIENT_TLS_SAN", san);
    }
    if given.has("GRPC_CLIENT_TLS_CACERT") {
        mapped.set("server.tls.client_auth", "GRPC_CLIENT_TLS_CACERT", "required");
    }
}

/// Maps the directory of the files, which must exist.
fn files(given: &mut RatelimitGiven, mapped: &mut Mapped) {
    if let Some(merge) = given.boolean("MERGE_DOMAIN_CONFIG") {
        mapped.set("envoy_merge_domains", "MERGE_DOMAIN_CONFIG", merge.to_string());
    }
    mapped.set("envoy.isolate_domains", "envoy.isolate_domains", "true");
    mapped.set("envoy.reference_metrics", "envoy.reference_metrics", "true");
    if mapped.native.has("envoy_config") {
        for name in ["RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY", "RUNTIME_WATCH_ROOT"] {
            given.explain(name, VariableEffect::Ignored("WEIR_ENVOY_CONFIG takes precedence"));
        }
        return;
    }
    if xds::is_used(given) {
        for name in ["RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY", "RUNTIME_WATCH_ROOT"] {
            given.explain(name, VariableEffect::Ignored("CONFIG_TYPE is GRPC_XDS_SOTW"));
        }
        return xds::xds(given, mapped);
    }
    xds::unused(given);
    if given.errors.iter().any(|error| error.starts_with("CONFIG_TYPE")) {
        return;
    }
    let root = PathBuf::from(given.text("RUNTIME_ROOT").unwrap_or("/srv/runtime_data/current"));
    let Some(below) = given.text("RUNTIME_SUBDIRECTORY") else {
        let reason =
            "is empty: the directory of the files is RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY";
        return given.wrong("RUNTIME_SUBDIRECTORY", reason);
    };
    let app = given.text("RUNTIME_APPDIRECTORY").unwrap_or("config").to_owned();
    let root = root.join(below);
    let (folder, layout) = match given.boolean("RUNTIME_WATCH_ROOT").unwrap_or(true) {
        true => (root, EnvoyLayout::below(&app)),
        false => (root.join(app), EnvoyLayout::DOTTED),
    };
    if let Err(reason) = readable(&folder) {
        let names = "RUNTIME_ROOT, RUNTIME_SUBDIRECTORY, RUNTIME_APPDIRECTORY";
        return given.wrong(names, format_args!("{} {reason}", quote(&folder.to_string_lossy())));
    }
    mapped.set("envoy_config", "RUNTIME_ROOT", folder.to_string_lossy());
    mapped.set(EnvoyLayout::PATH, "RUNTIME_WATCH_ROOT", layout);
}

fn readable(folder: &Path) -> Result<(), String> {
    std::fs::read_dir(folder)
        .map(drop)
        .map_err(|error| format!("cannot be read: {}", unreadable(folder, &error)))
}

fn answers(given: &mut RatelimitGiven, mapped: &mut Mapped) {
    for (name, path) in [
        ("SHADOW_MODE", "envoy.shadow_mode"),
        ("QUOTA_MODE", "envoy.quota_mode"),
        ("RESPONSE_DYNAMIC_METADATA", "envoy.dynamic_metadata"),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "envoy.headers"),
        ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "envoy.stop_when_over"),
        ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "ready_needs_store"),
    ] {
        mapped.set_some(path, name, given.boolean(name).map(|set| set.to_string()));
    }
    for (name, path) in [
        ("LIMIT_LIMIT_HEADER", "envoy.limit_header"),
        ("LIMIT_REMAINING_HEADER", "envoy.remaining_header"),
        ("LIMIT_RESET_HEADER", "envoy.reset_header"),
    ] {
        mapped.set_some(path, name, given.text(name).map(str::to_owned));
    }
    let ratio = given.float("NEAR_LIMIT_RATIO").map(|ratio| ratio.to_string());
    mapped.set_some("envoy.near_limit_ratio", "NEAR_LIMIT_RATIO", ratio);
}
