//! The options that stand for single values of the configuration.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use weir::config::Config;

/// Options of `serve`, and their variables. They are texts: the configuration checks all of them
/// together with the file, and reports all mistakes at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// The configuration file; without one, the built-in example is served
    #[arg(long, short, env = "WEIR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where gRPC listens [default: 127.0.0.1:8081]
    #[arg(long, env = "WEIR_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where metrics and probes listen [default: 127.0.0.1:8080]
    #[arg(long, env = "WEIR_ADMIN", value_name = "ADDRESS")]
    admin: Option<String>,
    /// Threads that serve connections [default: one per core]
    #[arg(long, env = "WEIR_WORKERS", value_name = "COUNT")]
    workers: Option<String>,
    /// Where state lives: `memory`, or `redis://HOST:PORT`, several with commas [default: memory]
    #[arg(long, env = "WEIR_STORE", value_name = "STORE")]
    store: Option<String>,
}

impl Settings {
    /// The configuration: the file, or the built-in example, with single values replaced.
    pub(crate) fn load(self) -> Result<Config> {
        let _ = Path::new("");
        if self.config.is_some() {
            bail!("configuration files are not read yet");
        }
        stub(self)
    }
}

fn stub(settings: Settings) -> Result<Config> {
    use weir::algorithm::Algorithm;
    use weir::config::{MemoryConfig, Messages, RedisConfig, ServerConfig, StoreConfig};
    use weir::strategy::{FailurePolicy, Field, Limit, Resource, Resources, Rules, Scope, Strategy};
    use weir::units::Micros;
    let ten = Micros::from_secs(10);
    let limits = vec![
        Limit {
            name: "everyone".into(),
            scope: Scope::of(&[Field::Resource]),
            algorithm: Algorithm::sliding_log(100, ten)?,
        },
        Limit {
            name: "each".into(),
            scope: Scope::of(&[Field::Resource, Field::Consumer]),
            algorithm: Algorithm::uniform(ten)?,
        },
    ];
    let strategy = Strategy::new("tiger-feeding", limits, false, FailurePolicy::Deny)?;
    let free = Limit {
        name: "each".into(),
        scope: Scope::of(&[Field::Resource, Field::Consumer]),
        algorithm: Algorithm::bucket(
            1_000_000,
            weir::algorithm::Rate { count: 1_000_000, period: Micros::from_secs(1) },
        )?,
    };
    let free = Strategy::new("free", vec![free], false, FailurePolicy::Error)?;
    let resources =
        Resources::new([("zewtopia.com/tigerfeeding".to_owned(), Resource { strategy: 0, group: None })]);
    let mut server = ServerConfig::default();
    if let Some(listen) = settings.listen {
        server.listen = listen.parse()?;
    }
    if let Some(admin) = settings.admin {
        server.admin = admin.parse()?;
    }
    if let Some(workers) = settings.workers {
        server.workers = workers.parse()?;
    }
    let store = match settings.store.as_deref() {
        None | Some("memory") => StoreConfig::Memory(MemoryConfig::default()),
        Some(node) => {
            StoreConfig::Redis(RedisConfig { nodes: vec![node.to_owned()], ..RedisConfig::default() })
        }
    };
    Ok(Config {
        server,
        store,
        key_secret: None,
        rules: Rules::new(vec![strategy, free], resources),
        messages: Messages::default(),
        source: None,
    })
}
