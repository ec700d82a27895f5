//! A service of this process on free ports, and the ways to talk to it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus::Registry;
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};
use weir::features::FEATURES;
use weir_config::{
    Config, DenialMessages, ListenAddress, MemoryConfig, ServerConfig, StoreConfig, TransportKind,
};
use weir_core::algorithm::{Algorithm, Rate, Verdict};
use weir_core::strategy::{FailurePolicy, Field, Resource, Resources, Rules};
use weir_node::admin::{AdminGate, AdminPages, start_admin};
use weir_node::app::{self, Listeners, Timing};
use weir_node::audit::AuditLog;
use weir_node::feature::FeatureList;
use weir_node::feature_pages::FeaturePages;
use weir_node::readiness::Readiness;
use weir_node::server::{
    self, LiveSnapshot, Parts, PortServices, ServerError, Serving, Shutdown, StoreFiles,
};
use weir_node::service::Snapshot;
use weir_node::telemetry::Metrics;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_store::Store;
use weir_store::backend::Backend;
use weir_testing::metrics;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use weir_testing::rules::strategy;
use weir_testing::{SOON, eventually};

/// The time of the tests' clocks when they stand still: a multiple of every window.
pub(crate) const BASE: Micros = Micros(1_704_067_200_000_000);

/// A service that runs until it is stopped or dropped. Dropping does not wait for its end: the client side of the
/// connections is on the runtime of the test, which would wait for itself.
pub(crate) struct Server {
    pub(crate) grpc: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// The memory store's clock.
    pub(crate) clock: ManualClock,
    /// The health of the server; only of services with a store of the test's own.
    pub(crate) readiness: Readiness,
    stop: Option<oneshot::Sender<Shutdown>>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Server {
    /// On the memory store, with everything as `weir serve` wires it, but the clock stands still.
    pub(crate) fn start(config: Config) -> Self {
        let clock = ManualClock::at(BASE);
        let shared = Clock::Manual(clock.clone());
        Self::start_by(clock, shared, (config, FEATURES))
    }

    /// The same with other features, once it is ready to answer.
    pub(crate) fn with_features(config: Config, features: FeatureList) -> Self {
        let clock = ManualClock::at(BASE);
        let server = Self::start_by(clock.clone(), Clock::Manual(clock), (config, features));
        eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
        server
    }

    /// The same by the system's clock, and on Redis by the server's own. Only then are its commands those that users
    /// are granted.
    pub(crate) fn start_by_the_system(config: Config) -> Self {
        Self::start_by(ManualClock::at(BASE), Clock::System, (config, FEATURES))
    }

    fn start_by(manual: ManualClock, clock: Clock, (config, features): (Config, FeatureList)) -> Self {
        Self::spawn(manual, Readiness::starting(true), move |listeners, stopped, _| {
            // Tests that change files wait for a look at them.
            let timing = Timing { poll_every: Duration::from_millis(50), ..clock.into() };
            app::run(config, listeners, timing, Box::pin(stopped), features)
                .map_err(|error| error.to_string())
        })
    }

    /// The same on a backend of the test's own, made with the clock of the service.
    pub(crate) fn on_backend<B: Backend>(
        config: Config,
        make: impl FnOnce(Clock) -> B + Send + 'static,
    ) -> Self {
        let manual = ManualClock::at(BASE);
        let clock = Clock::Manual(manual.clone());
        Self::spawn(manual, Readiness::starting(true), move |listeners, stopped, _| {
            let backend = make(clock.clone());
            app::run_on(&backend, config, listeners, clock, Box::pin(stopped), FEATURES)
                .map_err(|error| error.to_string())
        })
    }

    /// The same, once it is ready to answer.
    pub(crate) fn ready(config: Config) -> Self {
        let server = Self::start(config);
        eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
        server
    }

    /// On stores that `make` makes, one per worker.
    pub(crate) fn with_store<S: Store>(config: Config, make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        let readiness = Readiness::starting(true);
        readiness.set(Ok(()));
        Self::spawn(ManualClock::at(BASE), readiness, move |listeners, stopped, readiness| {
            let metrics = Metrics::register(&Registry::new(), &config.rules).unwrap();
            let admin = start_admin(
                listeners.admin.unwrap(),
                None,
                64,
                AdminPages {
                    metrics: metrics.clone(),
                    readiness: readiness.clone(),
                    features: FeaturePages::default(),
                },
                AdminGate::new(None, &config.server),
            );
            let _admin = admin.unwrap();
            let parts = Parts {
                live: LiveSnapshot::new(Snapshot::new(config.rules, &metrics)),
                store: Box::new(move || make().into()),
                store_files: StoreFiles::default(),
                readiness,
                metrics,
                audit: AuditLog::open(None, Clock::System).unwrap(),
                served: PortServices::All,
                intercept: None,
                tls: None,
                features: Vec::new(),
                running: Vec::new(),
                known: &[],
            };
            let served =
                server::run(&config.server, (listeners.grpc, Serving::default()), parts, Box::pin(stopped));
            served.map_err(|error: ServerError| error.to_string())
        })
    }

    fn spawn(
        clock: ManualClock,
        readiness: Readiness,
        run: impl FnOnce(Listeners, Stopped, Readiness) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let addresses = ServerConfig { listen: any.into(), admin: any, ..ServerConfig::default() };
        let listeners = Listeners::bind(&addresses).unwrap();
        let ListenAddress::Tcp(grpc) = listeners.grpc.local_address().unwrap() else { panic!("a port") };
        let admin = listeners.admin.as_ref().unwrap().local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shared = readiness.clone();
        let thread = std::thread::spawn(move || run(listeners, Stopped(stopped), shared));
        Self { grpc, admin, clock, readiness, stop: Some(stop), thread: Some(thread) }
    }

    /// A connection of its own, once the server answers.
    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap().connect().await.unwrap()
    }

    /// A client on a connection of its own.
    pub(crate) async fn client(&self) -> RateLimitServiceClient<Channel> {
        RateLimitServiceClient::new(self.channel().await)
    }

    /// Tells the service to stop without a delay.
    pub(crate) fn stop(&mut self) {
        self.stop = None;
    }

    /// Tells the service to stop as SIGTERM does.
    pub(crate) fn terminate(&mut self) {
        let stop = self.stop.take().expect("it is stopped once");
        stop.send(Shutdown::Delayed).expect("the service runs");
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> Result<(), String> {
        self.thread.take().unwrap().join().expect("the service does not panic")
    }

    /// GETs a path of the admin server: status and body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.get_with(path, "")
    }

    /// Returns the value of a series on the metrics page.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        metrics::value(&self.get("/metrics").1, series)
    }

    /// The same with this `authorization`.
    pub(crate) fn get_as(&self, path: &str, authorization: &str) -> (u16, String) {
        self.get_with(path, &format!("authorization: {authorization}\r\n"))
    }

    /// The same with these lines of headers.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{headers}\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1.to_owned();
        (status, body)
    }
}

/// The verdict of a store that allows everything.
pub(crate) const ALLOWED: Verdict =
    Verdict { now: BASE, allowed: true, fitted: true, granted: 1, wait: Micros::ZERO, applied: true };

/// Ends when the server has to stop or is dropped.
pub(crate) struct Stopped(oneshot::Receiver<Shutdown>);

impl Future for Stopped {
    type Output = Shutdown;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Shutdown> {
        Pin::new(&mut self.0).poll(context).map(|shared| shared.unwrap_or(Shutdown::Immediate))
    }
}

/// Two workers, the memory store, and a strategy of each kind that the tests ask about.
pub(crate) fn config() -> Config {
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let attribute = |name: &str| Field::Attribute(name.into());
    let second = Micros::from_secs(1);
    let bucket = |burst| Algorithm::bucket(burst, Rate { count: 1, period: second }).unwrap();
    let each = [("each", both, bucket(5))];
    let strategies = vec![
        strategy(
            "tiger-feeding",
            &[
                ("everyone", &[Field::Resource], Algorithm::sliding_log(100, second.times(10)).unwrap()),
                ("each", both, Algorithm::uniform(second.times(10)).unwrap()),
            ],
            FailurePolicy::Deny,
        ),
        strategy("burst", &each, FailurePolicy::Error),
        strategy("open", &each, FailurePolicy::Allow),
        strategy("closed", &each, FailurePolicy::Deny),
        strategy(
            "regional",
            &[
                ("region", &[attribute("region")], bucket(3)),
                ("each", &[attribute("region"), Field::Consumer], bucket(2)),
            ],
            FailurePolicy::Error,
        ),
        strategy("everybody", &[("all", &[Field::Resource], bucket(3))], FailurePolicy::Error),
    ];
    let resources = Resources::new([
        ("zewtopia.com/tigerfeeding".to_owned(), Resource { strategy: 0, group: None }),
        ("burst/*".to_owned(), Resource { strategy: 1, group: None }),
    ]);
    Config {
        // So that tests of outages see in `/readyz` when the loss is noticed.
        server: ServerConfig {
            transport: transport(),
            workers: 2,
            ready_needs_store: true,
            drain_timeout: second.times(10),
            ..ServerConfig::default()
        },
        store: StoreConfig::Memory(MemoryConfig::default()),
        key_secret: None,
        namespace: weir_core::key::Namespace::DEFAULT,
        rules: Rules::new(strategies, resources),
        authorize: None,
        messages: DenialMessages::default(),
        sections: Vec::new(),
        written: std::sync::Arc::default(),
        decision_log: weir_config::DecisionLogConfig::default(),
        sources: Vec::new(),
        origin: None,
        fingerprint: weir_config::ConfigFingerprint::default(),
        meanings: weir_config::StrategyMeanings::default(),
    }
}

/// The same on `fast`, for tests of what it does alone.
pub(crate) fn config_on_fast() -> Config {
    let server = ServerConfig { transport: TransportKind::Fast, ..config().server };
    Config { server, ..config() }
}

/// The transport of the tests' connections: `WEIR_TEST_TRANSPORT`, or else the default. Tests of what one transport
/// does alone name it themselves.
pub(crate) fn transport() -> TransportKind {
    match std::env::var("WEIR_TEST_TRANSPORT").as_deref() {
        Ok("tonic") => TransportKind::Tonic,
        Ok("fast") | Err(_) => TransportKind::Fast,
        Ok(other) => panic!("WEIR_TEST_TRANSPORT is {other}: it must be fast or tonic"),
    }
}

/// A question with the default cost.
pub(crate) fn ask(resource: &str, consumer: &str) -> ShouldAllowRequest {
    ShouldAllowRequest {
        resource: resource.to_owned(),
        consumer: consumer.to_owned(),
        ..ShouldAllowRequest::default()
    }
}

/// The same under a strategy.
pub(crate) fn ask_under(strategy: &str, resource: &str, consumer: &str) -> ShouldAllowRequest {
    ShouldAllowRequest { strategy: strategy.to_owned(), ..ask(resource, consumer) }
}

trait Times {
    fn times(self, factor: u64) -> Self;
}

impl Times for Micros {
    fn times(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}
