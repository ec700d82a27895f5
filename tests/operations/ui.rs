//! The page at `/ui`, in a real browser: light and dark, narrow and wide, without an error and without any request to
//! somebody else.

#[cfg(all(feature = "control", feature = "leases", feature = "queues"))]
mod cluster;
#[cfg(feature = "control")]
mod notes;
mod outcomes;

use std::path::Path;

use serde_json::{Value, json};
use weir_config::{Config, RedisConfig, ServerConfig, StoreConfig};
use weir_testing::Chromium;
use weir_units::Micros;
use weir_usage::{UsageConfig, with_usage};

use crate::support::server::{BASE, Server, ask, ask_under, config};
use crate::support::{RedisServer, SOON, eventually};

/// A service after an hour of calls, and how many of them were denied, and made.
async fn served() -> (Server, u64, u64) {
    let usage = UsageConfig { sample: 1, node: Some("node-1".to_owned()), ..UsageConfig::default() };
    let server = Server::start(with_usage(config(), usage));
    let mut client = server.client().await;
    let (mut denied, mut all) = (0, 0);
    client.should_allow(ask_under("nobody", "x", "bob")).await.unwrap_err();
    for minute in 0..60_u64 {
        server.clock.set(Micros(BASE.0 + minute * 60_000_000));
        // What was counted before belongs to the minute before.
        assert_eq!(server.get("/ui/data").0, 200);
        let wave = 6 + minute % 20 + minute % 7;
        for round in 0..wave {
            let consumer = ["alice@example.com", "<img src=x onerror=alert(1)>", "bob"][(round % 3) as usize];
            let tiger = ask("zewtopia.com/tigerfeeding", &format!("visitor-{}", round % 5));
            for request in
                [ask("burst/files", consumer), ask_under("open", "elsewhere", &format!("{round}")), tiger]
            {
                denied += u64::from(!client.should_allow(request).await.unwrap().into_inner().allowed);
                all += 1;
            }
        }
    }
    (server, denied, all)
}

/// Opens the page, and waits until it has shown what it has asked for.
fn open(browser: &mut Chromium, server: &Server, width: u32, scheme: &str) {
    let metrics = json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500 });
    browser.call("Emulation.setDeviceMetricsOverride", metrics);
    let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    browser.call("Emulation.setEmulatedMedia", features);
    browser.call("Page.navigate", json!({ "url": format!("http://{}/ui", server.admin) }));
    eventually(SOON, "the page is drawn", || {
        browser.evaluate("document.body?.dataset.drawn >= '1' && location.pathname == '/ui'")
            == Value::Bool(true)
    });
}

#[tokio::test]
async fn the_page_fits_every_screen_and_asks_nobody_else() {
    let (server, denied, all) = served().await;
    let of = format!("{} of {}", with_commas(denied), with_commas(all));
    let Some(mut browser) = Chromium::start() else { return };
    let folder = std::env::var_os("WEIR_PICTURES");
    for scheme in ["light", "dark"] {
        for width in [320, 1440] {
            open(&mut browser, &server, width, scheme);
            fits_and_shows_everything(&mut browser, width, scheme, &of);
            let picture = browser.picture();
            if let Some(folder) = &folder {
                std::fs::write(Path::new(folder).join(format!("ui-{scheme}-{width}.base64")), picture)
                    .unwrap();
            }
            has_no_error_and_asked_nobody_else(&browser.take_events(), &server);
        }
    }
}

fn with_commas(number: u64) -> String {
    if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) }
}

fn fits_and_shows_everything(browser: &mut Chromium, width: u32, scheme: &str, of: &str) {
    let wide = browser.evaluate("document.documentElement.scrollWidth").as_u64().unwrap();
    assert!(wide <= u64::from(width), "{wide} pixels on a screen of {width}");
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    for part in [
        "Decisions",
        "The last ten minutes",
        "Allowed",
        "Denials",
        "Which limit denies",
        "each",
        "Latency",
        "burst",
        "node-1",
        "store ok",
        "alice@example.com",
        "rejected requests",
        "unknown strategy",
        "all have the same files",
    ] {
        assert!(text.contains(part), "{part} at {width}: {text}");
    }
    assert!(text.contains(of), "{of}: {text}");
    assert!(text.contains("<img src=x onerror=alert(1)>"), "names are text: {text}");
    assert_eq!(browser.evaluate("document.images.length"), 0);
    let bars = browser.evaluate("document.querySelectorAll('#outcomes rect').length").as_u64().unwrap();
    assert_eq!(bars, 120, "allowed and denied calls of each minute");
    let count = |browser: &mut Chromium, what: &str| {
        browser.evaluate(&format!("document.querySelectorAll('{what}').length")).as_u64().unwrap()
    };
    assert_eq!(count(browser, "#outcomes rect.running"), 2, "the running minute is unfinished");
    assert!(count(browser, "#seconds rect") >= 18, "the calls of each second of ten minutes");
    assert!(count(browser, "#passed path") >= 3, "a line for each strategy, on one axis");
    has_its_own_colors(browser);
    // How light the background is.
    let back = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)");
    let light: u64 = back.as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(light > 380, scheme == "light", "{back}");
}

/// A strategy has one colour wherever it is shown, and nothing else has the colours of outcomes.
fn has_its_own_colors(browser: &mut Chromium) {
    let legend = |browser: &mut Chromium, chart: &str| {
        let script = format!(
            "[...document.querySelectorAll('#{chart}-legend span')].find(it => it.textContent == 'burst')\
             .firstChild.style.background"
        );
        browser.evaluate(&script)
    };
    let (denials, passed) = (legend(browser, "denials"), legend(browser, "passed"));
    assert_eq!(denials, passed);
    for strategy in ["burst", ""] {
        browser.evaluate(&format!(
            "document.getElementById('strategy').value = '{strategy}', document.getElementById('strategy').onchange()"
        ));
        assert_eq!(legend(browser, "denials"), denials, "also alone");
    }
    let colors = |browser: &mut Chromium, names: &str| -> Vec<String> {
        let script = format!(
            "{names}.map(name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim())"
        );
        serde_json::from_value(browser.evaluate(&script)).unwrap()
    };
    let outcomes = colors(browser, "['allowed', 'denied', 'degraded', 'error', 'uncharged', 'other']");
    let others =
        colors(browser, "['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7', 'p50', 'p99', 'warn', 'good']");
    assert!(
        others.iter().all(|color| !color.is_empty() && !outcomes.contains(color)),
        "{outcomes:?} {others:?}"
    );
}

/// The banner once said that other nodes' decisions were missing, when it was Redis that did not answer.
#[tokio::test]
async fn a_stalled_store_says_so_in_the_banner() {
    let redis = RedisServer::start();
    let store = StoreConfig::Redis(RedisConfig { nodes: vec![redis.url()], ..RedisConfig::default() });
    let usage = UsageConfig { node: Some("node-1".to_owned()), shared: true, ..UsageConfig::default() };
    let config = with_usage(Config { store, ..config() }, usage);
    let server = Server::start_by_the_system(Config {
        server: ServerConfig { ready_needs_store: false, ..config.server.clone() },
        ..config
    });
    eventually(SOON, "it is ready", || server.get("/readyz").1.starts_with("ready"));
    let Some(mut browser) = Chromium::start() else { return };
    open(&mut browser, &server, 1440, "light");
    assert_eq!(browser.evaluate("document.getElementById('problem').hidden"), Value::Bool(true));
    redis.freeze();
    // The first call that fails has the node probed, until its breaker opens.
    server.client().await.should_allow(ask_under("open", "x", "bob")).await.unwrap();
    eventually(SOON, "the banner names the store", || {
        let banner = browser.evaluate("document.getElementById('problem').innerText");
        banner.as_str().is_some_and(|text| text.starts_with("The store does not answer"))
    });
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(!text.contains("other nodes are missing"), "{text}");
    eventually(SOON, "the breaker of the node is open", || {
        let breakers = browser.evaluate("document.getElementById('breakers').innerText");
        breakers.as_str().is_some_and(|text| text.contains("breaker open"))
    });
    redis.thaw();
    eventually(SOON, "the banner goes", || {
        browser.evaluate("document.getElementById('problem').hidden") == Value::Bool(true)
    });
}

fn has_no_error_and_asked_nobody_else(events: &[Value], server: &Server) {
    let own = format!("http://{}/", server.admin);
    let mut asked = 0;
    for event in events {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap();
                assert!(url.starts_with(&own) || url.starts_with("data:"), "it asks for {url}");
                asked += 1;
            }
            "Runtime.exceptionThrown" => panic!("{params}"),
            "Runtime.consoleAPICalled" => panic!("{params}"),
            "Log.entryAdded" => panic!("{params}"),
            "Network.responseReceived" => assert_eq!(params["response"]["status"], 200, "{params}"),
            _ => {}
        }
    }
    assert!(asked >= 2, "the page and its data");
}

#[tokio::test]
async fn what_it_shows_is_bounded_and_safe() {
    let (server, _, all) = served().await;
    let (status, page) = server.get("/ui");
    assert_eq!(status, 200);
    assert!(page.len() < 32 << 10, "{}", page.len());
    for outside in ["https://", "src=", "@import", "url("] {
        assert!(!page.replace("src=\"/ui/page.js\"", "").contains(outside), "{outside}");
    }
    let (status, data) = server.get("/ui/data");
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((status, &data["nodes"][0]["name"]), (200, &json!("node-1")));
    let calls: u64 =
        data["series"].as_array().unwrap().iter().map(|one| one["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, all);
    assert!(data["denied"].as_array().unwrap().len() <= 100);
}
