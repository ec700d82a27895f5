//! The pages for browsers: policies on every answer, nothing for other origins, and a page that asks for the token.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use weir_config::{Config, ConfigOverrides};
use weir_node::access::new_token;
use weir_testing::{Chromium, SOON, eventually};

use super::STRATEGIES;
use crate::support::scratch;
use crate::support::server::Server;

struct Guarded {
    server: Server,
    token: String,
    _dir: tempfile::TempDir,
}

impl Guarded {
    fn start() -> Self {
        Self::with("")
    }

    /// Starts with these settings of `server`.
    fn with(settings: &str) -> Self {
        let dir = scratch::dir("browsers");
        let (token, line) = new_token("shop").unwrap();
        std::fs::write(dir.path().join("tokens"), line).unwrap();
        let server = format!("server: {{ {settings}identity: {{ tokens_file: tokens }} }}{STRATEGIES}");
        let file = scratch::file(dir.path(), "weir.yaml", server);
        let server = Server::ready(Config::load(&file, &ConfigOverrides::default()).unwrap());
        Self { server, token, _dir: dir }
    }

    /// The head of an answer, in lower case.
    fn head(&self, method: &str, path: &str, headers: &str) -> String {
        self.answer(&format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"
        ))
    }

    /// The head of the answer to a request, in lower case.
    fn answer(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.server.admin).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().0.to_ascii_lowercase()
    }
}

#[test]
fn every_answer_has_policies_and_no_other_origin_reads_it() {
    let guarded = Guarded::start();
    let origin = "origin: https://evil.example\r\n";
    let known = format!("{origin}authorization: Bearer {}\r\n", guarded.token);
    for path in
        ["/", "/livez", "/readyz", "/metrics", "/ui", "/ui/page.js", "/ui/page.css", "/ui/data", "/nothing"]
    {
        let preflight = format!("{origin}access-control-request-headers: authorization\r\n");
        for (method, headers) in [("GET", origin), ("GET", &known), ("OPTIONS", &preflight)] {
            let head = guarded.head(method, path, headers);
            assert!(head.contains("x-content-type-options: nosniff"), "{method} {path}: {head}");
            assert!(head.contains("frame-ancestors 'none'"), "{method} {path}: {head}");
            assert!(head.contains("default-src 'none'") && !head.contains("unsafe-inline"), "{path}: {head}");
            assert!(!head.contains("access-control-"), "{method} {path}: {head}");
        }
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let head = guarded.head(method, path, &format!("{known}content-length: 0\r\n"));
            let status = head.split(' ').nth(1).unwrap();
            assert!(matches!(status, "404" | "405"), "{method} {path} changes nothing: {head}");
        }
    }
}

/// In a real browser. The token is nowhere but in the page's memory: a reload asks for it again.
#[tokio::test]
async fn the_page_asks_for_the_token_and_keeps_it_in_memory() {
    let guarded = Guarded::start();
    let Some(mut browser) = Chromium::start() else { return };
    let url = json!({ "url": format!("http://{}/ui", guarded.server.admin) });
    let is = |browser: &mut Chromium, expression: &str| browser.evaluate(expression) == Value::Bool(true);
    let asks = "location.pathname == '/ui' && document.getElementById('login')?.hidden === false";
    browser.call("Page.navigate", url.clone());
    eventually(SOON, "it asks for a token", || is(&mut browser, asks));
    let token = &guarded.token;
    browser.evaluate(&format!(
        "document.getElementById('token').value = '{token}'; \
         document.getElementById('login').requestSubmit(); true"
    ));
    let shows = "document.body.dataset.drawn >= '1' && document.getElementById('login').hidden";
    eventually(SOON, "it shows the data", || is(&mut browser, shows));
    let kept = "localStorage.length + sessionStorage.length + document.cookie.length";
    assert_eq!(browser.evaluate(kept), json!(0));
    assert!(is(&mut browser, &format!("!document.documentElement.outerHTML.includes('{token}')")));
    browser.call("Page.navigate", url);
    eventually(SOON, "a reload asks again", || {
        is(&mut browser, &format!("{asks} && !document.body.dataset.drawn"))
    });
}

/// The page once said "No answer from this node: 401", and was empty.
#[tokio::test]
async fn the_login_is_a_page_of_its_own_and_names_a_wrong_token() {
    let guarded = Guarded::start();
    let Some(mut browser) = Chromium::start() else { return };
    let text = |browser: &mut Chromium, expression: &str| {
        browser.evaluate(expression).as_str().map(str::to_owned).unwrap_or_default()
    };
    for width in [320, 1440] {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.call("Emulation.setDeviceMetricsOverride", metrics);
        browser.call("Page.navigate", json!({ "url": format!("http://{}/ui", guarded.server.admin) }));
        eventually(SOON, "it asks for a token", || {
            let asks = "location.pathname == '/ui' && document.getElementById('login')?.hidden === false \
                        && document.getElementById('refused').innerText == ''";
            browser.evaluate(asks) == Value::Bool(true)
        });
        let shown = text(&mut browser, "document.body.innerText");
        assert!(shown.contains("Who asks?") && shown.contains("wants a token"), "{width}: {shown}");
        assert!(!shown.contains("No answer") && !shown.contains("401"), "{width}: {shown}");
        // Nothing of the page behind it: no empty charts, no choice of a strategy.
        for hidden in ["main > section", "header select"] {
            let seen =
                format!("[...document.querySelectorAll('{hidden}')].some(it => it.offsetParent !== null)");
            assert_eq!(browser.evaluate(&seen), Value::Bool(false), "{hidden} at {width}");
        }
        let wide = browser.evaluate("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= width, "{wide} pixels on a screen of {width}");
        let inside = "(it => it.left >= 0 && it.right <= innerWidth)\
                      (document.querySelector('#login button').getBoundingClientRect())";
        assert_eq!(browser.evaluate(inside), Value::Bool(true), "the button at {width}");
        browser.evaluate(
            "document.getElementById('token').value = 'wrong'; \
             document.getElementById('login').requestSubmit(); true",
        );
        eventually(SOON, "it names the mistake", || {
            text(&mut browser, "document.getElementById('refused').innerText").contains("not known here")
        });
        assert_eq!(text(&mut browser, "document.getElementById('token').value"), "");
        assert_eq!(text(&mut browser, "document.getElementById('token').type"), "password");
    }
}

/// Only a credential that was verified from the header may come under any name, also where a path is open to all.
#[test]
fn a_wrong_token_does_not_pass_for_a_known_name() {
    for open in ["", "admin_open: [metrics, ui_data], "] {
        let guarded = Guarded::with(open);
        let status = |path: &str, headers: &str| {
            let head = guarded.answer(&format!(
                "GET {path} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n{headers}\r\n"
            ));
            head.split(' ').nth(1).unwrap().to_owned()
        };
        for path in ["/ui/data", "/metrics", "/ui", "/"] {
            assert_eq!(status(path, ""), "421", "{open}{path}");
            assert_eq!(status(path, "authorization: Bearer x\r\n"), "421", "{open}{path}");
            let token = format!("authorization: Bearer {}\r\n", guarded.token);
            assert_eq!(status(path, &token), "200", "{open}{path}");
            assert_eq!(status(path, &token.repeat(2)), "421", "{open}{path}");
        }
    }
}

/// The metrics are of everything, so a right with lists is not enough.
#[test]
fn metrics_need_a_right_without_lists() {
    let dir = scratch::dir("metrics");
    let (all, one) = (new_token("all").unwrap(), new_token("one").unwrap());
    std::fs::write(dir.path().join("tokens"), format!("{}\n{}\n", all.1, one.1)).unwrap();
    let rules = "authorize:
  - { callers: [token:all], may: [inspect] }
  - { callers: [token:one], may: [inspect], strategies: [a] }
";
    let file = scratch::file(
        dir.path(),
        "weir.yaml",
        format!("server: {{ identity: {{ tokens_file: tokens }} }}\n{rules}{STRATEGIES}"),
    );
    let server = Server::ready(Config::load(&file, &ConfigOverrides::default()).unwrap());
    let status = |path: &str, token: &str| server.get_as(path, &format!("Bearer {token}")).0;
    assert_eq!((status("/metrics", &all.0), status("/metrics", &one.0)), (200, 403));
    assert_eq!((status("/", &all.0), status("/", &one.0)), (200, 200));
}
