//! The configuration changes while it serves.

#[cfg(all(feature = "leases", feature = "queues"))]
mod everything;
mod refused;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use weir_testing::metrics;

use tempfile::TempDir;
use weir_config::Config;
use weir_node::feature::FeatureList;
use weir_proto::v1::ShouldAllowResponse;

use crate::support::command::Serve;
use crate::support::server::{Server, ask};
use crate::support::{SOON, eventually, eventually_async, scratch};

/// A service whose configuration is a file.
struct Configured {
    folder: TempDir,
    server: Server,
}

impl Configured {
    fn start(text: &str) -> Self {
        let folder = scratch::dir("reload-");
        fs::write(folder.path().join("weir.yaml"), text).unwrap();
        Self::on(folder)
    }

    /// With other features than those of the program.
    fn start_with(text: &str, features: FeatureList) -> Self {
        let folder = scratch::dir("reload-");
        let file = scratch::file(folder.path(), "weir.yaml", text);
        let config = Config::load(&file, &weir::features::overrides()).unwrap();
        Self { folder, server: Server::with_features(config, features) }
    }

    /// On the file that the folder has.
    fn on(folder: TempDir) -> Self {
        let file = folder.path().join("weir.yaml");
        let config = Config::load(&file, &weir::features::overrides()).unwrap();
        Self { folder, server: Server::ready(config) }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("weir.yaml")
    }

    /// Returns how often the files were read with this result.
    fn loads(&self, result: &str) -> u64 {
        loads(&self.server.get("/metrics").1, result)
    }

    fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    async fn asks(&self, resource: &str) -> ShouldAllowResponse {
        self.server.client().await.should_allow(ask(resource, "me")).await.unwrap().into_inner()
    }

    /// Asks until the answer is under this limit, and returns it.
    async fn asks_under(&self, resource: &str, limit: u64) -> ShouldAllowResponse {
        let mut last = ShouldAllowResponse::default();
        eventually_async(SOON, "the new limit decides", async || {
            let request = weir_proto::v1::ShouldAllowRequest { cost: Some(0), ..ask(resource, "me") };
            last = self.server.client().await.should_allow(request).await.unwrap().into_inner();
            last.limit == Some(limit)
        })
        .await;
        last
    }
}

fn loads(page: &str, result: &str) -> u64 {
    metrics::value(page, &format!("weir_config_loads_total{{result=\"{result}\"}}"))
}

fn limited_to(limit: u64) -> String {
    format!(
        "strategies: {{ s: {{ limits: [{{ name: l, per: [consumer], fixed_window: {{ limit: {limit}, window: 1h }} }}] }} }}\n\
         resources: [{{ match: x, strategy: s }}]\n"
    )
}

#[tokio::test]
async fn a_changed_file_changes_the_limit_and_keeps_what_is_used() {
    let service = Configured::start(&limited_to(3));
    for left in [2, 1] {
        assert_eq!(service.asks("x").await.remaining, Some(left));
    }
    service.write(&limited_to(10));
    assert_eq!(service.asks_under("x", 10).await.remaining, Some(8), "two are used");
    service.write("strategies: { s: {} }");
    service.write(&limited_to(20));
    assert_eq!(service.asks_under("x", 20).await.remaining, Some(18));
}

#[test]
fn sighup_reads_the_file_again() {
    let folder = scratch::dir("reload-");
    let file = scratch::file(folder.path(), "weir.yaml", limited_to(3));
    let mut server = Serve::start(&["--config", &file.display().to_string()]);
    assert_eq!(loads(&server.get("/metrics"), "ok"), 1);
    server.process.signal("HUP");
    // The file has not changed: only the signal reads it.
    eventually(SOON, "the file is read", || loads(&server.get("/metrics"), "ok") == 2);
    let (code, log) = server.stop("TERM");
    assert_eq!((code, log.contains("SIGHUP; reloading all files")), (Some(0), true), "{log}");
}

/// Mounts a ConfigMap as kubelet does: `weir.yaml` -> `..data/weir.yaml`, and `..data` -> a directory of its own for each
/// version, which a rename replaces.
fn mount(folder: &Path, version: u32, text: &str) {
    let name = format!("..{version}");
    fs::create_dir(folder.join(&name)).unwrap();
    fs::write(folder.join(&name).join("weir.yaml"), text).unwrap();
    symlink(&name, folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    if let Some(old) = version.checked_sub(1) {
        let _ = fs::remove_dir_all(folder.join(format!("..{old}")));
    }
}

#[tokio::test]
async fn a_config_map_that_is_swapped_a_hundred_times_is_followed() {
    let folder = scratch::dir("reload-");
    mount(folder.path(), 0, &limited_to(1000));
    symlink("..data/weir.yaml", folder.path().join("weir.yaml")).unwrap();
    let service = Configured::on(folder);
    for version in 1..=100 {
        mount(service.folder.path(), version, &limited_to(1000 + u64::from(version)));
        if version % 10 == 0 {
            service.asks_under("x", 1000 + u64::from(version)).await;
        }
    }
    assert_eq!(service.loads("error"), 0);
    assert_eq!(service.asks("x").await.remaining, Some(1099));
}

#[tokio::test]
async fn a_bad_file_keeps_what_is_in_force_and_is_counted() {
    let service = Configured::start(&limited_to(3));
    let hash = |service: &Configured| {
        let page = service.server.get("/metrics").1;
        page.lines().find(|line| line.starts_with("weir_config_info{")).unwrap().to_owned()
    };
    let before = hash(&service);
    for (bad, text) in (1..).zip(["strategies: { s: {} }", "resources: [", "nobody: 1"]) {
        service.write(text);
        eventually(SOON, "the bad file is refused", || service.loads("error") == bad);
        assert_eq!((service.loads("ok"), hash(&service)), (1, before.clone()));
        assert_eq!(service.asks_under("x", 3).await.remaining, Some(3));
    }
    fs::remove_file(service.file()).unwrap();
    eventually(SOON, "a missing file is refused", || service.loads("error") == 4);
    service.write(&limited_to(4));
    assert_eq!(service.asks_under("x", 4).await.remaining, Some(4));
    assert_ne!(hash(&service), before);
}

#[tokio::test]
async fn files_that_come_and_go_in_a_directory_and_files_that_values_name_are_watched() {
    let folder = scratch::dir("reload-");
    let path = |name: &str| folder.path().join(name);
    let of = |name: &str, limit: &str| {
        limited_to(1)
            .replace("limit: 1,", &format!("limit: '{limit}',"))
            .replace(": s }", &format!(": {name} }}"))
            .replace(" s: {", &format!(" {name}: {{"))
    };
    fs::write(path("a.yaml"), of("s", "${file:limit}")).unwrap();
    fs::write(path("limit"), "3\n").unwrap();
    let config = Config::load(folder.path(), &weir::features::overrides()).unwrap();
    let service = Configured { server: Server::ready(config), folder };
    let path = |name: &str| service.folder.path().join(name);
    assert_eq!(service.asks_under("x", 3).await.remaining, Some(3));
    fs::write(path("limit"), "5\n").unwrap();
    service.asks_under("x", 5).await;
    // A file that is not there yet: it is read once it is.
    fs::write(path("b.yaml"), of("t", "${file:later}").replace("match: x", "match: y")).unwrap();
    eventually(SOON, "the missing file is said", || service.loads("error") == 1);
    fs::write(path("later"), "8").unwrap();
    eventually_async(SOON, "the strategy is there", async || {
        service.server.client().await.should_allow(ask("y", "me")).await.is_ok()
    })
    .await;
    assert_eq!(service.asks("y").await.limit, Some(8));
    fs::write(path("later"), "9").unwrap();
    service.asks_under("y", 9).await;
    fs::remove_file(path("b.yaml")).unwrap();
    eventually_async(SOON, "the strategy is gone", async || {
        service.server.client().await.should_allow(ask("y", "me")).await.is_err()
    })
    .await;
    assert_eq!(service.asks_under("x", 5).await.remaining, Some(5));
}

#[test]
fn several_files_are_read_with_the_variables_of_the_process() {
    let folder = scratch::dir("reload-");
    let file = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    fs::create_dir(folder.path().join("d")).unwrap();
    file("d/lists.yaml", "access: { deny: [eve] }\n");
    let one = file("s.yaml", &limited_to(3).replace("limit: 3", "limit: '${SHOP_LIMIT}'"));
    let other = folder.path().join("d").display().to_string();
    let arguments = ["--config", &one, "--config", &other];
    let server = Serve::start_with(&arguments, &[("SHOP_LIMIT", "42")]);
    assert!(server.announced.contains(&format!("config  {one}, {other}\n")), "{}", server.announced);
    let allowed = crate::support::command::weir(&["allow", "x", "bob", "--server", &server.server]);
    let shown = String::from_utf8(allowed.stdout).unwrap();
    assert!(shown.contains("41"), "{shown}");
    assert_eq!(
        crate::support::command::weir(&["allow", "x", "eve", "--server", &server.server]).status.code(),
        Some(1)
    );
    assert_eq!(server.stop("TERM").0, Some(0));
}
