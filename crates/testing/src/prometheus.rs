//! A real Prometheus that scrapes one target.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::clients::is_skipped;
use crate::{Process, SOON, eventually_some, ports, scratch};

/// A Prometheus. It dies on drop.
pub struct Prometheus {
    address: SocketAddr,
    _process: Process,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// One that scrapes `/metrics` of this target five times a second, and gives its series a label. `None` only where
    /// SKIP_PROMETHEUS=1 asks for it.
    pub fn scraping(target: SocketAddr, (label, value): (&str, &str)) -> Option<Self> {
        Self::start(
            &format!(
                "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms }}\nscrape_configs:\n  - job_name: weir\n    \
                 static_configs: [{{ targets: [\"{target}\"], labels: {{ {label}: {value} }} }}]\n"
            ),
            None,
        )
    }

    /// Number of alerts that a Prometheus takes of a file of rules. `None` only where SKIP_PROMETHEUS=1 asks for it.
    pub fn check_rules(rules: &str) -> Option<usize> {
        let prometheus = Self::start("rule_files: [rules.yml]\n", Some(rules))?;
        let answer = eventually_some(SOON, "Prometheus has read its rules", || {
            serde_json::from_str::<Value>(&prometheus.get("/api/v1/rules")?).ok()
        });
        Some(
            answer["data"]["groups"]
                .as_array()?
                .iter()
                .filter_map(|group| Some(group["rules"].as_array()?.len()))
                .sum(),
        )
    }

    /// Addresses that a Prometheus with this configuration scrapes, sorted. `None` only where SKIP_PROMETHEUS=1 asks for it.
    pub fn check_targets(configuration: &str) -> Option<Vec<String>> {
        let prometheus = Self::start(configuration, None)?;
        let targets = eventually_some(SOON, "Prometheus has its targets", || {
            let answer = serde_json::from_str::<Value>(&prometheus.get("/api/v1/targets")?).ok()?;
            let targets = answer["data"]["activeTargets"].as_array()?.clone();
            (!targets.is_empty()).then_some(targets)
        });
        let address = |target: &Value| target["discoveredLabels"]["__address__"].as_str().map(str::to_owned);
        let mut addresses: Vec<String> = targets.iter().filter_map(address).collect();
        addresses.sort();
        Some(addresses)
    }

    fn start(text: &str, rules: Option<&str>) -> Option<Self> {
        if is_skipped("SKIP_PROMETHEUS") {
            return None;
        }
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/prometheus/prometheus");
        assert!(
            program.is_file(),
            "Prometheus is not there: run `make test`, or scripts/install-prometheus.sh, or go without it with SKIP_PROMETHEUS=1"
        );
        let folder = scratch::dir("prometheus-");
        let config = folder.path().join("prometheus.yml");
        if let Some(rules) = rules {
            std::fs::write(folder.path().join("rules.yml"), rules).unwrap();
        }
        std::fs::write(&config, text).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let mut command = Process::command(program.to_str().unwrap());
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}")).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).unwrap();
        Some(Self { address, _process: process, _folder: folder })
    }

    /// The values that a query has now; none as long as nothing was scraped.
    pub fn query(&self, expression: &str) -> Vec<f64> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let Some(body) = self.get(&format!("/api/v1/query?query={encoded}")) else { return Vec::new() };
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        let found = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        found.iter().map(|one| one["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }

    /// `None` while it does not listen yet.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(SOON)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nhost: prometheus\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }
}
