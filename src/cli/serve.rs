//! `weir serve`: loads the configuration, binds the sockets, prints the addresses, and runs.

mod test_clock;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use weir_config::{Config, ListenAddress, ServerConfig, StoreConfig, TlsConfig, Topology};
use weir_node::app::{self, BegunFeatures, Listeners, Timing};
use weir_node::server::{self, Listener, Serving, Shutdown, ShutdownSignal};
use weir_node::telemetry::LineWriter;
use weir_time::clock::Clock;

use self::test_clock::TestClock;
use super::settings::Settings;
use super::{feature_texts, notify, quoted, sample, signals};
use crate::features::FEATURES;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// For tests: the clock stands still until a line `advance SECONDS` on stdin moves it; the server ends with stdin
    #[arg(long)]
    test_clock: bool,
}

/// Serves until shutdown. It never blocks on a reader of stdout or stderr.
pub(crate) fn run(args: ServeArgs) -> Result<()> {
    let config =
        args.settings.load().map_err(|errors| anyhow!("the configuration has mistakes:\n{errors}"))?;
    let test_clock = if args.test_clock { Some(TestClock::new(&config)?) } else { None };
    serve_on(config, test_clock)
}

/// Serves a configuration until shutdown.
#[cfg(feature = "envoy")]
pub(super) fn serve(config: Config) -> Result<()> {
    serve_on(config, None)
}

/// The same on the clock of a test, if there is one.
fn serve_on(config: Config, test_clock: Option<TestClock>) -> Result<()> {
    server::raise_open_files();
    for exposure in config.exposures() {
        tracing::warn!("{exposure}");
    }
    let timing = Timing::from(test_clock.as_ref().map_or(Clock::System, TestClock::clock));
    let shutdown = signals::shutdown(Some(timing.reloads.clone())).context("signals cannot be received")?;
    let mut shutdown: ShutdownSignal = Box::pin(shutdown);
    let mut begun = BegunFeatures::new(FEATURES, &config, &timing.clock)?;
    if begun.wait(&mut shutdown)?.is_some() {
        tracing::info!("stopped");
        return Ok(());
    }
    let mut listeners = Listeners::bind(&config.server)?.with_features(&config)?;
    let grpc = listeners.grpc.local_address()?;
    let admin = listeners.admin.as_ref().map(TcpListener::local_addr).transpose()?;
    let operations = listeners.operations.as_ref().map(Listener::local_address).transpose()?;
    if is_cluster(&config.store) && config.key_secret.is_none() {
        tracing::warn!(
            "store.key_secret is the built-in default, which is public: callers can choose names that overload \
             one cluster slot. Set store.key_secret to the same secret on all nodes"
        );
    }
    let ports = feature_ports(&config, &listeners)?;
    let stdout = LineWriter::spawn("weir-stdout", io::stdout()).context("stdout cannot be written to")?;
    #[cfg(feature = "envoy")]
    let alone = super::ratelimit_ports::announcement(&config, &grpc, store(&config));
    #[cfg(not(feature = "envoy"))]
    let alone: Option<String> = None;
    let text = match (alone, admin) {
        _ if test_clock.is_some() => format!("serving {grpc}\n"),
        (Some(text), _) => text,
        (None, Some(admin)) => announcement(&config, &grpc, (admin, operations), &ports),
        (None, None) => String::new(),
    };
    let mut obey: Option<Box<dyn FnOnce() + Send>> = None;
    if let Some(clock) = test_clock {
        tracing::warn!(
            "--test-clock: time stands still for all limits until a line on stdin moves it; this is for tests alone"
        );
        let (begin, ended) = clock.obey(stdout.clone()).context("stdin cannot be read")?;
        obey = Some(Box::new(begin));
        shutdown = until_either(shutdown, ended);
    }
    let (version, store) = (env!("CARGO_PKG_VERSION"), store(&config));
    listeners.serving = Serving::new(move || {
        tracing::info!(version, %grpc, admin = admin.map(tracing::field::display), store, "serving");
        stdout.push(text.as_bytes());
        if let Some(obey) = obey {
            obey();
        }
        notify::ready();
    });
    app::run_with(config, listeners, timing, shutdown, (FEATURES, begun))?;
    tracing::info!("stopped");
    Ok(())
}

/// A shutdown at a signal, or at once when `ended` resolves.
fn until_either(signal: ShutdownSignal, ended: impl Future<Output = ()> + 'static) -> ShutdownSignal {
    Box::pin(async {
        tokio::select! {
            shutdown = signal => shutdown,
            () = ended => Shutdown::Immediate,
        }
    })
}

/// Formats the startup message: the addresses, a summary of the configuration, and example commands.
fn announcement(
    config: &Config,
    grpc: &ListenAddress,
    (admin, operations): (SocketAddr, Option<ListenAddress>),
    ports: &[OpenPort],
) -> String {
    let operations = operations.map_or_else(String::new, |address| {
        format!(
            "  control {address} (ControlService, and the services of `admin_service`)
"
        )
    });
    let source = match &config.sources[..] {
        [] => "the built-in example; `weir serve --config FILE` serves your own".to_owned(),
        files => {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            files.join(", ")
        }
    };
    let sources: String = feature_texts::sources(config).collect();
    format!(
        "weir {version}\n\
         \x20 gRPC    {grpc}\n\
         \x20 admin   {admin_scheme}://{admin}/ (metrics, livez, readyz, ui)\n\
         {operations}{features}\
         \x20 store   {store}\n\
         \x20 config  {source}\n\
         {sources}\n\
         Try in another terminal:\n\
         \n\
         {next}\n",
        version = env!("CARGO_PKG_VERSION"),
        admin_scheme = scheme(&config.server.admin_tls),
        store = store(config),
        features = ports.iter().map(OpenPort::line).collect::<String>(),
        next = next_commands(config, grpc) + &feature_commands(config, ports),
    )
}

/// The open port of a feature.
struct OpenPort {
    feature: &'static str,
    scheme: &'static str,
    address: ListenAddress,
}

impl OpenPort {
    /// Formats its line of the startup message.
    fn line(&self) -> String {
        match &self.address {
            ListenAddress::Tcp(address) => format!("  {:<7} {}://{address}/\n", self.feature, self.scheme),
            ListenAddress::Unix(_) => format!("  {:<7} {}\n", self.feature, self.address),
        }
    }
}

fn feature_ports(config: &Config, listeners: &Listeners) -> io::Result<Vec<OpenPort>> {
    let open = |(name, listener): &(&'static str, Listener)| {
        let section = config.sections.iter().find(|section| section.name() == *name);
        let tls = section.and_then(|section| section.port.as_ref()?.tls.clone());
        Ok(OpenPort { feature: name, scheme: scheme(&tls), address: listener.local_address()? })
    };
    listeners.features.iter().map(open).collect()
}

/// Formats example commands for the ports of features.
#[cfg_attr(not(feature = "http"), allow(unused_variables))]
fn feature_commands(config: &Config, ports: &[OpenPort]) -> String {
    let command = |port: &OpenPort| match port.feature {
        #[cfg(feature = "http")]
        "http" => {
            let address = match &port.address {
                ListenAddress::Tcp(address) => reachable(*address).into(),
                unix @ ListenAddress::Unix(_) => unix.clone(),
            };
            super::http::curl(config, port.scheme, &address)
        }
        _ => None,
    };
    ports.iter().filter_map(command).map(|line: String| format!("  {line}\n")).collect()
}

/// Returns the scheme of a port's addresses.
fn scheme(tls: &Option<TlsConfig>) -> &'static str {
    if tls.is_some() { "https" } else { "http" }
}

/// True for a Redis Cluster, where a caller that knows the secret can aim keys at one slot.
fn is_cluster(store: &StoreConfig) -> bool {
    matches!(store, StoreConfig::Redis(redis) if redis.topology == Topology::Cluster)
}

fn store(config: &Config) -> &'static str {
    match config.store {
        StoreConfig::Memory(_) => "memory",
        StoreConfig::Redis(_) => "redis",
    }
}

/// Formats example commands for this server, ready to paste.
fn next_commands(config: &Config, grpc: &ListenAddress) -> String {
    let server = match grpc {
        grpc if *grpc == ServerConfig::default().listen && config.server.tls.is_none() => String::new(),
        ListenAddress::Tcp(address) => {
            format!(" --server {}://{}", scheme(&config.server.tls), reachable(*address))
        }
        ListenAddress::Unix(path) => {
            // The user's other terminal may be in another directory.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            format!(" --server {}", quoted::quoted(&ListenAddress::Unix(path).to_string()))
        }
    };
    let program = this_program();
    let line = |command| format!("  {program} {command}{server}\n");
    sample::commands(config).into_iter().map(line).collect()
}

/// Returns a connectable address for `address`: loopback, if it is the unspecified address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = if address.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address.ip() };
    SocketAddr::new(ip, address.port())
}

/// Returns the command for this executable: its path if it lies below the working directory, otherwise its name.
fn this_program() -> String {
    let name = || "weir".to_owned();
    let (Ok(program), Ok(here)) = (std::env::current_exe(), std::env::current_dir()) else { return name() };
    match program.strip_prefix(&here) {
        Ok(below) => Path::new(".").join(below).display().to_string(),
        Err(_) if on_path(&program) => name(),
        Err(_) => program.display().to_string(),
    }
}

#[allow(clippy::disallowed_methods)] // the command line may read the environment
fn on_path(program: &Path) -> bool {
    let directories: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    program.parent().is_some_and(|parent| directories.iter().any(|directory| directory == parent))
}
