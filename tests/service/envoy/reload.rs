//! New limits while traffic runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::support::envoy::EnvoyProcess;
use crate::support::http::Http;
use crate::support::{SOON, eventually_async, scratch};

use super::weir;

fn limits(requests_per_unit: u32) -> String {
    format!(
        "domain: edge\ndescriptors:\n  - key: remote_address\n    rate_limit: {{ unit: hour, requests_per_unit: {requests_per_unit} }}\n"
    )
}

/// Puts a file into a directory as Kubernetes does for a ConfigMap: the file is a link into `..data`,
/// which is a link to a directory of its own, and is replaced as a whole.
fn publish(dir: &Path, version: u32, text: &str) {
    let (data, new) = (format!("..version_{version}"), dir.join("..data_tmp"));
    fs::create_dir(dir.join(&data)).unwrap();
    fs::write(dir.join(&data).join("edge.yaml"), text).unwrap();
    symlink(&data, &new).unwrap();
    fs::rename(&new, dir.join("..data")).unwrap();
    let _ = symlink("..data/edge.yaml", dir.join("edge.yaml"));
}

/// Every request is answered under the limits before or those after, also while they change and while a
/// file is refused.
#[tokio::test]
async fn no_request_is_dropped() {
    let dir = scratch::dir("configmap");
    publish(dir.path(), 0, &limits(1_000_000));
    let weir = weir(dir.path().to_owned());
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let done = Arc::new(AtomicBool::new(false));
    let traffic: Vec<_> = (0..4)
        .map(|_| {
            let (done, front) = (Arc::clone(&done), envoy.front);
            tokio::spawn(async move {
                let mut client = Http::connect(front).await;
                let mut limits = Vec::new();
                while !done.load(Relaxed) {
                    let answer = client.get("/hello", &[]).await;
                    assert_eq!(answer.status, 200, "{answer:?}");
                    limits.push(answer.header("x-ratelimit-limit").to_owned());
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                limits
            })
        })
        .collect();

    let mut client = envoy.client().await;
    for version in 1..=3 {
        publish(dir.path(), 2 * version - 1, "domain: edge\ndescriptors: [{ key: '' }]\n");
        let refused = format!("weir_envoy_config_loads_total{{result=\"error\"}} {version}\n");
        let is_counted = async || weir.get("/metrics").1.contains(&refused);
        eventually_async(SOON, "the bad file is refused", is_counted).await;
        publish(dir.path(), 2 * version, &limits(1_000_000 + version));
        let wanted = format!("{0}, {0};w=3600", 1_000_000 + version);
        let reloaded = async || client.get("/hello", &[]).await.header("x-ratelimit-limit") == wanted;
        eventually_async(SOON, "the new limits hold", reloaded).await;
    }
    done.store(true, Relaxed);
    for task in traffic {
        let limits = task.await.unwrap();
        assert!(limits.len() > 10 && limits.iter().all(|limit| limit.starts_with("100000")), "{limits:?}");
    }
    assert_eq!(envoy.stat("cluster.app.ratelimit.error").await, 0);
}
