//! Values for the chart: each option in turn, and mistakes.

use serde_json::{Value, json};

use super::super::read;
use crate::support::yaml::document;

const SERVE: &str = "redis://redis:6379";

/// A value at a path such as `store.redis.nodes`.
fn at(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |inner, key| json!({ key: inner }))
}

fn merge(mut into: Value, from: &Value) -> Value {
    for (key, value) in from.as_object().into_iter().flatten() {
        let before = into[key].take();
        into[key] =
            if value.is_object() && before.is_object() { merge(before, value) } else { value.clone() };
    }
    into
}

fn with(values: &[(&str, Value)]) -> Value {
    values.iter().fold(json!({}), |all, (path, value)| merge(all, &at(path, value.clone())))
}

/// The path of a value, another value than its default, and the values that it needs beside it.
type ChangedValue = (&'static str, Value, Vec<(&'static str, Value)>);

/// Values that differ from the defaults.
fn one_by_one() -> Vec<ChangedValue> {
    let redis = || ("store.redis.nodes", json!([SERVE]));
    let ratelimit = || vec![("mode", json!("ratelimit")), redis()];
    let on = |path| (path, json!(true));
    vec![
        ("mode", json!("ratelimit"), vec![redis()]),
        ("replicas", json!(3), vec![redis()]),
        ("image.repository", json!("example.com/weir"), vec![]),
        ("image.tag", json!("1.2.3"), vec![]),
        ("image.digest", json!(format!("sha256:{}", "0".repeat(64))), vec![]),
        ("image.pullPolicy", json!("Always"), vec![]),
        ("imagePullSecrets", json!([{ "name": "mine" }]), vec![]),
        ("nameOverride", json!("other"), vec![]),
        ("fullnameOverride", json!("limits"), vec![]),
        (
            "config",
            json!(
                "strategies:\n  a:\n    limits: [{ name: a, per: [consumer], token_bucket: { rate: 1/s, burst: 1 } }]\n"
            ),
            vec![],
        ),
        ("existingConfigMap", json!("mine"), vec![]),
        ("http.enabled", json!(false), vec![]),
        ("store.redis.nodes", json!([SERVE]), vec![]),
        ("store.redis.topology", json!("cluster"), vec![redis()]),
        (
            "store.redis.masterName",
            json!("mymaster"),
            vec![redis(), ("store.redis.topology", json!("sentinel"))],
        ),
        (
            "store.redis.username",
            json!("weir"),
            vec![redis(), ("store.redis.passwordSecret.name", json!("redis"))],
        ),
        ("store.redis.passwordSecret.name", json!("redis"), vec![redis()]),
        (
            "store.redis.passwordSecret.key",
            json!("pass"),
            vec![redis(), ("store.redis.passwordSecret.name", json!("redis"))],
        ),
        (
            "store.redis.caSecret.name",
            json!("ca"),
            vec![("store.redis.nodes", json!(["rediss://redis:6379"]))],
        ),
        (
            "store.redis.caSecret.key",
            json!("ca.pem"),
            vec![
                ("store.redis.nodes", json!(["rediss://redis:6379"])),
                ("store.redis.caSecret.name", json!("ca")),
            ],
        ),
        ("store.redis.localBudgetMiB", json!(64), vec![redis()]),
        ("store.memory.budgetMiB", json!(300), vec![]),
        ("store.memory.perPod", json!(true), vec![("replicas", json!(2))]),
        ("store.keySecret.name", json!("weir-key-secret"), vec![redis()]),
        (
            "store.keySecret.key",
            json!("other"),
            vec![redis(), ("store.keySecret.name", json!("weir-key-secret"))],
        ),
        ("server.drainDelaySeconds", json!(15), vec![]),
        ("server.drainTimeoutSeconds", json!(20), vec![]),
        ("server.maxConnectionAge", json!("10m"), vec![]),
        ("server.maxBufferedMiB", json!(128), vec![]),
        ("server.workers", json!(4), vec![]),
        ("tls.secret", json!("weir-tls"), vec![]),
        ("tls.clientAuth", json!("required"), vec![("tls.secret", json!("weir-tls"))]),
        ("tokens.secret", json!("weir-tokens"), vec![]),
        ("tokens.key", json!("tokens.txt"), vec![("tokens.secret", json!("weir-tokens"))]),
        ("ratelimit.config", json!({ "edge.yaml": "domain: edge\ndescriptors: []\n" }), ratelimit()),
        ("ratelimit.env", json!({ "LOG_LEVEL": "debug", "NEAR_LIMIT_RATIO": 0.8 }), ratelimit()),
        ("resources.requests", json!({ "cpu": "1500m", "memory": "256Mi" }), vec![]),
        ("resources.limits", json!({ "memory": "2Gi" }), vec![]),
        ("terminationGracePeriodSeconds", json!(60), vec![]),
        ("podDisruptionBudget.enabled", json!(false), vec![]),
        ("podDisruptionBudget.maxUnavailable", json!("25%"), vec![]),
        ("autoscaling.enabled", json!(true), vec![redis()]),
        ("autoscaling.minReplicas", json!(3), vec![redis(), on("autoscaling.enabled")]),
        ("autoscaling.maxReplicas", json!(5), vec![redis(), on("autoscaling.enabled")]),
        ("autoscaling.cpuPercent", json!(50), vec![redis(), on("autoscaling.enabled")]),
        ("networkPolicy.enabled", json!(true), vec![]),
        ("networkPolicy.callers", json!([{ "namespaceSelector": {} }]), vec![on("networkPolicy.enabled")]),
        ("networkPolicy.monitoring", json!([{ "podSelector": {} }]), vec![on("networkPolicy.enabled")]),
        ("serviceAccount.create", json!(false), vec![]),
        ("serviceAccount.name", json!("mine"), vec![]),
        ("serviceAccount.annotations", json!({ "a": "b" }), vec![]),
        ("podMonitor.enabled", json!(true), vec![]),
        ("podMonitor.interval", json!("5s"), vec![on("podMonitor.enabled")]),
        ("podMonitor.labels", json!({ "release": "prometheus" }), vec![on("podMonitor.enabled")]),
        ("prometheusRule.enabled", json!(true), vec![]),
        ("prometheusRule.labels", json!({ "release": "prometheus" }), vec![on("prometheusRule.enabled")]),
        ("dashboards.enabled", json!(true), vec![]),
        ("dashboards.labels", json!({ "grafana_dashboard": "yes" }), vec![on("dashboards.enabled")]),
        ("dashboards.annotations", json!({ "grafana_folder": "limits" }), vec![on("dashboards.enabled")]),
        ("trialRedis.enabled", json!(true), vec![]),
        ("trialRedis.image", json!("valkey/valkey:8"), vec![on("trialRedis.enabled")]),
        ("test.enabled", json!(false), vec![]),
        ("test.resource", json!("api/other"), vec![]),
        ("test.consumer", json!("bob"), vec![]),
        ("test.tokenSecret.name", json!("token"), vec![]),
        ("test.tokenSecret.key", json!("t"), vec![("test.tokenSecret.name", json!("token"))]),
        ("test.certSecret", json!("cert"), vec![("tls.secret", json!("weir-tls"))]),
        ("logFilter", json!("debug"), vec![]),
        (
            "extraEnv",
            json!([{ "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }]),
            vec![],
        ),
        ("podLabels", json!({ "a": "b" }), vec![]),
        ("podAnnotations", json!({ "a": "b" }), vec![]),
        ("nodeSelector", json!({ "a": "b" }), vec![]),
        ("tolerations", json!([{ "key": "a", "operator": "Exists" }]), vec![]),
        ("affinity", json!({ "nodeAffinity": {} }), vec![]),
        ("priorityClassName", json!("high"), vec![]),
        (
            "topologySpreadConstraints",
            json!([{ "maxSkew": 2, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule" }]),
            vec![],
        ),
    ]
}

pub(super) fn all() -> Vec<(String, Value)> {
    let mut cases: Vec<(String, Value)> = (one_by_one().into_iter())
        .map(|(path, value, needed)| (path.to_owned(), with(&[needed, vec![(path, value)]].concat())))
        .collect();
    cases.push(("everything".to_owned(), everything()));
    cases.push(("everything as ratelimit".to_owned(), merge(everything(), &at("mode", json!("ratelimit")))));
    cases
}

/// Each case without its value, and with it.
pub(super) fn pairs() -> Vec<(String, Value)> {
    let pair = |(path, value, needed): (&str, Value, Vec<(&str, Value)>)| {
        let without = with(&needed);
        [(format!("without {path}"), without.clone()), (path.to_owned(), merge(without, &at(path, value)))]
    };
    one_by_one().into_iter().flat_map(pair).collect()
}

/// Every object that the chart can create.
pub(super) fn everything() -> Value {
    let parts = ["autoscaling", "networkPolicy", "podMonitor", "prometheusRule", "dashboards", "trialRedis"];
    parts.iter().fold(json!({}), |all, part| merge(all, &json!({ *part: { "enabled": true } })))
}

/// Every value of values.yaml is changed by a case.
pub(super) fn cover_every_value(cases: &[(String, Value)]) {
    fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
        match value.as_object().filter(|object| !object.is_empty()) {
            Some(object) if !MAPS.contains(&path) => {
                for (key, value) in object {
                    leaves(
                        &if path.is_empty() { key.clone() } else { format!("{path}.{key}") },
                        value,
                        found,
                    );
                }
            }
            _ => found.push(path.to_owned()),
        }
    }
    /// Mappings that are one value.
    const MAPS: [&str; 3] = ["resources.requests", "resources.limits", "dashboards.labels"];
    let mut expected = Vec::new();
    leaves("", &document(&read("deploy/helm/weir/values.yaml")).unwrap(), &mut expected);
    for path in expected {
        assert!(cases.iter().any(|(name, _)| *name == path), "no case for {path}");
    }
}

/// Mistakes, and what the error names.
pub(super) fn refused() -> Vec<(Value, &'static [&'static str])> {
    vec![
        (json!({ "replica": 2 }), &["replica"]),
        (at("store.redis.node", json!([SERVE])), &["redis", "node"]),
        (at("server.drainDelay", json!("5s")), &["server", "drainDelay"]),
        (json!({ "mode": "serv" }), &["mode", "serve"]),
        (json!({ "replicas": "2" }), &["replicas"]),
        (at("store.redis.nodes", json!(["redis:6379"])), &["nodes"]),
        (at("tls.clientAuth", json!("always")), &["clientAuth"]),
        (json!({ "mode": "ratelimit" }), &["mode: ratelimit", "store.redis.nodes"]),
        (json!({ "replicas": 2 }), &["replicas: 2", "store.memory.perPod"]),
        (at("autoscaling.enabled", json!(true)), &["autoscaling.enabled", "store.redis.nodes"]),
        (
            with(&[("store.redis.nodes", json!([SERVE])), ("store.redis.topology", json!("sentinel"))]),
            &["store.redis.masterName"],
        ),
        (json!({ "terminationGracePeriodSeconds": 16 }), &["terminationGracePeriodSeconds: 16", "= 16"]),
        (at("store.memory.budgetMiB", json!(400)), &["resources.limits.memory: 512Mi", "= 580Mi"]),
        (
            with(&[
                ("mode", json!("ratelimit")),
                ("existingConfigMap", json!("a")),
                ("trialRedis.enabled", json!(true)),
            ]),
            &["existingConfigMap"],
        ),
    ]
}
