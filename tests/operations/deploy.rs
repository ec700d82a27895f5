//! The files of deploy/ are what they say, and fit the program.

mod chart;
#[cfg(feature = "envoy")]
mod dashboard;
mod image;
mod packages;

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::process::Command;

use serde_json::{Value, json};
use weir_config::Config;

use crate::support::Prometheus;
use crate::support::clients::{environment, python, root, run};
use crate::support::helm::compose_schema;
use crate::support::scratch;
use crate::support::yaml::{document, documents};

fn read(path: &str) -> String {
    read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    document(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// The manifests as they would be applied; without kubectl, those that the kustomization lists.
fn manifests() -> String {
    let rendered =
        Command::new("kubectl").args(["kustomize", "deploy/kubernetes"]).current_dir(root()).output();
    match rendered {
        Ok(rendered) => {
            assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
            String::from_utf8(rendered.stdout).unwrap()
        }
        Err(_) => {
            eprintln!("there is no kubectl: the manifests are taken one by one, and not as it renders them");
            let kustomization = yaml("deploy/kubernetes/kustomization.yaml");
            let files = strings(&kustomization["resources"]).into_iter();
            files.map(|file| format!("---\n{}", read(&format!("deploy/kubernetes/{file}")))).collect()
        }
    }
}

fn of_kind<'v>(manifests: &'v [Value], kind: &str) -> &'v Value {
    manifests.iter().find(|manifest| manifest["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn the_manifests_are_what_kubernetes_knows() {
    let Some(environment) = environment() else { return };
    let scratch = scratch::dir("deploy");
    let file = scratch::file(scratch.path(), "weir.yaml", manifests());
    let mut validate = python(&environment);
    validate.args(["-m", "kubernetes_validate", "--strict"]).arg(&file);
    run(validate);
}

/// The files that its configuration names are those that the Secret of its certificate is mounted as.
#[test]
fn the_recipe_for_cert_manager_fits_together() {
    let path = root().join("deploy/cert-manager/weir.yaml");
    let checked = Config::check_all(std::slice::from_ref(&path), &weir::features::overrides());
    // No mistakes, but the files are not on this machine.
    assert!(checked.config.is_ok() && checked.notes.len() == 3, "{:?}", checked.notes);
    let deployment = yaml("deploy/cert-manager/deployment.yaml");
    let pod = &deployment["spec"]["template"]["spec"];
    let mount = pod["containers"][0]["volumeMounts"][0]["mountPath"].as_str().unwrap();
    for (note, key) in checked.notes.iter().zip(["tls.crt", "tls.key", "ca.crt"]) {
        assert!(note.contains(&format!("{mount}/{key}")), "{note}");
    }
    let certificate = yaml("deploy/cert-manager/certificate.yaml");
    assert_eq!(certificate["spec"]["secretName"], pod["volumes"][0]["secret"]["secretName"]);
}

/// Seconds from SIGTERM to the end under this configuration, at most: the delay, the second that an unanswered PING
/// may cost, and what calls in flight get.
fn longest_shutdown(file: &str) -> u64 {
    let config = Config::parse(&read(file), file, &weir::features::overrides()).unwrap();
    let server = config.server;
    server.drain_delay.secs_ceil() + 1 + server.drain_timeout.secs_ceil()
}

#[test]
fn the_pods_are_probed_and_have_no_more_rights_than_they_need() {
    let manifests = documents(&manifests()).unwrap();
    let deployment = of_kind(&manifests, "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(
        container["livenessProbe"]["httpGet"],
        serde_json::json!({ "port": "admin", "path": "/livez" })
    );
    assert_eq!(container["readinessProbe"]["grpc"]["service"], "weir.v1.RateLimitService");
    let ports: Vec<&Value> = container["ports"].as_array().unwrap().iter().collect();
    let port = |name: &str| &ports.iter().find(|port| port["name"] == name).unwrap()["containerPort"];
    assert_eq!(&container["readinessProbe"]["grpc"]["port"], port("grpc"));
    for (variable, name) in [("WEIR_LISTEN", "grpc"), ("WEIR_ADMIN", "admin")] {
        let given = container["env"].as_array().unwrap().iter().find(|given| given["name"] == variable);
        assert_eq!(given.unwrap()["value"], format!("0.0.0.0:{}", port(name)));
    }
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(pod["automountServiceAccountToken"], false);
    // Kubernetes would set WEIR_PORT and its like for a service of this name.
    assert_eq!(pod["enableServiceLinks"], false);
    let rights = &container["securityContext"];
    assert_eq!(rights["readOnlyRootFilesystem"], true);
    assert_eq!(rights["allowPrivilegeEscalation"], false);
    assert_eq!(strings(&rights["capabilities"]["drop"]), ["ALL"]);
    assert!(container["resources"]["requests"]["cpu"].is_string());

    let longest = longest_shutdown("deploy/kubernetes/weir.yaml");
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > longest, "{longest} s");

    let service = &of_kind(&manifests, "Service")["spec"];
    assert_eq!(service["clusterIP"], "None", "a gRPC connection would stay with one pod");
    let served: Vec<&Value> = service["ports"].as_array().unwrap().iter().map(|port| &port["name"]).collect();
    assert_eq!(served, ["grpc"], "the admin port has no login");
    let policy = &of_kind(&manifests, "NetworkPolicy")["spec"];
    assert_eq!(policy["policyTypes"], serde_json::json!(["Ingress"]));
    let rules: Vec<(&Value, &Value)> = (policy["ingress"].as_array().unwrap().iter())
        .map(|rule| (&rule["ports"][0]["port"], &rule["from"][0]["namespaceSelector"]["matchLabels"]))
        .collect();
    let monitoring = serde_json::json!({ "kubernetes.io/metadata.name": "monitoring" });
    assert_eq!(rules, [(port("grpc"), &Value::Null), (port("admin"), &monitoring)]);
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for selector in [
        &service["selector"],
        &deployment["spec"]["selector"]["matchLabels"],
        &of_kind(&manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &policy["podSelector"]["matchLabels"],
    ] {
        let selector = selector.as_object().unwrap();
        assert!(!selector.is_empty());
        assert!(
            selector.iter().all(|(label, value)| &labels[label] == value),
            "{selector:?} selects {labels:?}"
        );
    }
}

/// As the pods and the composition get it: `weir check` must have nothing to say.
#[test]
fn every_configuration_is_one() {
    let scratch = scratch::dir("deploy-");
    let mut configurations = vec![read("deploy/kubernetes/weir.yaml"), read("deploy/compose/weir.yaml")];
    let manifests = documents(&manifests()).unwrap();
    for map in manifests.iter().filter(|manifest| manifest["kind"] == "ConfigMap") {
        configurations.push(map["data"]["weir.yaml"].as_str().unwrap().to_owned());
    }
    for configuration in configurations {
        let file = scratch::file(scratch.path(), "weir.yaml", configuration);
        let mut check = Command::new(env!("CARGO_BIN_EXE_weir"));
        check.arg("check").arg(&file);
        run(check);
    }
    // The name that the Deployment mounts is the one that is generated, with the file that is checked here.
    let generator = &yaml("deploy/kubernetes/kustomization.yaml")["configMapGenerator"][0];
    assert_eq!((&generator["name"], strings(&generator["files"])), (&Value::from("weir"), vec!["weir.yaml"]));
}

/// The overlay of docs/deploy.md, laid out as it says. (Its fence is `yml`; `yaml` is Weir's own there.)
#[test]
fn the_overlay_of_the_documentation_renders() {
    let page = read("docs/deploy.md");
    let overlay = page.split_once("```yml\n").unwrap().1.split_once("```").unwrap().0;
    let scratch = scratch::dir("deploy-");
    let folder = |name: &str| {
        let folder = scratch.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let (mine, base) = (folder("mine"), folder("weir/deploy/kubernetes"));
    let files = std::fs::read_dir(root().join("deploy/kubernetes")).unwrap().map(|file| file.unwrap());
    for file in files.filter(|file| file.path().is_file()) {
        std::fs::copy(file.path(), base.join(file.file_name())).unwrap();
    }
    std::fs::write(mine.join("kustomization.yaml"), overlay).unwrap();
    std::fs::write(mine.join("weir.yaml"), "mine: true\n").unwrap();
    let Ok(rendered) = Command::new("kubectl").arg("kustomize").arg(&mine).output() else {
        eprintln!("there is no kubectl: the overlay is only read");
        document(overlay).unwrap();
        return;
    };
    assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    let manifests = documents(&String::from_utf8(rendered.stdout).unwrap()).unwrap();
    let deployment = &of_kind(&manifests, "Deployment")["spec"];
    let container = &deployment["template"]["spec"]["containers"][0];
    assert_eq!(deployment["replicas"], 3);
    assert_eq!(container["image"], "example.com/weir:0.2.0");
    let password =
        container["env"].as_array().unwrap().iter().find(|env| env["name"] == "WEIR_REDIS_PASSWORD");
    assert_eq!(password.unwrap()["valueFrom"]["secretKeyRef"]["name"], "redis");
    let map = of_kind(&manifests, "ConfigMap");
    assert_eq!(map["data"]["weir.yaml"], "mine: true\n");
    assert_eq!(deployment["template"]["spec"]["volumes"][0]["configMap"]["name"], map["metadata"]["name"]);
}

#[test]
fn the_composition_is_what_compose_knows() {
    let Some(schema) = compose_schema() else { return };
    let validator = jsonschema::validator_for(&schema).unwrap();
    let compose = yaml("deploy/compose/compose.yaml");
    let mistakes: Vec<String> = validator.iter_errors(&compose).map(|error| error.to_string()).collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    let mut wrong = compose;
    wrong["services"]["redis"]["imaeg"] = json!("redis");
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_composition_fits_together() {
    let compose = yaml("deploy/compose/compose.yaml");
    let services = compose["services"].as_object().unwrap();
    let names: BTreeSet<&str> = services.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["grafana", "prometheus", "redis", "weir-1", "weir-2"]));
    let mut published = BTreeSet::new();
    for (name, service) in services {
        let image = service["image"].as_str().unwrap();
        assert!(
            image.split_once(':').is_some_and(|(_, tag)| tag != "latest"),
            "{name}: {image} has no version"
        );
        for port in service["ports"].as_array().into_iter().flatten() {
            let port = port.as_str().unwrap();
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port} is open to the world");
            assert!(published.insert(port.rsplit_once(':').unwrap().0.to_owned()), "{name}: {port} twice");
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let file = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(root().join("deploy/compose").join(file).exists(), "{name}: {file} is not there");
        }
        for needed in service["depends_on"].as_object().into_iter().flat_map(|needed| needed.keys()) {
            assert!(services[needed]["healthcheck"].is_object(), "{name} waits until {needed} is healthy");
        }
    }
    let longest = longest_shutdown("deploy/compose/weir.yaml");
    for node in ["weir-1", "weir-2"] {
        let grace = services[node]["stop_grace_period"].as_str().unwrap().strip_suffix('s').unwrap();
        assert!(grace.parse::<u64>().unwrap() > longest, "{node}: {grace} s for a shutdown of {longest} s");
        assert_eq!(strings(&services[node]["command"]), ["serve", "--config", "/etc/weir/weir.yaml"]);
        assert_eq!(services[node]["build"]["dockerfile"], "deploy/Dockerfile");
    }
    assert!(
        strings(&services["redis"]["command"])
            .windows(2)
            .any(|pair| pair == ["--maxmemory-policy", "noeviction"])
    );
    // Each node is asked by JSON, too.
    let listens = services["weir-1"]["environment"]["WEIR_HTTP"].as_str().unwrap();
    let port = listens.rsplit_once(':').unwrap().1;
    for node in ["weir-1", "weir-2"] {
        let ports = strings(&services[node]["ports"]);
        assert!(ports.iter().any(|ports| ports.ends_with(&format!(":{port}"))), "{node}: {ports:?}");
    }
    let prometheus = yaml("deploy/compose/prometheus.yml");
    let targets = strings(&prometheus["scrape_configs"][0]["static_configs"][0]["targets"]);
    assert_eq!(targets, ["weir-1:8080", "weir-2:8080"]);
    if let Some(scraped) = Prometheus::check_targets(&read("deploy/compose/prometheus.yml")) {
        assert_eq!(scraped, targets, "a real Prometheus reads other targets");
    }
    let grafana = yaml("deploy/compose/grafana.yaml");
    let source = &grafana["datasources"][0];
    assert_eq!((&source["type"], &source["url"]), (&json!("prometheus"), &json!("http://prometheus:9090")));
    assert_eq!(source["isDefault"], true, "the dashboard takes the default source");
    // Prometheus asks by these names.
    let weir = yaml("deploy/compose/weir.yaml");
    assert_eq!(strings(&weir["server"]["admin_hosts"]), ["weir-1", "weir-2"]);
}
