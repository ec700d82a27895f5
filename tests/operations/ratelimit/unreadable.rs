//! Files that the process may not read: their path, owner and mode, and who the process is.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::manifests::confined;
use super::{Ratelimit, files, host, variables};
use crate::support::certificates::Authority;
use crate::support::{Process, SOON, eventually, scratch};

/// What the process says that is started as user 65534, until it ends or serves.
fn refused(folder: &Path, more: &[(&str, String)]) -> String {
    let host = host();
    let mut all = variables(folder, host);
    all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let process = Process::spawn(confined(&["/bin/ratelimit".to_owned()], &all)).unwrap();
    let mut started = Ratelimit { process, host, _files: scratch::dir("unreadable-") };
    let mut ended = false;
    eventually(SOON, "it ends or serves", || {
        ended = started.process.exited().is_some();
        ended || started.get(8080, "/healthcheck").is_some()
    });
    if ended { started.log() } else { started.stop().1 }
}

/// A user who may not: in a user namespace, the owner of a file of somebody else is 65534 too.
fn lock(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn an_error_names_path_owner_mode_and_our_user() {
    let folder = files(super::FILE);
    let config = folder.path().join("data/ratelimit/config");
    let us = "mode 0000, and this process is 65534:65534";
    lock(&config.join("config.yaml"));
    let said = refused(folder.path(), &[]);
    let (path, told) = (config.join("config.yaml").display().to_string(), said.clone());
    assert!(said.contains(&path) && said.contains(" belongs to ") && told.contains(us), "{said}");
    fs::set_permissions(config.join("config.yaml"), Permissions::from_mode(0o644)).unwrap();

    lock(&config);
    let said = refused(folder.path(), &[("RUNTIME_WATCH_ROOT", "false".to_owned())]);
    let names = "RUNTIME_ROOT, RUNTIME_SUBDIRECTORY, RUNTIME_APPDIRECTORY: ";
    assert!(said.contains(names) && said.contains(us), "{said}");
    fs::set_permissions(&config, Permissions::from_mode(0o755)).unwrap();

    let authority = Authority::create();
    let issued = authority.issue("server", &["weir"]);
    lock(&issued.key);
    let more = [
        ("GRPC_SERVER_USE_TLS", "true".to_owned()),
        ("GRPC_SERVER_TLS_CERT", issued.cert.display().to_string()),
        ("GRPC_SERVER_TLS_KEY", issued.key.display().to_string()),
    ];
    let said = refused(folder.path(), &more);
    assert!(said.contains("GRPC_SERVER_TLS_KEY: ") && said.contains(us), "{said}");
    assert!(said.contains(&issued.key.display().to_string()), "{said}");
}
