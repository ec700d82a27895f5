//! The defaults fit together, in the chart and in the kustomize base; and Weir takes what the chart writes.

use std::path::Path;

use serde_json::{Value, json};
use weir_config::{Config, StoreConfig};

use super::{CHART, cases, manifests, render_one};
use crate::deploy::{of_kind, strings, yaml};
use crate::support::command::{Serve, weir, weir_command};
use crate::support::helm::render;
use crate::support::scratch;

const MIB: f64 = 1024.0 * 1024.0;

/// Writes the files of a ConfigMap, and returns the configuration that they are.
fn config_of(map: &Value, folder: &Path) -> Config {
    let secrets = scratch::dir("chart-secrets-");
    for (name, text) in map["data"].as_object().unwrap() {
        let text = text.as_str().unwrap();
        // The key secret is read at the start, from a volume that is not on this machine.
        if let Some((key, _)) = text.split_once("/etc/weir-key/").and_then(|(_, rest)| rest.split_once('}')) {
            std::fs::write(secrets.path().join(key), "0123456789abcdef0123456789abcdef").unwrap();
        }
        let text = text.replace("/etc/weir-key", secrets.path().to_str().unwrap());
        std::fs::write(folder.join(name), text).unwrap();
    }
    // Other files of Secrets are not here either, which is only a note.
    let checked = Config::check_all(&[folder.to_path_buf()], &weir::features::overrides());
    checked.config.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Bytes of a quantity with Mi or Gi, or millionths of a core.
fn quantity(value: &Value) -> f64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (number, factor) = [("Gi", 1024.0 * MIB), ("Mi", MIB), ("m", 0.001)]
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.to_owned(), factor)))
        .unwrap_or((text.clone(), 1.0));
    number.parse::<f64>().unwrap() * factor
}

/// Compares a pod with the configuration that it gets.
fn assert_fits(deployment: &Value, config: &Config, workers: usize) {
    let pod = &deployment["spec"]["template"]["spec"];
    let resources = &pod["containers"][0]["resources"];
    let server = &config.server;
    // 5 minutes: long enough that reconnecting costs nothing, short enough that new pods get their share. Weir spreads it.
    assert_eq!(server.limits.max_connection_age.map(|age| age.secs_ceil()), Some(300));
    assert_eq!(workers as f64, quantity(&resources["requests"]["cpu"]).ceil());
    assert_eq!(resources["limits"]["cpu"], Value::Null, "throttling is an outage");
    let store = match &config.store {
        StoreConfig::Memory(memory) => memory.budget as f64,
        StoreConfig::Redis(redis) => 2.0 * redis.local_budget as f64,
    };
    let needed = 1.25 * (store + server.limits.max_buffered_bytes as f64);
    assert!(quantity(&resources["limits"]["memory"]) > needed, "{needed} bytes");
    let drain = server.drain_delay.secs_ceil() + 1 + server.drain_timeout.secs_ceil();
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > drain, "{drain} s");
}

#[test]
fn the_defaults_of_the_chart_fit_together() {
    for values in [json!({}), json!({ "store": { "redis": { "nodes": ["redis://redis:6379"] } } })] {
        let Some(rendered) = render_one(values) else { return };
        let manifests = manifests(&rendered);
        let folder = scratch::dir("chart-");
        let config = config_of(of_kind(&manifests, "ConfigMap"), folder.path());
        assert_fits(of_kind(&manifests, "Deployment"), &config, config.server.workers);
    }
}

#[test]
fn the_kustomize_base_fits_together() {
    let deployment = yaml("deploy/kubernetes/deployment.yaml");
    let folder = scratch::dir("base-");
    let text = super::read("deploy/kubernetes/weir.yaml");
    let config = config_of(&json!({ "data": { "weir.yaml": text } }), folder.path());
    let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let workers = env.iter().find(|one| one["name"] == "WEIR_WORKERS").unwrap()["value"].as_str().unwrap();
    assert_fits(&deployment, &config, workers.parse().unwrap());
}

/// Under every value of the chart, Weir has nothing to say of its files.
#[test]
fn weir_takes_every_configuration_of_the_chart() {
    let Some(rendered) = render(CHART, &cases::all()) else { return };
    for case in &rendered {
        let manifests = manifests(case);
        let of = |name: &str| {
            manifests.iter().find(|one| one["kind"] == "ConfigMap" && one["metadata"]["name"] == name)
        };
        let container = &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0];
        let folder = scratch::dir("chart-");
        if container["command"][0] == "/bin/ratelimit" {
            explain(container, of("weir").unwrap(), folder.path());
        } else {
            let map = manifests.iter().find(|one| one["data"]["chart.yaml"].is_string()).unwrap();
            // With `existingConfigMap`, the strategies are in a file that the chart does not write.
            if map["data"].as_object().unwrap().len() > 1 {
                config_of(map, folder.path());
            }
        }
    }
}

/// `weir ratelimit --explain` under the variables of the container.
fn explain(container: &Value, map: &Value, folder: &Path) {
    std::fs::write(folder.join("chart.yaml"), map["data"]["chart.yaml"].as_str().unwrap()).unwrap();
    // Where the ConfigMap of the limits is mounted.
    std::fs::create_dir_all(folder.join("data/ratelimit/config")).unwrap();
    let mut command = weir_command(&["ratelimit", "--explain"]);
    for variable in container["env"].as_array().unwrap() {
        let (name, value) = (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
        match name {
            "WEIR_CONFIG" => command.env(name, folder),
            "RUNTIME_ROOT" => command.env(name, folder.join(value.trim_start_matches('/'))),
            _ => command.env(name, value),
        };
    }
    let explained = command.output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&explained.stdout), String::from_utf8_lossy(&explained.stderr));
    assert!(explained.status.success() && !text.contains("not supported"), "{text}{errors}");
    assert!(text.contains("REDIS_URL="), "{text}");
}

/// `helm test`: what its pod does, against a server with the chart's configuration.
#[test]
fn the_test_of_the_chart_asks_a_decision() {
    let Some(rendered) = render_one(json!({})) else { return };
    let manifests = manifests(&rendered);
    let folder = scratch::dir("chart-");
    config_of(of_kind(&manifests, "ConfigMap"), folder.path());
    let serve = Serve::start(&["--config", folder.path().to_str().unwrap(), "--http", "127.0.0.1:0"]);
    let pod = of_kind(&manifests, "Pod");
    let mut args: Vec<String> =
        strings(&pod["spec"]["containers"][0]["args"]).iter().map(|&arg| arg.into()).collect();
    let server = args.iter_mut().find(|arg| arg.starts_with("--server=")).unwrap();
    assert_eq!(server, "--server=weir:8081", "the Service");
    *server = format!("--server={}", serve.server);
    let asked = weir(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(asked.status.code(), Some(0), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(serve.get("/metrics").contains(r#"weir_decisions_total{strategy="api",outcome="peeked"} 1"#));
}

/// The HTTP listener has a port of the pod and of both Services, callers may reach it, and it has the TLS of gRPC.
#[test]
fn http_is_on_until_it_is_switched_off() {
    let (tls, policy) = (json!({ "secret": "weir-tls" }), json!({ "enabled": true }));
    let cases = [
        ("on".to_owned(), json!({ "tls": tls, "networkPolicy": policy })),
        ("off".to_owned(), json!({ "http": { "enabled": false }, "networkPolicy": policy })),
    ];
    let Some(rendered) = render(CHART, &cases) else { return };
    for (case, is_on) in rendered.iter().zip([true, false]) {
        let manifests = manifests(case);
        let settings = of_kind(&manifests, "ConfigMap")["data"]["chart.yaml"].as_str().unwrap();
        let settings: Value = crate::support::yaml::document(settings).unwrap();
        assert_eq!(settings["http"]["listen"] == "0.0.0.0:8082", is_on, "{settings}");
        assert_eq!(
            settings["http"]["tls"],
            if is_on { settings["server"]["tls"].clone() } else { Value::Null }
        );
        let has_port = |ports: &Value, key: &str, port: &Value| {
            ports.as_array().unwrap().iter().any(|one| one[key] == *port)
        };
        let container = &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(has_port(&container["ports"], "containerPort", &json!(8082)), is_on);
        for service in manifests.iter().filter(|one| one["kind"] == "Service") {
            assert_eq!(has_port(&service["spec"]["ports"], "targetPort", &json!("http")), is_on, "{service}");
        }
        let callers = &of_kind(&manifests, "NetworkPolicy")["spec"]["ingress"][0];
        assert_eq!(has_port(&callers["ports"], "port", &json!(8082)), is_on, "{callers}");
    }
}

/// The pods mount folders, so that the kubelet replaces files; only settings of the chart replace pods.
#[test]
fn strategies_change_without_new_pods() {
    let cases = [
        ("as it is".to_owned(), json!({})),
        ("other strategies".to_owned(), json!({ "config": "strategies: {}\n" })),
        ("other settings".to_owned(), json!({ "server": { "drainDelaySeconds": 6 } })),
    ];
    let Some(rendered) = render(CHART, &cases) else { return };
    let pods: Vec<Value> = (rendered.iter())
        .map(|case| of_kind(&manifests(case), "Deployment")["spec"]["template"].clone())
        .collect();
    assert_eq!(pods[0], pods[1]);
    assert_ne!(pods[0]["metadata"]["annotations"], pods[2]["metadata"]["annotations"]);
    let mounts = pods[0]["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().all(|mount| mount["subPath"].is_null()));
}
