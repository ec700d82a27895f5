//! Problems that leave a node ready are on `/readyz`, in the banner of the page, and where operators look.

use std::fs;

use serde_json::Value;
use weir_config::Config;
use weir_testing::Chromium;

use super::open;
use crate::support::command::{text, weir};
use crate::support::server::Server;
use crate::support::{SOON, eventually, scratch};

const CONFIG: &str = "
server: { control: true, audit_file: audit.jsonl }
control: { cache_file: entries }
strategies: { s: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/s } }] } }
";

/// With two mistakes.
const WRONG: &str = "strategies: { s: { limits: 7 }, t: { limits: 8 } }\n";

#[test]
fn refused_files_are_told_of_everywhere() {
    let folder = scratch::dir("notes-");
    let file = scratch::file(folder.path(), "weir.yaml", CONFIG);
    let server = Server::ready(Config::load(&file, &weir::features::overrides()).unwrap());
    let list = || {
        let listed = weir(&["control", "list", "--server", &format!("http://{}", server.grpc)]);
        text(&listed.stdout)
    };
    let gauge = |value: u64| {
        server.get("/metrics").1.contains(&format!("weir_files_refused{{files=\"config\"}} {value}"))
    };
    assert!(gauge(0) && !list().contains("refused"), "{}", list());
    let mut browser = Chromium::start();
    fs::write(&file, WRONG).unwrap();
    eventually(SOON, "readyz tells of it", || server.get("/readyz").1.contains("note: "));
    let (status, page) = server.get("/readyz");
    let note = page.lines().find(|line| line.starts_with("note: ")).unwrap();
    let begin = "note: the files of the configuration are refused since 20";
    assert!(status == 200 && page.starts_with("ready\n") && note.starts_with(begin), "{page}");
    assert!(note.contains("weir.yaml:1:") && note.contains("(and 1 more mistake)"), "{note}");
    assert!(gauge(1));
    let listed = list();
    assert!(listed.contains(&begin[6..]) && listed.contains("weir.yaml:1:"), "{listed}");
    if let Some(browser) = &mut browser {
        open(browser, &server, 1440, "light");
        let banner = browser.evaluate("document.getElementById('problem').innerText");
        assert!(banner.as_str().unwrap().starts_with(&begin[6..]), "{banner}");
        let class = browser.evaluate("document.getElementById('problem').className");
        let pill = browser.evaluate("document.getElementById('store').className");
        assert_eq!((class.as_str(), pill.as_str()), (Some("fair"), Some("pill fair")), "amber");
    }
    fs::write(&file, CONFIG).unwrap();
    eventually(SOON, "it is over", || server.get("/readyz").1 == "ready\n");
    assert!(gauge(0) && !list().contains("refused"));
    if let Some(browser) = &mut browser {
        eventually(SOON, "the banner goes", || {
            browser.evaluate("document.getElementById('problem').hidden") == Value::Bool(true)
        });
    }
}

/// The page shows each note of `/readyz`, whatever it is about.
#[test]
fn every_note_is_in_the_banner() {
    let server = Server::ready(crate::support::server::config());
    let Some(mut browser) = Chromium::start() else { return };
    open(&mut browser, &server, 1440, "light");
    let script = "data.health = 'ready\\nnote: another node has other limits\\nnote: a place is missing\\n', draw(),\
                  document.getElementById('problem').innerText + '|' + document.getElementById('store').textContent";
    let shown = browser.evaluate(script);
    let shown = shown.as_str().unwrap();
    assert!(shown.starts_with("another node has other limits\n"), "{shown}");
    assert!(shown.contains("a place is missing") && shown.ends_with("|2 notes"), "{shown}");
    let down = "data.health = 'degraded: a cannot decide\\nnote: a place is missing\\n', draw(),\
                document.getElementById('problem').innerText + document.getElementById('problem').className";
    let shown = browser.evaluate(down);
    let shown = shown.as_str().unwrap();
    assert!(
        shown.starts_with("The store does not answer") && shown.ends_with("a place is missingbad"),
        "{shown}"
    );
}
