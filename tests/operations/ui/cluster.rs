//! The page of three nodes on one Redis that have worked for an hour. With WEIR_PICTURES it draws the picture of the README: the
//! same hour, with the calls of a cluster.

use tempfile::TempDir;
use weir_config::Config;
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{
    AcquireRequest, ChangeOptions, ControlStrategy, EnqueueRequest, NewItem, PutStrategyRequest,
    ShouldAllowBatchRequest, ShouldAllowRequest,
};

use super::*;
use crate::support::scratch;

const FILE: &str = "
server: { control: true, workers: 1, audit_file: audit.jsonl }
control: { cache_file: entries }
strategies:
  api: { limits: [{ name: per-client, per: [consumer], fixed_window: { limit: 1000000, window: 1h } }] }
  search:
    limits:
      - { name: per-client, per: [resource, consumer], sliding_window: { limit: 1000000, window: 1h } }
      - { name: everyone, per: [resource], fixed_window: { limit: 100000000, window: 1h } }
  login: { limits: [{ name: per-account, per: [consumer], fixed_window: { limit: 5, window: 1h } }] }
  exports: { concurrency: { adaptive: vegas, initial: 8, min: 2, max: 40, per: [resource], ttl: 10m } }
resources:
  - { match: 'api/*', strategy: api }
  - { match: search, strategy: search }
  - { match: login, strategy: login }
overrides: [{ consumer: nightly-report, strategy: api, limits: { per-client: { fixed_window: { limit: 100, window: 1h } } } }]
queues: { invoices: { capacity: 10000, max_deliveries: 3 } }
";

/// Leases that are taken at the end of the hour. They count as calls.
const LEASES: u64 = 6;

/// Seconds that are counted one by one.
const SECONDS: u64 = 600;

struct Nodes {
    all: Vec<Server>,
    _folders: Vec<TempDir>,
}

impl Nodes {
    fn on(redis: &RedisServer) -> Self {
        let (mut all, mut folders) = (Vec::new(), Vec::new());
        for number in 1..=3 {
            let folder = scratch::dir("ui-");
            let text = format!(
                "{FILE}usage: {{ sample: 1, node: weir-{number} }}\nstore: {{ redis: {{ nodes: ['{}'], deadline: 1s }} }}\n",
                redis.url()
            );
            let file = scratch::file(folder.path(), "weir.yaml", text);
            all.push(Server::ready(Config::load(&file, &weir::features::overrides()).unwrap()));
            folders.push(folder);
        }
        Self { all, _folders: folders }
    }

    fn set_clock(&self, seconds: u64) {
        for node in &self.all {
            node.clock.set(Micros(BASE.0 + seconds * 1_000_000));
            // What was counted before belongs to the time before.
            assert_eq!(node.get("/ui/data").0, 200);
        }
    }
}

/// Returns the calls of each kind in a second of the hour.
fn calls(second: u64) -> Vec<ShouldAllowRequest> {
    let wave = |period: u64, high: u64| {
        let phase = second % period;
        high * phase.min(period - phase) * 2 / period
    };
    let mut all = Vec::new();
    let mut add = |resource: &str, count: u64, who: &dyn Fn(u64) -> String| {
        all.extend((0..count).map(|call| ask(resource, &who(call))));
    };
    add("api/orders", 14 + wave(900, 10), &|call| format!("client-{}", (second * 7 + call * call) % 40));
    add("api/stock", 5 + wave(420, 4), &|call| format!("client-{}", (second + call) % 25));
    add("search", 6 + wave(700, 8), &|call| format!("client-{}", (second * 3 + call) % 60));
    add("login", 2, &|call| format!("account-{second}-{call}"));
    if (3_000..3_120).contains(&second) || (3_340..3_420).contains(&second) {
        add("login", 12, &|_| "mallory".to_owned());
    }
    if (3_180..3_300).contains(&second) {
        add("api/orders", 8, &|_| "nightly-report".to_owned());
    }
    all
}

async fn makes(node: &Server, calls: Vec<ShouldAllowRequest>) -> u64 {
    let made = calls.len() as u64;
    let mut client = node.client().await;
    for requests in calls.chunks(100) {
        let requests = requests.to_vec();
        client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
    }
    made
}

/// An hour of calls, of which the last ten minutes come by the second. `times` as many as the test makes.
async fn hour(nodes: &Nodes, times: u64) -> u64 {
    let repeated = |second| (0..times).flat_map(move |_| calls(second));
    let mut made = 0;
    for minute in 0..50_u64 {
        nodes.set_clock(minute * 60);
        let node = &nodes.all[(minute % 3) as usize];
        // Without a picture a minute has the calls of a second.
        let seconds = if times > 1 { 60 } else { 1 };
        let all = (0..seconds).flat_map(|second| repeated(minute * 60 + second)).collect();
        made += makes(node, all).await;
    }
    let step = if times > 1 { 1 } else { 20 };
    for second in (3_600 - SECONDS..3_600 - 20).step_by(step) {
        nodes.set_clock(second);
        made += makes(&nodes.all[(second % 3) as usize], repeated(second).collect()).await;
    }
    nodes.set_clock(3_600 - 20);
    made
}

async fn holds(node: &Server) {
    let channel = node.channel().await;
    let mut leases = ConcurrencyServiceClient::new(channel.clone());
    for id in 0..LEASES {
        let request = AcquireRequest {
            resource: "exports/pdf".to_owned(),
            strategy: "exports".to_owned(),
            id: format!("export-{id}"),
            ..AcquireRequest::default()
        };
        leases.acquire(request).await.unwrap();
    }
    let items = (0..37).map(|_| NewItem { payload: b"invoice".to_vec(), ..NewItem::default() }).collect();
    let put = EnqueueRequest { queue: "invoices".to_owned(), items };
    QueueServiceClient::new(channel.clone()).enqueue(put).await.unwrap();
    let strategy = ControlStrategy {
        strategy: "search".to_owned(),
        limits: [("everyone".to_owned(), "50000000/1h".to_owned())].into(),
        ..ControlStrategy::default()
    };
    let options = ChangeOptions {
        reason: "half of it while the index is rebuilt".to_owned(),
        expires_after: Some(prost_types::Duration { seconds: 3_600, nanos: 0 }),
        ..ChangeOptions::default()
    };
    let request = PutStrategyRequest { strategy: Some(strategy), options: Some(options) };
    ControlServiceClient::new(channel).put_strategy(request).await.unwrap();
}

#[tokio::test]
async fn three_nodes_are_shown_as_one() {
    let redis = RedisServer::start();
    let nodes = Nodes::on(&redis);
    let folder = std::env::var_os("WEIR_PICTURES");
    let made = hour(&nodes, if folder.is_some() { 8 } else { 1 }).await;
    let asked = &nodes.all[0];
    holds(asked).await;
    asked.client().await.should_allow(ask_under("serach", "x", "bob")).await.unwrap_err();
    let Some(mut browser) = Chromium::start() else { return };
    let data = || -> Value {
        nodes.all.iter().for_each(|node| assert_eq!(node.get("/ui/data").0, 200));
        serde_json::from_str(&asked.get("/ui/data").1).unwrap()
    };
    let calls = |data: &Value| -> u64 {
        data["series"].as_array().unwrap().iter().map(|one| one["calls"].as_u64().unwrap()).sum()
    };
    eventually(SOON, "the page has the queue", || data()["cards"][0]["rows"][0][1].as_f64() == Some(37.0));
    eventually(SOON, "what each node serves", || data()["nodes"].as_array().unwrap().len() == 3);
    eventually(SOON, "what the other nodes have counted", || calls(&data()) == made + LEASES);
    open(&mut browser, asked, 1440, "light");
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    for part in ["3 nodes: weir-1, weir-2, weir-3", "per-account", "exports", "invoices"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    if let Some(folder) = folder {
        let height = browser.evaluate("document.documentElement.scrollHeight").as_u64().unwrap();
        let metrics = json!({ "width": 1440, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", metrics);
        browser.evaluate("draw()");
        std::fs::write(Path::new(&folder).join("ui.base64"), browser.picture()).unwrap();
    }
}
