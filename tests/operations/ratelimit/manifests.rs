//! What the manifests of launchers start: each with its environment, arguments and user, on a read-only root without `/data`.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::xds::tls::{ServerFiles, copy_secret};
use super::xds::{Ads, config, leaf};
use super::{Ratelimit, files, host};
use crate::support::clients::{environment, python, root, run};
use crate::support::command::WEIR;
use crate::support::yaml::documents;
use crate::support::{Process, RedisServer, SOON, eventually, scratch};

const CORE: [&str; 4] = ["ai-gateway", "istio", "contour", "agentgateway"];

fn read(name: &str) -> (String, Vec<Value>) {
    let path = root().join(format!("deploy/envoy/launchers/{name}.yaml"));
    let text = fs::read_to_string(path).unwrap();
    let documents = documents(&text).unwrap();
    (text, documents)
}

fn of_kind<'v>(documents: &'v [Value], kind: &str) -> &'v Value {
    documents.iter().find(|one| one["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// A command that runs as user 65534 and can write nowhere. It has only these variables.
pub(super) fn confined(arguments: &[String], variables: &[(String, String)]) -> Command {
    const CONFINE: &str = "mount -o remount,bind,ro / && \
                           exec unshare --user --map-user=65534 --map-group=65534 -- \"$@\"";
    let mut command = Process::command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", CONFINE, "sh", WEIR]);
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(variables.iter().cloned()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts the container of a Deployment, and waits until it is healthy.
fn start(name: &str, replaced: &[(&str, &str)]) -> Ratelimit {
    healthy(name, launched(name, replaced))
}

/// Starts the container of a Deployment on an address of its own, with memory in place of Redis.
fn launched(name: &str, replaced: &[(&str, &str)]) -> Ratelimit {
    let (_, documents) = read(name);
    let pod = &of_kind(&documents, "Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "weir", "{name}");
    let (host, folder) = (host(), scratch::dir("launched-"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let given = container["env"].as_array().unwrap().iter();
    let mut variables: Vec<(String, String)> =
        given.map(|one| (text(&one["name"]), text(&one["value"]))).collect();
    let at = host.to_string();
    let metrics = format!("{at}:19001");
    let own = [
        ("HOST", &*at),
        ("GRPC_HOST", &*at),
        ("DEBUG_HOST", &*at),
        ("PROMETHEUS_ADDR", &*metrics),
        ("WEIR_STORE", "memory"),
    ];
    for (name, value) in own.iter().chain(replaced) {
        variables.retain(|(other, _)| other != name);
        variables.push(((*name).to_owned(), (*value).to_owned()));
    }
    let arguments: Vec<String> = container["command"].as_array().unwrap().iter().map(text).collect();
    run_confined(&arguments, &variables, (host, folder))
}

fn run_confined(
    arguments: &[String],
    variables: &[(String, String)],
    (host, folder): (Ipv4Addr, TempDir),
) -> Ratelimit {
    let process = Process::spawn(confined(arguments, variables)).unwrap();
    Ratelimit { process, host, _files: folder }
}

fn healthy(name: &str, mut started: Ratelimit) -> Ratelimit {
    eventually(SOON, "it is healthy", || {
        if let Some(status) = started.process.exited() {
            let help =
                "user namespaces may be refused: allow them with `sysctl kernel.unprivileged_userns_clone=1`";
            panic!("{name} ended: {status} ({help})\n{}", started.log());
        }
        started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == 200)
    });
    started
}

#[test]
fn each_manifest_is_what_kubernetes_knows() {
    let Some(environment) = environment() else { return };
    for name in CORE {
        let file = root().join(format!("deploy/envoy/launchers/{name}.yaml"));
        let mut validate = python(&environment);
        validate.args(["-m", "kubernetes_validate", "--strict"]).arg(&file);
        run(validate);
    }
}

#[test]
fn each_launcher_of_files_gets_its_limits() {
    for name in ["istio", "contour", "agentgateway"] {
        let (_, documents) = read(name);
        let file = of_kind(&documents, "ConfigMap")["data"]["config.yaml"].as_str().unwrap().to_owned();
        let folder = files(&file);
        let started = start(name, &[("RUNTIME_ROOT", &folder.path().join("data").display().to_string())]);
        let asked = [(); 3].map(|()| started.json("d", &[("k", "v")]));
        assert_eq!(asked, ["OK 2/DAY", "OK 2/DAY", "OVER_LIMIT 2/DAY"], "{name}");
        assert_eq!(started.stop().0, Some(0), "{name}");
    }
}

#[test]
fn ai_gateway_gets_the_limits_of_its_controller() {
    let ads = Ads::start();
    ads.set("1", &[config("ai-gateway-quota", vec![leaf("k", "v", 2)])]);
    let started = start("ai-gateway", &[("CONFIG_GRPC_XDS_SERVER_URL", &ads.address.to_string())]);
    ads.accepted("1");
    assert_eq!(started.json("ai-gateway-quota", &[("k", "v")]), "OK 2/DAY");
    assert_eq!(ads.requests()[0].node.clone().unwrap().id, "envoy-ai-gateway-ratelimit");
    assert!(started.get(19001, "/metrics").unwrap().1.contains("ratelimit_service_rate_limit_total_hits"));
}

/// It is said, not bounded, how soon: that is up to the machine.
#[test]
fn the_first_configuration_opens_the_ports() {
    let ads = Ads::start();
    let started = launched("ai-gateway", &[("CONFIG_GRPC_XDS_SERVER_URL", &ads.address.to_string())]);
    eventually(SOON, "it is connected", || started.metric(19001, "weir_xds_connected") == Some(1.0));
    assert!(started.get(8080, "/healthcheck").is_none(), "no port is open yet");
    let sent = weir_time::clock::monotonic();
    ads.set("1", &[config("ai-gateway-quota", vec![leaf("k", "v", 2)])]);
    let is_ready = || started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == 200);
    eventually(SOON, "it is ready", is_ready);
    let passed = sent.elapsed();
    let _ = writeln!(
        std::io::stderr(),
        "ready {passed:?} after the first configuration (1 s is what users expect)"
    );
    assert_eq!(started.json("ai-gateway-quota", &[("k", "v")]), "OK 2/DAY");
}

/// A minimal schema of what Envoy Gateway reads there (api/v1alpha1/envoygateway_types.go, shared_types.go).
#[test]
fn envoy_gateway_gets_an_image_and_an_overlay() {
    let (_, documents) = read("envoy-gateway");
    let gateway = &documents[0];
    assert_eq!(
        (&gateway["apiVersion"], &gateway["kind"]),
        (&"gateway.envoyproxy.io/v1alpha1".into(), &"EnvoyGateway".into())
    );
    let deployment = &gateway["provider"]["kubernetes"]["rateLimitDeployment"];
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(
        keys(deployment)
            .iter()
            .all(|key| ["container", "pod", "patch", "replicas", "name"].contains(&&**key))
    );
    let container = &deployment["container"];
    let known = ["env", "image", "imageRepository", "resources", "securityContext", "volumeMounts"];
    assert!(keys(container).iter().all(|key| known.contains(&&**key)), "{container}");
    let mount = Path::new(container["volumeMounts"][0]["mountPath"].as_str().unwrap());
    assert_eq!(container["env"][0]["name"], "WEIR_CONFIG");
    assert!(Path::new(container["env"][0]["value"].as_str().unwrap()).starts_with(mount));
    assert_eq!(deployment["pod"]["volumes"][0]["name"], container["volumeMounts"][0]["name"]);
}

/// All variables that Envoy Gateway sets, with its command. Addresses and the directory of its secret are this machine's.
#[test]
fn envoy_gateway_starts_it_with_its_own_environment() {
    let (secret, redis, host) = (scratch::dir("certs-"), RedisServer::start(), host());
    copy_secret(secret.path());
    let ads = ServerFiles::of_envoy_gateway().serve();
    ads.set("1", &[config("default/eg/http", vec![leaf("k", "v", 2)])]);
    let file = |name: &str| secret.path().join(name).display().to_string();
    let [ca, cert, key] = ["ca.crt", "tls.crt", "tls.key"].map(file);
    let (at, server, redis_url) = (host.to_string(), ads.address.to_string(), redis.addr());
    let metrics = format!("{at}:19001");
    let variables = [
        ("RUNTIME_ROOT", "/data"),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("RUNTIME_IGNOREDOTFILES", "true"),
        ("RUNTIME_WATCH_ROOT", "false"),
        ("LOG_LEVEL", "info"),
        ("USE_STATSD", "false"),
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_GRPC_XDS_SERVER_URL", &server),
        ("CONFIG_GRPC_XDS_NODE_ID", "envoy-ratelimit"),
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", &cert),
        ("GRPC_SERVER_TLS_KEY", &key),
        ("GRPC_SERVER_TLS_CA_CERT", &ca),
        ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"),
        ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", &cert),
        ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", &key),
        ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", &ca),
        ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &redis_url),
        ("USE_PROMETHEUS", "true"),
        ("PROMETHEUS_ADDR", &metrics),
        ("PROMETHEUS_MAPPER_YAML", "/etc/statsd-exporter/conf.yaml"),
        ("TRACING_ENABLED", "true"),
        ("TRACING_SERVICE_NAME", "envoy-ratelimit"),
        ("TRACING_SERVICE_NAMESPACE", "envoy-gateway-system"),
        ("TRACING_SERVICE_INSTANCE_ID", "envoy-ratelimit-5d"),
        ("TRACING_SAMPLING_RATE", "0.6"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        // The test's own: the host of the address is not the gateway's, and the ports are on one address.
        ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "envoy-gateway"),
        ("HOST", &at),
        ("GRPC_HOST", &at),
        ("DEBUG_HOST", &at),
        ("WEIR_DRAIN_DELAY", "0s"),
    ];
    assert!(!Path::new("/data").exists(), "a directory that need not be there");
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let arguments = ["/bin/ratelimit", "--anything"].map(str::to_owned);
    let started = healthy("Envoy Gateway", run_confined(&arguments, &variables, (host, scratch::dir("eg-"))));
    ads.accepted("1");
    eventually(SOON, "Redis counts", || started.json("default/eg/http", &[("k", "v")]) == "OK 2/DAY");
    assert!(!redis.state_keys().is_empty());
    let (_, page) = started.get(19001, "/metrics").unwrap();
    assert!(
        page.contains("ratelimit_service_rate_limit_total_hits{domain=\"default/eg/http\",key1=\"k_v\"}")
    );
    assert!(started.send(8081, "GET / HTTP/1.0\r\n\r\n").is_none(), "its port speaks TLS");
    let (code, log) = started.stop();
    assert_eq!(code, Some(0), "{log}");
    // Traces are not sent, which is said once.
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert!(warnings.iter().any(|line| line.contains("TRACING_ENABLED")), "{warnings:?}");
    assert!(!log.contains("PROMETHEUS_MAPPER_YAML: "), "{log}");
}
