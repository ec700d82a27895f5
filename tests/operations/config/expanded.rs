//! `${VAR}` and `${file:PATH}` in values.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;

use tempfile::TempDir;
use weir_config::{Config, MAX_VALUE_FILE, StoreConfig};

/// The variables of these tests.
fn variable(name: &str) -> Option<OsString> {
    match name {
        "LIMIT" => Some("7".into()),
        "NAME" => Some("shop".into()),
        "EMPTY" => Some("".into()),
        "KEYS" => Some("x, workers: 3".into()),
        "NULL" => Some("null".into()),
        "BYTES" => Some(OsString::from_vec(vec![0xff])),
        "ONE" => Some("hunter2-one".into()),
        "OTHER" => Some("hunter2-other".into()),
        _ => None,
    }
}

fn load(folder: &TempDir, text: &str) -> Result<Config, String> {
    let file = crate::support::scratch::file(folder.path(), "weir.yaml", text);
    let overrides = weir::features::overrides().with_variables(variable);
    let loaded = Config::load(&file, &overrides).map_err(|errors| errors.to_string());
    loaded.map_err(|errors| errors.replace(&format!("{}:", file.display()), ""))
}

fn limit(name: &str, limit: &str) -> String {
    format!(
        "strategies:\n  {name}:\n    limits:\n      - {{ name: l, per: [consumer], fixed_window: {{ limit: {limit}, window: 1h }} }}\n"
    )
}

fn limit_of(config: &Config) -> u64 {
    config.rules.strategies()[0].limits()[0].algorithm.capacity()
}

#[test]
fn variables_and_files_give_values_in_scalars_of_every_style() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("limit"), "12\n").unwrap();
    for (written, expected) in [
        ("\"${LIMIT}\"", 7),
        ("'${LIMIT}0'", 70),
        ("\"${file:limit}\"", 12),
        ("\"1${file:limit}${LIMIT}\"", 1127),
    ] {
        let config = load(&folder, &limit("s", written)).unwrap();
        assert_eq!(limit_of(&config), expected, "{written}");
    }
    let block =
        "resources:\n  - match: ${NAME}/*\n    strategy: s\n  - match: |-\n      ${NAME}\n    strategy: s\n";
    let config = load(&folder, &format!("{}{block}", limit("s", "1"))).unwrap();
    for resource in ["shop/1", "shop"] {
        assert!(config.rules.resolve(resource, "").is_ok(), "{resource}");
    }
    fs::create_dir(folder.path().join("secrets")).unwrap();
    fs::write(folder.path().join("secrets/limit"), "5\r\n").unwrap();
    assert_eq!(limit_of(&load(&folder, &limit("s", "\"${file:secrets/limit}\"")).unwrap()), 5);
    let path = folder.path().join("limit");
    assert_eq!(
        limit_of(&load(&folder, &limit("s", &format!("'${{file:{}}}'", path.display()))).unwrap()),
        12
    );
}

#[test]
fn a_literal_is_written_with_two_dollars_and_keys_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let text = "resources:\n  - { match: 'a$${NAME}', strategy: s }\n  - { match: '$$${NAME}', strategy: s }\n  \
                - { match: '$5', strategy: s }\n";
    let config = load(&folder, &format!("{}{text}", limit("s", "1"))).unwrap();
    for resource in ["a${NAME}", "$${NAME}", "$5"] {
        assert!(config.rules.resolve(resource, "").is_ok(), "{resource}");
    }
    let errors = load(&folder, "'${NAME}': 1\n").unwrap_err();
    assert!(errors.contains("\"${NAME}\": unknown key"), "{errors}");
}

#[test]
fn a_value_adds_no_keys_and_no_types() {
    let folder = tempfile::tempdir().unwrap();
    let errors =
        load(&folder, &format!("server: {{ workers: \"${{KEYS}}\" }}\n{}", limit("s", "1"))).unwrap_err();
    assert_eq!(
        errors,
        "1:20: server.workers: \"x, workers: 3\" is not a whole number of at least 0 (from \"${KEYS}\")"
    );
    // A text that a file would read as nothing is text.
    let text = format!("resources: [{{ match: '${{NULL}}', strategy: s }}]\n{}", limit("s", "1"));
    assert!(load(&folder, &text).unwrap().rules.resolve("null", "").is_ok());
}

#[test]
fn what_is_not_set_or_not_there_is_a_mistake_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("large"), vec![b'x'; MAX_VALUE_FILE + 1]).unwrap();
    fs::write(folder.path().join("bytes"), b"\xff").unwrap();
    let shown = |name: &str| format!("\"{}\"", folder.path().join(name).display());
    let cases = [
        (
            "${MISSING}",
            "the variable MISSING is not set: begin the command with MISSING=VALUE; `$${` is a literal `${`"
                .to_owned(),
        ),
        ("${BYTES}", "the variable BYTES is not UTF-8".to_owned()),
        ("x${NAME", "\"${NAME\" has no closing brace; `$${` is a literal `${`".to_owned()),
        (
            "${NA ME}",
            "\"${NA ME}\" is neither ${VARIABLE} nor ${file:PATH}; `$${` is a literal `${`".to_owned(),
        ),
        ("${}", "\"${}\" is neither ${VARIABLE} nor ${file:PATH}; `$${` is a literal `${`".to_owned()),
        ("${file:}", "`${file:}` names no file".to_owned()),
        ("${file:none}", format!("{} cannot be read: No such file or directory (os error 2)", shown("none"))),
        ("${file:large}", format!("{} is larger than 65536 bytes (64 KiB)", shown("large"))),
        ("${file:bytes}", format!("{} is not UTF-8", shown("bytes"))),
        ("${EMPTY}", "must not be empty (from \"${EMPTY}\")".to_owned()),
    ];
    for (written, reason) in cases {
        let text = format!("resources: [{{ match: '{written}', strategy: s }}]\n{}", limit("s", "1"));
        assert_eq!(
            load(&folder, &text).unwrap_err(),
            format!("1:22: resources[0].match: {reason}"),
            "{written}"
        );
    }
    // 64 KiB without its line break are allowed.
    fs::write(folder.path().join("most"), format!("{}\r\n", "1".repeat(MAX_VALUE_FILE))).unwrap();
    let errors = load(&folder, &limit("s", "'${file:most}'")).unwrap_err();
    assert!(errors.contains("cannot be the value here"), "{errors}");
}

#[test]
fn expansions_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("most"), "a".repeat(MAX_VALUE_FILE)).unwrap();
    let text = "access: { deny: [".to_owned() + &"'${file:most}', ".repeat(257) + "] }\n" + &limit("s", "1");
    let errors = load(&folder, &text).unwrap_err();
    assert!(
        errors.contains("makes the expanded configuration larger than 16777216 bytes (16 MiB)"),
        "{}",
        &errors[..300]
    );
    for index in 0..1001 {
        fs::write(folder.path().join(format!("n{index}")), index.to_string()).unwrap();
    }
    let names: String = (0..1001).map(|index| format!("'${{file:n{index}}}', ")).collect();
    let errors = load(&folder, &format!("access: {{ deny: [{names}] }}\n{}", limit("s", "1"))).unwrap_err();
    assert!(
        errors.ends_with("is one more file: the values of a configuration name at most 1000"),
        "{errors}"
    );
}

#[test]
fn a_secret_that_a_file_or_a_variable_gives_is_in_no_hash_and_in_no_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let with = |text: &str| load(&folder, &format!("{text}{}", limit("s", "1")));
    let hash = |text: String| with(&text).unwrap().fingerprint.to_string();
    let redis = |login: &str, more: &str| {
        format!("store: {{ redis: {{ nodes: ['redis://{login}127.0.0.1:6379'] {more} }} }}\n")
    };
    for text in [
        |secret: &str| format!(", password: '{secret}'"),
        |secret: &str| format!(", topology: sentinel, sentinel: {{ master: m, password: '{secret}' }}"),
    ] {
        if with(&redis("", &text("${ONE}"))).is_err() {
            continue;
        }
        assert_eq!(hash(redis("", &text("${ONE}"))), hash(redis("", &text("${OTHER}"))));
    }
    assert_eq!(hash(redis("u:${ONE}@", "")), hash(redis("u:${OTHER}@", "")));
    let key = |secret: &str| format!("store: {{ key_secret: '{secret}' }}\n");
    assert_eq!(hash(key("${ONE}")), hash(key("${OTHER}")));
    assert_ne!(hash(key("${ONE}")), hash(String::new()));
    fs::write(folder.path().join("canary"), "canary-4711\n").unwrap();
    let one = hash(key("${file:canary}"));
    let config = with(&redis("", ", password: '${file:canary}'")).unwrap();
    let StoreConfig::Redis(shown) = &config.store else { panic!("not Redis") };
    assert_eq!(shown.login.as_ref().unwrap().password.read().unwrap(), "canary-4711");
    assert!(!format!("{config:?}").contains("canary-4711"));
    fs::write(folder.path().join("canary"), "canary-4712\n").unwrap();
    assert_eq!(hash(key("${file:canary}")), one);
    for text in [
        "server: { workers: '${file:canary}' }\n".to_owned(),
        "server: { listen: 'x${file:canary}y' }\n".to_owned(),
        "resources: [{ match: a, strategy: '${file:canary}' }]\n".to_owned(),
        redis("", ", nodes_file: '${file:canary}'"),
        "store: { namespace: '${file:canary}!' }\n".to_owned(),
    ] {
        let errors = with(&text).unwrap_err();
        assert!(!errors.contains("4712"), "{errors}");
    }
}

#[cfg(feature = "envoy")]
#[test]
fn files_of_envoy_are_never_expanded() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("envoy")).unwrap();
    let envoy = "domain: ${NAME}\ndescriptors:\n  - { key: '${MISSING}', rate_limit: { unit: minute, requests_per_unit: 2 } }\n";
    fs::write(folder.path().join("envoy/edge.yaml"), envoy).unwrap();
    load(&folder, &format!("envoy: {{ config: envoy }}\n{}", limit("s", "1"))).unwrap();
    let files = weir_envoy::files::EnvoyFiles::load(folder.path().join("envoy").as_path(), false).unwrap();
    assert_eq!(files.domains[0].0, "${NAME}");
}
