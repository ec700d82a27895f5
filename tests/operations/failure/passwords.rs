//! Passwords that a command prints: for whom it runs, how often, and that nobody reads them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use tempfile::TempDir;
use weir_config::{Login, RedisConfig, Secret, Sentinel, Topology};

use super::access::add_user;
use super::{allow, charge, config, recovered, shared, store_unwatched};
use crate::support::command::Serve;
use crate::support::sentinels::Sentinels;
use crate::support::{RedisServer, SOON, eventually, eventually_async, scratch, watched};

/// A program that prints what stands in a file, and notes each run.
struct Printer {
    folder: TempDir,
}

impl Printer {
    fn new(password: &str) -> Self {
        let printer = Self { folder: scratch::dir("printer-") };
        printer.say(password);
        let script = format!(
            "#!/bin/sh\necho run >> {0}/runs\n/bin/cat {0}/password\necho canary-on-stderr >&2\n",
            printer.folder.path().display()
        );
        std::fs::write(printer.program(), script).unwrap();
        std::fs::set_permissions(printer.program(), std::fs::Permissions::from_mode(0o755)).unwrap();
        printer
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("print")
    }

    fn say(&self, password: &str) {
        std::fs::write(self.folder.path().join("password"), password).unwrap();
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default();
        runs.lines().count()
    }

    fn login(&self, user: &str) -> Option<Login> {
        let words = [self.program().display().to_string()];
        Some(Login { username: Some(user.to_owned()), password: Secret::printed_by(words) })
    }
}

/// One run for all connections, and another one when Redis refuses what it printed.
#[tokio::test]
async fn one_password_for_all_connections_until_it_is_refused() {
    let (redis, printer) = (RedisServer::start(), Printer::new("hunter2\n"));
    add_user(&redis, "hunter2", &[]);
    let config = RedisConfig { login: printer.login("weir"), ..config(vec![redis.url()], Topology::Single) };
    let shared = shared(&config);
    let (store, other) = (watched(&shared).await, shared.store());
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    assert_eq!(charge(&other, "r", 1).await, Ok(99_998));
    assert_eq!(printer.runs(), 1);
    // It has expired: open connections stay, and the next one gets the new password.
    add_user(&redis, "hunter3", &[]);
    printer.say("hunter3");
    assert_eq!(charge(&store, "r", 1).await, Ok(99_997));
    assert_eq!(printer.runs(), 1);
    redis.cli(&["CLIENT", "KILL", "USER", "weir"]);
    recovered("decisions with the new password", async || charge(&store, "r", 0).await == Ok(99_997)).await;
    assert_eq!(charge(&other, "r", 1).await, Ok(99_996));
    assert_eq!(printer.runs(), 2);
}

#[tokio::test]
async fn sentinels_have_a_command_of_their_own() {
    let sentinels = Sentinels::start();
    for server in &sentinels.servers {
        add_user(server, "hunter2", &["+role"]);
    }
    let rights = ["ACL", "SETUSER", "asker", "on", ">hunter3", "+sentinel|get-master-addr-by-name"];
    for index in 0..3 {
        let _: redis::Value = sentinels.query(index, &rights).unwrap();
    }
    let (own, theirs) = (Printer::new("hunter2"), Printer::new("hunter3"));
    let sentinel = Sentinel { master_name: "zoo".to_owned(), login: theirs.login("asker") };
    let config = RedisConfig {
        sentinel: Some(sentinel),
        login: own.login("weir"),
        ..config(sentinels.urls(), Topology::Sentinel)
    };
    let store = watched(&shared(&config)).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    assert_eq!((own.runs(), theirs.runs()), (1, 1));
}

/// A command that fails, or whose password is wrong, runs about once a second and no more.
#[tokio::test]
async fn a_wrong_password_is_not_a_loop() {
    let (redis, printer) = (RedisServer::start(), Printer::new("wrong"));
    add_user(&redis, "hunter2", &[]);
    let config = RedisConfig { login: printer.login("weir"), ..config(vec![redis.url()], Topology::Single) };
    let (store, began) = (store_unwatched(&config), std::time::Instant::now());
    let error = allow(&store, "r").await.unwrap_err().to_string();
    assert!(error.contains("WRONGPASS"), "{error}");
    eventually_async(SOON, "it ran again", async || printer.runs() >= 2).await;
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    assert!(printer.runs() <= 2 + seconds, "{} runs in {seconds} s", printer.runs());
    printer.say("hunter2");
    recovered("decisions with the right password", async || allow(&store, "r").await == Ok(true)).await;
}

/// The words are in the file. Nothing that the command prints is shown, at any level.
#[test]
fn nothing_that_it_prints_is_logged() {
    let (redis, printer) = (RedisServer::start(), Printer::new("canary-password\n"));
    add_user(&redis, "canary-password", &["+info"]);
    let file = printer.folder.path().join("weir.yaml");
    let text = weir_config::EXAMPLE.replace(
        "  memory: { budget: 512MiB, when_full: evict }",
        &format!(
            "  redis: {{ nodes: [\"{}\"], username: weir, password_command: [{}] }}",
            redis.url(),
            printer.program().display()
        ),
    );
    std::fs::write(&file, text).unwrap();
    let serve = Serve::start_with(&["--config", file.to_str().unwrap()], &[("WEIR_LOG", "trace")]);
    eventually(SOON, "it is ready", || serve.get("/readyz").contains("200"));
    eventually(SOON, "it has connected", || printer.runs() == 1);
    printer.say("canary-other");
    redis.cli(&["ACL", "SETUSER", "weir", "resetpass", ">elsewhere"]);
    redis.cli(&["CLIENT", "KILL", "USER", "weir"]);
    eventually(SOON, "it says why", || serve.get("/readyz").contains("WRONGPASS"));
    std::fs::write(printer.program(), "#!/bin/sh\necho canary-failed; exit 7\n").unwrap();
    eventually(SOON, "it says why", || serve.get("/readyz").contains("it ended with exit code 7"));
    let (_, log) = serve.stop("TERM");
    assert!(
        log.contains("printed by a command: it ended with exit code 7") && !log.contains("canary"),
        "{log}"
    );
}
