//! Tests that each setting works from every source, and that each of its bounds holds. The environment variables are
//! tested with the program: `variables.rs`.

use std::collections::BTreeSet;

use serde_json::json;
use weir_core::key::{KeySecret, Namespace};
use weir_units::Micros;

use weir::features::{self, settings};
use weir_config::{
    Config, ConfigOverrides, DecisionLogConfig, DenialMessages, ServerConfig, Setting, StoreConfig,
    ValueKind, written_size,
};

/// The parsed file, or its mistakes.
type ReadOutcome = Result<Read, String>;

/// The parts of the configuration that settings affect.
#[derive(Debug, PartialEq)]
struct Read {
    server: ServerConfig,
    store: StoreConfig,
    key_secret: Option<KeySecret>,
    namespace: Namespace,
    /// The sections of features.
    sections: String,
    messages: DenialMessages,
    decision_log: DecisionLogConfig,
}

fn read(file: &str, overrides: &ConfigOverrides) -> ReadOutcome {
    let config = Config::parse(file, "weir.yaml", overrides).map_err(|errors| errors.to_string())?;
    let Config { server, store, key_secret, namespace, messages, decision_log, sections, .. } = config;
    let sections = format!("{sections:?}");
    Ok(Read { server, store, key_secret, namespace, sections, messages, decision_log })
}

/// A setting under test, with an existing file for settings that name one.
struct Tried {
    path: String,
    setting: Setting,
    there: tempfile::NamedTempFile,
}

impl Tried {
    /// Returns every setting that is a scalar in the file.
    fn all() -> Vec<Self> {
        let is_value = |setting: &Setting| {
            !matches!(
                setting.values,
                ValueKind::Section(_) | ValueKind::Set(..) | ValueKind::Items(..) | ValueKind::List(_)
            ) && !matches!(
                setting.values,
                ValueKind::Defined(
                    "store"
                        | "redis"
                        | "server_tls"
                        | "identity"
                        | "envoy_xds"
                        | "envoy_xds_tls"
                        | "envoy_rules"
                        | "envoy_all_or_none"
                )
            )
        };
        let values = settings().into_iter().filter(|(_, setting)| is_value(setting));
        values.map(|(path, setting)| Self { path, setting, there: there() }).collect()
    }

    fn existing(&self) -> String {
        self.there.path().display().to_string()
    }

    /// Returns a file in which it has this value, or none, with the other settings that it requires.
    fn file(&self, value: Option<&str>) -> String {
        let existing = self.existing();
        let mut root = json!({ "strategies": { "a": { "limits": [
            { "name": "each", "per": ["consumer"], "uniform": { "interval": "1s" } },
        ] } } });
        if self.path.starts_with("store.redis") {
            let scheme = if self.path.contains(".tls.") { "rediss" } else { "redis" };
            root["store"] = json!({ "redis": { "nodes": [format!("{scheme}://a")] } });
        }
        if self.path.starts_with("server.tls.client_crl.") {
            root["server"]["tls"] = json!({
                "cert_file": existing, "key_file": existing, "client_ca_file": existing, "client_auth": "required",
                "client_crl_file": existing,
            });
        }
        if self.path.starts_with("http.limits.") {
            root["http"]["listen"] = json!("127.0.0.1:1");
        }
        if self.path.starts_with("usage.") {
            root["store"] = json!({ "redis": { "nodes": ["redis://a"] } });
        }
        if self.path.starts_with("envoy.xds.") && self.path != "envoy.xds.server" {
            root["envoy"]["xds"]["server"] = json!("a:1");
        }
        if self.path == "server.control" {
            root["control"]["cache_file"] = json!(existing);
        }
        let (sections, key) = self.path.rsplit_once('.').unwrap();
        let mut section = &mut root;
        for name in sections.split('.') {
            section = &mut section[name];
        }
        let beside = match self.path.as_str() {
            "server.control_listen" => json!({ "admin_service": true }),
            "store.redis.shards" => json!({ "topology": "cluster" }),
            "store.redis.username" => json!({ "password": "p" }),
            "store.redis.master_name" => json!({ "topology": "sentinel" }),
            "store.redis.sentinel_username" => {
                json!({ "topology": "sentinel", "master_name": "m", "sentinel_password": "p" })
            }
            "store.redis.sentinel_password" | "store.redis.sentinel_password_file" => {
                json!({ "topology": "sentinel", "master_name": "m" })
            }
            "store.redis.tls.cert_file" => json!({ "key_file": existing }),
            "store.redis.tls.key_file" => json!({ "cert_file": existing }),
            "server.tls.cert_file" => json!({ "key_file": existing }),
            "server.tls.key_file" => json!({ "cert_file": existing }),
            "server.tls.client_ca_file" => {
                json!({ "cert_file": existing, "key_file": existing, "client_auth": "none" })
            }
            "server.tls.client_auth" => {
                json!({ "cert_file": existing, "key_file": existing, "client_ca_file": existing })
            }
            "server.tls.client_crl_file" | "server.tls.client_san" => json!({
                "cert_file": existing, "key_file": existing, "client_ca_file": existing, "client_auth": "required",
            }),
            "envoy.xds.tls.cert_file" => json!({ "key_file": existing }),
            "envoy.xds.tls.key_file" => json!({ "cert_file": existing }),
            // The other one would be out of order.
            "envoy.xds.min_backoff" => json!({ "max_backoff": "1h" }),
            "envoy.xds.max_backoff" => json!({ "min_backoff": "10ms" }),
            "server.tls.min_version" => json!({ "cert_file": existing, "key_file": existing }),
            "log.decisions.file" | "log.decisions.denied_file" => json!({ "denied": true }),
            "log.decisions.max_bytes" | "log.decisions.max_files" => json!({ "keys": 1, "file": existing }),
            _ => json!({}),
        };
        for (key, value) in beside.as_object().unwrap() {
            section[key] = value.clone();
        }
        if let Some(value) = value {
            section[key] = match self.setting.values {
                ValueKind::Count(..) | ValueKind::Boolean | ValueKind::Part => {
                    serde_json::from_str(value).unwrap_or_else(|_| value.into())
                }
                _ => value.into(),
            };
        }
        root.to_string()
    }

    /// Returns valid values, including its bounds.
    fn good(&self) -> Vec<String> {
        match (&self.setting.values, self.path.as_str()) {
            (ValueKind::Count(min, max), _) => vec![min.to_string(), max.to_string()],
            (ValueKind::Span(min, max), _) => vec![min.to_string(), max.to_string()],
            (ValueKind::Size(min, usize::MAX), _) => vec![min.to_string(), (2 * min).to_string()],
            (ValueKind::Size(min, max), _) => vec![min.to_string(), max.to_string()],
            (ValueKind::Boolean, _) => vec!["true".to_owned(), "false".to_owned()],
            (ValueKind::Part, _) => vec!["0".to_owned(), "0.5".to_owned(), "1".to_owned()],
            (ValueKind::Words(words), _) => words.iter().map(|word| (*word).to_owned()).collect(),
            (_, path) if path.ends_with("_file") => vec![self.existing()],
            (_, "http.listen") => vec!["127.0.0.1:1".to_owned(), "[::1]:9".to_owned()],
            (_, "envoy.xds.server") => vec!["a:1".to_owned(), "dns:///[::1]:65535".to_owned()],
            (ValueKind::Text(_, max), "envoy.xds.node_metadata") => {
                vec!["a=b".to_owned(), format!("a={}", "b".repeat(max - 2))]
            }
            (ValueKind::Text(_, max), "envoy.xds.call_headers") => {
                vec!["a:b,c:d:e".to_owned(), format!("a:{}", "b".repeat(max - 2))]
            }
            (ValueKind::Text(_, max), _) => vec!["x".to_owned(), "x".repeat(*max)],
            (_, "server.listen" | "server.admin" | "server.control_listen") => {
                vec!["127.0.0.1:0".to_owned(), "[::1]:9".to_owned()]
            }
            (_, "server.listen_mode") => vec!["600".to_owned(), "0666".to_owned()],
            (_, "store.namespace") => vec!["n".to_owned(), "n".repeat(32)],
            (_, "usage.node") => vec!["n-1".to_owned(), "n".repeat(64)],
            (_, "envoy.limit_header" | "envoy.remaining_header" | "envoy.reset_header") => {
                vec!["X-Left_1.0".to_owned(), "n".repeat(64)]
            }
            (values, path) => panic!("{path} needs values to try: {values:?}"),
        }
    }

    /// Returns invalid values, with the expected error: the value and the bound.
    fn bad(&self) -> Vec<(String, String)> {
        let word = |reason: String| vec![("zzz".to_owned(), format!("\"zzz\" {reason}"))];
        let outside = |below: Option<String>, above: String, bounds: String| {
            let values = below.into_iter().chain([above]);
            values.map(|value| (value.clone(), format!("{value} is out of bounds: {bounds}"))).collect()
        };
        let long = |most: usize| {
            let text = "x".repeat(most + 1);
            vec![(text, format!("is {} bytes long: at most {most}", most + 1))]
        };
        match (&self.setting.values, self.path.as_str()) {
            (ValueKind::Count(min, max), _) => outside(
                min.checked_sub(1).map(|below| below.to_string()),
                (max + 1).to_string(),
                format!("it must be from {min} to {max}"),
            ),
            (ValueKind::Span(min, max), _) => outside(
                min.0.checked_sub(1).map(|below| Micros(below).to_string()),
                Micros(max.0 + 1).to_string(),
                format!("it must be from {min} to {max}"),
            ),
            (ValueKind::Size(min, usize::MAX), _) => {
                let (below, least) = (min - 1, written_size(*min as u64));
                let reason = format!("{below} bytes is out of bounds: it must be at least {least}");
                vec![(below.to_string(), reason)]
            }
            (ValueKind::Size(min, max), _) => outside(
                Some((min - 1).to_string()),
                (max + 1).to_string(),
                format!("it must be from {min} to {max}"),
            ),
            (ValueKind::Boolean, _) => word("is neither true nor false".to_owned()),
            (ValueKind::Part, _) => {
                vec![("1.001".to_owned(), "\"1.001\" is not a part of one, from 0 to 1".to_owned())]
            }
            (ValueKind::Words(words), _) => word(format!("is not one of {}", words.join(", "))),
            (_, "http.listen") => word("is not an IP address with a port".to_owned()),
            (_, "usage.node") => vec![("a b".to_owned(), "\"a b\" is no name of a node".to_owned())],
            (ValueKind::Text(1, max), path) => {
                let mut bad = long(*max);
                bad.push((String::new(), "must not be empty".to_owned()));
                let word = "zzz".to_owned();
                bad.extend(match path {
                    "envoy.xds.server" => Some((word, "\"zzz\" is not HOST:PORT".to_owned())),
                    "envoy.xds.node_metadata" => Some((word, "it must be KEY=VALUE,KEY=VALUE".to_owned())),
                    "envoy.xds.call_headers" => Some((word, "it must be NAME:VALUE,NAME:VALUE".to_owned())),
                    _ => None,
                });
                bad
            }
            (ValueKind::Text(_, max), _) => long(*max),
            (_, "server.listen" | "server.admin" | "server.control_listen") => {
                word("is not an IP address with a port".to_owned())
            }
            (_, "server.listen_mode") => {
                word("is not the mode of a file; write three octal digits".to_owned())
            }
            (_, "store.namespace") => {
                let long = "n".repeat(33);
                let reason = format!("\"{long}\" is no namespace: a namespace has 1 to 32 of the characters");
                vec![(long, reason)]
            }
            (_, "envoy.limit_header" | "envoy.remaining_header" | "envoy.reset_header") => {
                vec![("a b".to_owned(), "\"a b\" is not the name of a header".to_owned())]
            }
            (values, path) => panic!("{path} needs values to try: {values:?}"),
        }
    }
}

/// Creates a file for settings that need one: a password, or a certificate, which is not validated here.
fn there() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "something").unwrap();
    file
}

fn outside(name: &str, value: &str) -> ConfigOverrides {
    features::overrides().with(name, value)
}

#[test]
fn every_setting_does_the_same_from_the_file_and_from_outside() {
    let none = features::overrides();
    for tried in Tried::all() {
        let path = &tried.path;
        let without = read(&tried.file(None), &none);
        if let (Some(default), Ok(without)) = (&tried.setting.default, &without) {
            let written = read(&tried.file(Some(default)), &none);
            assert_eq!(written.as_ref(), Ok(without), "the default of {path} is not {default}");
        }
        let mut changes = 0;
        for value in tried.good() {
            let from_file = read(&tried.file(Some(&value)), &none);
            changes += usize::from(from_file != without);
            if let Some(name) = tried.setting.outside.name() {
                let from_outside = read(&tried.file(None), &outside(name, &value));
                assert_eq!(from_outside, from_file, "{path} as {value:?} from outside and from the file");
                // It overrides the file.
                for other in tried.good() {
                    let both = read(&tried.file(Some(&other)), &outside(name, &value));
                    assert_eq!(
                        both, from_file,
                        "{path} as {value:?} from outside, and {other:?} in the file"
                    );
                }
            }
            let is_taken = from_file.is_ok() || path == "store.redis.topology";
            assert!(is_taken, "{path} does not take {value:?}: {from_file:?}");
        }
        assert!(changes > 0, "no value of {path} changes anything");
    }
}

#[test]
fn every_bound_is_refused_with_the_field_the_value_and_the_bound() {
    let none = features::overrides();
    for tried in Tried::all() {
        let path = &tried.path;
        for (value, reason) in tried.bad() {
            let has = |errors: &str, begin: &str| {
                let named = |line: &str| {
                    let (place, rest) = line.split_once(&format!(": {path}: ")).unwrap_or_default();
                    place.starts_with(begin) && rest.contains(&reason)
                };
                assert!(errors.lines().any(named), "{path} as {value:?}, which is not {reason}:\n{errors}");
            };
            let errors = read(&tried.file(Some(&value)), &none).unwrap_err();
            has(&errors, "weir.yaml:1:");
            if let Some(name) = tried.setting.outside.name() {
                let errors = read(&tried.file(None), &outside(name, &value)).unwrap_err();
                has(&errors, &tried.setting.outside.label());
            }
        }
    }
}

#[test]
fn every_setting_has_a_text_and_a_name_of_its_own() {
    let (mut paths, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (path, setting) in settings() {
        assert!(setting.about.ends_with('.') && !setting.about.contains('|'), "{path}: {}", setting.about);
        assert!(setting.more.is_empty() || setting.more.ends_with('.'), "{path}: {}", setting.more);
        assert!(paths.insert(path.clone()), "{path} is there twice");
        if let Some(name) = setting.outside.name() {
            assert!(names.insert(name), "two settings are called {name}");
        }
    }
    assert!(paths.len() > 70 && names.len() > 30, "{} settings, {} outside", paths.len(), names.len());
}

#[test]
fn a_name_that_no_setting_has_is_a_mistake() {
    let errors = read(&Tried::all()[0].file(None), &outside("drain_timeut", "1s")).unwrap_err();
    assert_eq!(errors, "drain_timeut: no setting has this name");
}
