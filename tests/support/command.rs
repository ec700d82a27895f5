//! The binary as a process: commands that end, and servers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use weir_testing::{Process, SOON, eventually_some, metrics};

pub(crate) const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// `weir serve` on free ports.
pub(crate) struct Serve {
    pub(crate) process: Process,
    /// Everything it printed until it was ready.
    pub(crate) announced: String,
    pub(crate) server: String,
}

impl Serve {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same with variables.
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Process::command(WEIR);
        command.envs(variables.iter().copied());
        Self::run(command, args)
    }

    /// The same under a soft and a hard limit of open files.
    pub(crate) fn start_with_files(soft: u32, hard: u32, args: &[&str]) -> Self {
        let limited = r#"ulimit -S -n "$0" && ulimit -H -n "$1" && shift && exec "$@""#;
        let mut command = Process::command("sh");
        command.args(["-c", limited, &soft.to_string(), &hard.to_string(), WEIR]);
        Self::run(command, args)
    }

    /// The same on another address for gRPC.
    pub(crate) fn start_at(listen: &str, args: &[&str]) -> Self {
        Self::run_at(listen, Process::command(WEIR), args)
    }

    fn run(command: Command, args: &[&str]) -> Self {
        Self::run_at("127.0.0.1:0", command, args)
    }

    fn run_at(listen: &str, mut command: Command, args: &[&str]) -> Self {
        if command.get_envs().all(|(name, _)| name != "WEIR_DRAIN_DELAY") {
            command.env("WEIR_DRAIN_DELAY", "0s");
        }
        command.args(["serve", "--listen", listen, "--admin", "127.0.0.1:0"]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::spawn(command).unwrap();
        let mut lines = BufReader::new(process.child().stdout.take().unwrap()).lines();
        let mut announced = String::new();
        // An empty line follows the lines to paste.
        let can_paste = |text: &str| {
            ["weir allow", "weir queue put", "weir lease acquire"].iter().any(|it| text.contains(it))
        };
        while !announced.ends_with("\n\n") || !can_paste(&announced) {
            announced += &lines.next().expect("it announces itself").unwrap();
            announced += "\n";
        }
        let grpc = announced.lines().find_map(|line| line.trim().strip_prefix("gRPC")).unwrap().trim();
        let server = if grpc.starts_with("unix:") { grpc.to_owned() } else { format!("http://{grpc}") };
        Self { process, announced, server }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the address of the admin port.
    pub(crate) fn admin(&self) -> String {
        let line = self.announced.lines().find_map(|line| line.trim().strip_prefix("admin")).unwrap();
        line.trim().strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned()
    }

    /// Returns the address of the HTTP listener.
    pub(crate) fn http(&self) -> String {
        let line = self.announced.lines().find_map(|line| line.trim().strip_prefix("http ")).unwrap();
        line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned()
    }

    /// GETs a path of the admin port: everything that comes back.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(self.admin()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        std::io::Write::write_all(
            &mut stream,
            format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes(),
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Returns the value of a series on the metrics page.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        metrics::value(&self.get("/metrics"), series)
    }

    /// Runs `weir allow` against it.
    pub(crate) fn allow(&self, args: &[&str]) -> Output {
        weir(&[&["allow", "--server", &self.server], args].concat())
    }

    /// Kills it without warning.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    /// Tells it to stop and waits: its exit code, and its log.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        self.process.signal(signal);
        let status = eventually_some(SOON, "weir ends", || self.process.exited());
        let mut log = String::new();
        self.process.child().stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status.code(), log)
    }
}

/// Runs `weir` without the `WEIR_*` variables of the environment of the tests.
pub(crate) fn weir(args: &[&str]) -> Output {
    weir_command(args).output().unwrap()
}

pub(crate) fn weir_command(args: &[&str]) -> Command {
    let mut command = Command::new(WEIR);
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WEIR_")) {
        command.env_remove(name);
    }
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
