//! What the manifests of launchers start: each with its environment, arguments and user, on a read-only root without `/data`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::xds::{Ads, config, leaf};
use super::{Ratelimit, files, host};
use crate::support::clients::{environment, python, root, run};
use crate::support::command::WEIR;
use crate::support::yaml::documents;
use crate::support::{Process, SOON, eventually, scratch};

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

/// Starts the container of a Deployment on an address of its own, with memory in place of Redis.
fn start(name: &str, replaced: &[(&str, &str)]) -> Ratelimit {
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
    let process = Process::spawn(confined(&arguments, &variables)).unwrap();
    let mut started = Ratelimit { process, host, _files: folder };
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
