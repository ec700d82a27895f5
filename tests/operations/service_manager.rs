//! Messages to a service manager (systemd, `Type=notify`), read from a socket in its place.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

use crate::support::command::Serve;
use crate::support::{Process, SOON, scratch};

/// A socket in the place of systemd's.
struct Manager(UnixDatagram);

impl Manager {
    fn bind(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        Self(socket)
    }

    fn next(&self) -> String {
        let mut bytes = [0; 1024];
        let read = self.0.recv(&mut bytes).expect("a message to the service manager");
        String::from_utf8(bytes[..read].to_vec()).unwrap()
    }
}

fn monotonic_usec() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000 + u64::try_from(now.tv_nsec).unwrap() / 1_000
}

const STRATEGY: &str = "strategies: { api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/s, burst: 9 } }] } }\n";

#[test]
fn serve_tells_when_it_is_ready_reloads_and_stops() {
    let folder = scratch::dir("notify-");
    let (socket, file) = (folder.path().join("notify"), folder.path().join("weir.yaml"));
    std::fs::write(&file, STRATEGY).unwrap();
    let manager = Manager::bind(&socket);
    let variables = [("NOTIFY_SOCKET", socket.to_str().unwrap())];
    let mut serve = Serve::start_with(&["--config", file.to_str().unwrap()], &variables);
    assert_eq!(manager.next(), "READY=1\n");
    let before = monotonic_usec();
    serve.process.signal("HUP");
    let reloading = manager.next();
    let usec =
        reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{reloading}"));
    let usec: u64 = usec.trim().parse().unwrap();
    assert!((before..=monotonic_usec()).contains(&usec), "{before} {usec}");
    assert_eq!(manager.next(), "READY=1\n");
    // Files with mistakes change nothing, and the reload ends too.
    std::fs::write(&file, "strategies: 1\n").unwrap();
    serve.process.signal("HUP");
    assert!(manager.next().starts_with("RELOADING=1\n"));
    assert_eq!(manager.next(), "READY=1\n");
    let (code, _) = serve.stop("TERM");
    assert_eq!((code, manager.next().as_str()), (Some(0), "STOPPING=1\n"));
}

#[test]
fn ratelimit_tells_when_it_is_ready_and_stops() {
    let folder = scratch::dir("notify-");
    let socket = folder.path().join("notify");
    let manager = Manager::bind(&socket);
    let mut command = Process::command(crate::support::command::WEIR);
    std::fs::create_dir_all(folder.path().join("ratelimit/config")).unwrap();
    command.env("RUNTIME_ROOT", folder.path()).env("RUNTIME_SUBDIRECTORY", "ratelimit");
    command.arg("ratelimit").env("NOTIFY_SOCKET", &socket).env("WEIR_DRAIN_DELAY", "0s");
    command.env("REDIS_SOCKET_TYPE", "tcp").env("REDIS_URL", crate::support::shared_redis().addr());
    for port in ["PORT", "GRPC_PORT", "DEBUG_PORT"] {
        command.env(port, crate::support::ports::free().to_string());
    }
    for host in ["HOST", "GRPC_HOST", "DEBUG_HOST"] {
        command.env(host, "127.0.0.1");
    }
    let mut process = Process::spawn(command).unwrap();
    assert_eq!(manager.next(), "READY=1\n");
    process.signal("TERM");
    assert_eq!(manager.next(), "STOPPING=1\n");
}

/// A socket that is gone is a line of the log, and no reason to end.
#[test]
fn a_service_manager_that_is_gone_stops_nothing() {
    let serve = Serve::start_with(&[], &[("NOTIFY_SOCKET", "/nonexistent/notify")]);
    let (code, log) = serve.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("cannot notify the service manager; check NOTIFY_SOCKET"), "{log}");
}
