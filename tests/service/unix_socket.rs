//! gRPC over a Unix socket: serving, asking, and what becomes of the file.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::command::{Serve, text, weir};
#[cfg(feature = "envoy")]
use crate::support::envoy::EnvoyProcess;
use crate::support::scratch;

fn address(path: &Path) -> String {
    format!("unix:{}", path.display())
}

/// Serves on this path, or says why not.
fn try_serve(path: &str) -> Output {
    weir(&["serve", "--listen", path, "--admin", "127.0.0.1:0"])
}

#[track_caller]
fn refused(output: &Output, code: i32, why: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn it_is_served_asked_and_loaded() {
    // The path has a space, so a shell needs quotes around it.
    let dir = scratch::dir("unix socket");
    let path = dir.path().join("weir.sock");
    let serve = Serve::start_at(&address(&path), &[]);
    assert_eq!(serve.server, address(&path));
    assert_eq!(mode(&path), 0o660);

    let line = serve.announced.lines().find(|line| line.contains("weir allow")).unwrap();
    let pasted = Command::new("sh").args(["-c", line]).output().unwrap();
    assert_eq!(pasted.status.code(), Some(0), "{line}: {}", text(&pasted.stderr));
    let denied = serve.allow(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(denied.status.code(), Some(1), "{}", text(&denied.stderr));
    let as_grpc_writes_it = format!("unix://{}", path.display());
    let peek = ["allow", "zewtopia.com/tigerfeeding", "eve", "--peek", "--server", &as_grpc_writes_it];
    assert_eq!(weir(&peek).status.code(), Some(0));

    let load = ["load", "--server", &serve.server, "--requests", "2000", "--warm-up", "0s", "-c", "4"];
    let load = weir(&[&load[..], &["--in-flight", "64", "--output", "json"]].concat());
    assert_eq!(load.status.code(), Some(0), "{}", text(&load.stderr));
    let metrics = serve.get("/metrics");
    let decided = |line: &&str| line.starts_with("weir_decisions_total{");
    let decisions: u64 = metrics
        .lines()
        .filter(decided)
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(decisions, 2003, "{metrics}");

    let (code, log) = serve.stop("TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(!path.exists(), "the file goes with the server");
}

/// The kernel names the caller, and nothing else does.
#[test]
fn a_caller_has_the_name_of_its_user() {
    let dir = scratch::dir("unix");
    let (path, file) = (dir.path().join("weir.sock"), dir.path().join("weir.yaml"));
    let own = std::fs::metadata(dir.path()).unwrap().uid();
    let example = weir_config::EXAMPLE;
    for (uid, refusal) in [(own, None), (own + 1, Some("the caller has no right to this"))] {
        std::fs::write(&file, format!("authorize: [{{ callers: ['uid:{uid}'], may: [decide] }}]\n{example}"))
            .unwrap();
        let serve = Serve::start_at(&address(&path), &["--config", file.to_str().unwrap()]);
        let asked = serve.allow(&["zewtopia.com/tigerfeeding", "bob"]);
        let told = text(&asked.stderr);
        match refusal {
            None => assert_eq!(asked.status.code(), Some(0), "{told}"),
            Some(refusal) => {
                assert!(!matches!(asked.status.code(), Some(0 | 1)), "{told}");
                assert!(told.contains(refusal), "{told}");
            }
        }
        assert_eq!(serve.stop("TERM").0, Some(0));
    }
}

#[test]
fn its_mode_is_what_is_configured() {
    let dir = scratch::dir("unix");
    let path = dir.path().join("weir.sock");
    for (given, expected) in [("0600", 0o600), ("666", 0o666)] {
        let serve = Serve::start_at(&address(&path), &["--listen-mode", given]);
        assert_eq!(mode(&path), expected);
        assert_eq!(serve.stop("INT").0, Some(0));
    }
    let wrong = weir(&["serve", "--listen", &address(&path), "--listen-mode", "0888"]);
    refused(&wrong, 1, "server.listen_mode: \"0888\" is not the mode of a file");
}

#[test]
fn a_socket_without_a_listener_is_replaced() {
    let dir = scratch::dir("unix");
    let path = dir.path().join("weir.sock");
    Serve::start_at(&address(&path), &[]).kill();
    assert!(path.exists(), "nobody has removed it");
    let serve = Serve::start_at(&address(&path), &[]);
    assert_eq!(serve.allow(&["zewtopia.com/tigerfeeding", "bob"]).status.code(), Some(0));
    assert!(serve.stop("TERM").1.contains("nobody listens on"));
}

#[test]
fn a_socket_with_a_listener_is_left_alone() {
    let dir = scratch::dir("unix");
    let path = dir.path().join("weir.sock");
    let serve = Serve::start_at(&address(&path), &[]);
    let inode = std::fs::metadata(&path).unwrap().ino();
    let second = try_serve(&address(&path));
    refused(&second, 1, &format!("cannot listen on {} (gRPC): another process listens", address(&path)));
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
    assert_eq!(serve.allow(&["zewtopia.com/tigerfeeding", "bob"]).status.code(), Some(0));
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let dir = scratch::dir("unix");
    let (file, link) = (dir.path().join("file"), dir.path().join("link"));
    std::fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link, &dir.path().to_owned()] {
        refused(&try_serve(&address(path)), 1, "is not a socket; remove it, or choose another path");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(link.is_symlink());
}

/// If someone replaced the socket file of a running server, the server does not remove the new file.
#[test]
fn only_its_own_file_is_removed() {
    let dir = scratch::dir("unix");
    let path = dir.path().join("weir.sock");
    let serve = Serve::start_at(&address(&path), &[]);
    std::fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    assert_eq!(serve.stop("TERM").0, Some(0));
    assert!(path.exists());
}

#[test]
fn bad_paths_are_errors_that_say_so() {
    let dir = scratch::dir("unix");
    let longest = |bytes: usize| {
        let name = "x".repeat(bytes - dir.path().as_os_str().len() - 1);
        address(&dir.path().join(name))
    };
    let serve = Serve::start_at(&longest(107), &[]);
    assert_eq!(serve.allow(&["zewtopia.com/tigerfeeding", "bob"]).status.code(), Some(0));

    let too_long = "has a path of 108 bytes: the path of a Unix socket has at most 107";
    for (address, why) in [
        (longest(108), too_long),
        ("unix:".to_owned(), "\"unix:\" has no file name"),
        ("unix:/run/".to_owned(), "has no file name"),
        ("unix://host/weir.sock".to_owned(), "names a host"),
    ] {
        refused(&try_serve(&address), 1, why);
        refused(&weir(&["allow", "x", "bob", "--server", &address]), 2, why);
        refused(&weir(&["load", "--server", &address]), 2, why);
    }
    let nowhere: PathBuf = dir.path().join("no/such/directory");
    refused(&try_serve(&address(&nowhere)), 1, "No such file or directory");
    for command in [&["allow", "x", "bob"][..], &["load"]] {
        let output = weir(&[command, &["--server", &address(&nowhere)]].concat());
        refused(&output, 2, "no server answers; start one with `weir serve`");
        assert!(text(&output.stderr).contains(&address(&nowhere)), "{}", text(&output.stderr));
    }
}

/// Envoy reaches it by the `pipe` of its cluster.
#[cfg(feature = "envoy")]
#[tokio::test]
async fn envoy_asks_over_a_pipe() {
    let dir = scratch::dir("unix");
    let path = dir.path().join("weir.sock");
    let limits = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/envoy/ratelimit");
    let _serve = Serve::start_at(&address(&path), &["--envoy-config", limits]);
    let Some(envoy) = EnvoyProcess::start_on_socket("envoy.yaml", &path).await else { return };
    let answer = envoy.client().await.get("/hello", &[]).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.header("x-ratelimit-limit").is_empty(), "{answer:?}");
    assert_eq!(envoy.stat("cluster.app.ratelimit.ok").await, 1);
    assert_eq!(envoy.stat("cluster.app.ratelimit.error").await, 0);
}
