//! The chart under every one of its values: what Kubernetes gets, and what is refused.

#[cfg(feature = "envoy")]
mod alerts;
mod cases;
mod commands;
mod fits;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{of_kind, read, strings, yaml};
use crate::support::clients::root;
use crate::support::helm::{Rendered, decode, render};
use crate::support::yaml::{document, documents};

const CHART: &str = "deploy/helm/weir";

/// The documents of a case that must render.
fn manifests(rendered: &Rendered) -> Vec<Value> {
    let texts = rendered.manifests.as_ref().unwrap_or_else(|error| panic!("{}: {error}", rendered.name));
    texts.iter().flat_map(|text| documents(text).unwrap()).filter(|one| !one.is_null()).collect()
}

fn render_one(values: Value) -> Option<Rendered> {
    render(CHART, &[("one".to_owned(), values)])?.pop()
}

fn name_and_kind(manifest: &Value) -> (String, String) {
    (manifest["kind"].as_str().unwrap().to_owned(), manifest["metadata"]["name"].as_str().unwrap().to_owned())
}

#[test]
fn every_option_on_and_off_is_what_kubernetes_knows() {
    let cases = cases::all();
    cases::cover_every_value(&cases);
    let Some(rendered) = render(CHART, &cases) else { return };
    let mut decoded = Vec::new();
    for case in &rendered {
        let names: Vec<_> = manifests(case).iter().map(name_and_kind).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len(), "{}: {names:?}", case.name);
        let texts = case.manifests.as_ref().unwrap().iter();
        decoded.extend(texts.map(|text| (case.name.as_str(), text.as_str())));
        assert!(case.notes.contains("helm test weir"), "{}: {}", case.name, case.notes);
    }
    decode(&decoded);
}

/// A value that no template reads would be a promise without effect.
#[test]
fn every_value_has_an_effect() {
    let Some(rendered) = render(CHART, &cases::pairs()) else { return };
    for pair in rendered.chunks(2) {
        let [without, with] = pair else { panic!("not a pair") };
        assert!(with.manifests.is_ok(), "{}", with.name);
        assert!(with.manifests != without.manifests, "{} changes nothing", with.name);
    }
}

#[test]
fn mistaken_values_are_refused_by_name() {
    let cases = cases::refused();
    let given: Vec<_> = cases.iter().map(|(values, _)| (values.to_string(), values.clone())).collect();
    let Some(rendered) = render(CHART, &given) else { return };
    for (case, (_, expected)) in rendered.iter().zip(&cases) {
        let error = case.manifests.as_ref().expect_err(&case.name);
        for part in *expected {
            assert!(error.contains(part), "{}: {error}", case.name);
        }
    }
}

#[test]
fn chart_and_kustomize_base_have_the_same_objects() {
    let Some(chart) = render_one(cases::everything()) else { return };
    let mut of_chart: Vec<_> = manifests(&chart).iter().map(|one| name_and_kind(one).0).collect();
    // `helm test` is Helm's.
    of_chart.retain(|kind| kind != "Pod");
    of_chart.sort();
    let base = yaml("deploy/kubernetes/kustomization.yaml");
    let files = strings(&base["resources"]).into_iter().map(|file| format!("deploy/kubernetes/{file}"));
    let components = ["autoscaling", "monitoring", "trial-redis"].into_iter().flat_map(|component| {
        let folder = format!("deploy/kubernetes/components/{component}");
        let listed = yaml(&format!("{folder}/kustomization.yaml"));
        let files: Vec<String> =
            strings(&listed["resources"]).iter().map(|file| format!("{folder}/{file}")).collect();
        files
    });
    let mut texts = Vec::new();
    let mut of_base = vec!["ConfigMap".to_owned()];
    for file in files.chain(components) {
        if root().join(&file).is_dir() {
            of_base.push("ConfigMap".to_owned());
            continue;
        }
        let text = read(&file);
        of_base.extend(documents(&text).unwrap().iter().map(|one| name_and_kind(one).0));
        texts.extend(text.split("\n---\n").map(|part| (file.clone(), part.to_owned())));
    }
    of_base.sort();
    assert_eq!(of_chart, of_base);
    let texts: Vec<_> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    decode(&texts);
}

#[test]
fn the_services_select_the_pods_and_nothing_else() {
    let Some(chart) = render_one(cases::everything()) else { return };
    let manifests = manifests(&chart);
    let deployments = manifests.iter().filter(|one| one["kind"] == "Deployment");
    let test = of_kind(&manifests, "Pod");
    let pods: Vec<(&str, &Value)> = deployments
        .map(|one| {
            (one["metadata"]["name"].as_str().unwrap(), &one["spec"]["template"]["metadata"]["labels"])
        })
        .chain([("the test", &test["metadata"]["labels"])])
        .collect();
    let services = manifests.iter().filter(|one| one["kind"] == "Service");
    let mut selectors: Vec<(&Value, &Value)> =
        services.map(|one| (&one["metadata"]["name"], &one["spec"]["selector"])).collect();
    for kind in ["PodDisruptionBudget", "PodMonitor"] {
        let one = of_kind(&manifests, kind);
        selectors.push((&one["metadata"]["name"], &one["spec"]["selector"]["matchLabels"]));
    }
    assert_eq!(selectors.len(), 5);
    for (name, selector) in selectors {
        let matched =
            |labels: &Value| selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value);
        let matching: Vec<&str> =
            pods.iter().filter(|(_, labels)| matched(labels)).map(|(pod, _)| *pod).collect();
        let expected = if name == "weir-trial-redis" { "weir-trial-redis" } else { "weir" };
        assert_eq!(matching, [expected], "{name}");
    }
}

/// The publisher's name stands in one word, which `make chart OWNER=…` replaces.
#[test]
fn the_chart_is_placed_under_one_word() {
    let chart = document(&read("deploy/helm/weir/Chart.yaml")).unwrap();
    let values = document(&read("deploy/helm/weir/values.yaml")).unwrap();
    assert_eq!(values["image"]["repository"], "ghcr.io/OWNER/weir");
    for place in [&chart["home"], &chart["sources"][0], &chart["icon"]] {
        assert!(place.as_str().unwrap().contains("/OWNER/weir"), "{place}");
    }
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    let Some(rendered) = render_one(json!({})) else { return };
    assert!(rendered.notes.contains("WARNING: image.repository is ghcr.io/OWNER/weir"), "{}", rendered.notes);
    let Some(rendered) = render_one(json!({ "image": { "repository": "weir" } })) else { return };
    assert!(!rendered.notes.contains("WARNING"), "{}", rendered.notes);
}
