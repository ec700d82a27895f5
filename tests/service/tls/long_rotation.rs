//! Certificates, authorities, revocation lists, tokens and key sets that are all replaced once a second under load: no
//! call fails that the version before and the version after allow.

mod callers;
mod load;
mod versions;

use std::time::{Duration, Instant};

use super::TRANSPORTS;
use weir_testing::{SOON, eventually_async, scratch};

use self::callers::Callers;
use self::load::Load;
use self::versions::Versions;
use crate::support::command::Serve;

/// Variable with the time for each transport, in seconds.
const SECONDS: &str = "WEIR_ROTATION_SECONDS";

/// Time between two versions of all files.
const EVERY: Duration = Duration::from_secs(1);

#[tokio::test]
async fn no_call_fails_that_both_versions_allow() {
    let seconds = std::env::var(SECONDS).map_or(4, |text| text.parse().unwrap());
    for transport in TRANSPORTS {
        let dir = scratch::dir("rotation");
        let mut versions = Versions::create(dir.path());
        let name = format!("{transport:?}").to_lowercase();
        let serve = Serve::start(&["--config", versions.config().to_str().unwrap(), "--transport", &name]);
        let to = serve.server.strip_prefix("http://").unwrap().parse().unwrap();
        let callers = Callers::start(to, versions.shown());
        let load = Load::start(to, &versions, seconds);
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < Duration::from_secs(seconds) {
            let turn = tokio::time::Instant::now();
            versions.write_next();
            // What the version before did not allow tells that this one is in use.
            let newest = versions.shown();
            eventually_async(SOON, "the version is in use", async || newest.passes(to).await).await;
            // From here on callers show what this version and the next one allow.
            callers.change_to(newest).await;
            count += 1;
            tokio::time::sleep_until(turn + EVERY).await;
        }
        let calls = callers.stop().await;
        load.has_no_error();
        assert!(count >= 2, "{transport:?}: {count} versions");
        println!("{transport:?}: {calls} calls of callers that change, {count} versions of all files");
        let (code, log) = serve.stop("TERM");
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("TLS files rejected"), "no version is mistaken: {log}");
    }
}
