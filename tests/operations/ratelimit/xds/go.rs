//! A control plane on go-control-plane, as Envoy Gateway and Envoy AI Gateway have it, over mTLS 1.3.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::{spawn, start};
use crate::support::certificates::own_authority;
use crate::support::clients::{go_program, root};
use crate::support::{SOON, eventually, eventually_some, scratch};

const NODE: &str = "envoy-ratelimit";

/// The server in Go, and the lines that it has printed.
struct GoAds {
    child: Child,
    input: ChildStdin,
    lines: Arc<Mutex<Vec<String>>>,
}

impl GoAds {
    /// Starts it with the certificates of Envoy Gateway; `None` where Go is skipped.
    fn start(address: &str) -> Option<Self> {
        Self::start_with(address, ["gateway-ca.pem", "gateway-server.pem", "gateway-server.key"].map(made))
    }

    /// Starts it with the authorities of its clients, its certificate and the key.
    fn start_with(address: &str, files: [PathBuf; 3]) -> Option<Self> {
        let mut command = go_program("ads")?;
        command.args([address, NODE]).args(files);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // It ends with its standard input, so it does not outlive the test.
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let printed = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                printed.lock().push(line);
            }
        });
        Some(Self { child, input, lines })
    }

    fn address(&self) -> String {
        let line =
            || self.lines.lock().iter().find_map(|line| line.strip_prefix("listening ").map(str::to_owned));
        eventually_some(SOON, "it listens", line)
    }

    fn set(&mut self, version: &str, domains: &[String]) {
        writeln!(self.input, "set\t{version}\t{}", domains.join("\t")).unwrap();
    }

    fn count(&self, start: &str) -> usize {
        self.lines.lock().iter().filter(|line| line.starts_with(start)).count()
    }

    fn waits_for(&self, start: &str) {
        eventually(SOON, start, || self.count(start) > 0);
    }
}

/// A file of those that Envoy Gateway makes.
fn made(name: &str) -> PathBuf {
    root().join("tests/certificates").join(name)
}

impl Drop for GoAds {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn domain(name: &str, requests: u32) -> String {
    format!(
        r#"{{"name":"{name}","domain":"{name}","descriptors":[{{"key":"k","value":"v","rateLimit":{{"unit":"DAY","requestsPerUnit":{requests}}}}}]}}"#
    )
}

#[test]
fn it_takes_sets_refuses_a_bad_one_and_survives_a_restart() {
    let Some(mut ads) = GoAds::start("127.0.0.1:0") else { return };
    let address = ads.address();
    let folder = scratch::dir("xds-go-");
    let files = ["gateway-ca.pem", "gateway-ratelimit.pem", "gateway-ratelimit.key"].map(made);
    super::tls::copy(folder.path(), [&files[0], &files[1], &files[2]]);
    let variables = super::tls::variables(folder.path());
    let mut variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
    variables.push(("CONFIG_GRPC_XDS_NODE_ID", NODE));
    let started = start(&address, &variables);
    ads.waits_for("open \"\"");
    ads.set("1", &[domain("d", 2), domain("b", 1)]);
    ads.waits_for("ack \"1\"");
    assert_eq!(
        [(); 3].map(|()| started.json("d", &[("k", "v")])),
        ["OK 2/DAY", "OK 2/DAY", "OVER_LIMIT 2/DAY"]
    );
    assert_eq!(started.json("b", &[("k", "v")]), "OK 1/DAY");

    // A refusal is answered at once with the same set.
    let twice =
        domain("b", 5).replace("\"descriptors\":[", "\"descriptors\":[{\"key\":\"k\",\"value\":\"v\"},");
    ads.set("2", &[domain("d", 9), twice]);
    eventually(SOON, "it is refused twice", || ads.count("nack") >= 2);
    assert!(
        ads.lines
            .lock()
            .iter()
            .any(|line| line == "nack \"1\" b: duplicate descriptor composite key 'b.k_v'")
    );
    assert_eq!(started.json("d", &[("k", "v")]), "OK 9/DAY", "the good domain changes");
    assert_eq!(started.json("b", &[("k", "v")]), "OVER_LIMIT 1/DAY", "the bad one goes on");
    let corrected = Instant::now();
    ads.set("3", &[domain("d", 9), domain("b", 4)]);
    ads.waits_for("ack \"3\"");
    println!("a correction is accepted {:?} after it was sent", corrected.elapsed());
    assert_eq!(ads.count("nack"), 2, "it did not wait for a refusal: {:?}", ads.lines.lock());
    assert_eq!(started.json("b", &[("k", "v")]), "OK 4/DAY");

    // No resources, and a server that begins with version 1 again.
    ads.set("4", &[]);
    ads.waits_for("ack \"4\"");
    assert_eq!(started.json("d", &[("k", "v")]), "OK without limit");
    drop(ads);
    let mut ads = GoAds::start(&address).unwrap();
    ads.set("1", &[domain("d", 7)]);
    ads.waits_for("ack \"1\"");
    assert_eq!(started.json("d", &[("k", "v")]), "OK 7/DAY");
    let (code, log) = started.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// What `openssl req -x509` makes: the certificate of the server is its own authority. Another one with the same name is
/// refused, and so is its own for another name.
#[test]
fn a_server_whose_certificate_is_its_own_authority_is_asked() {
    let (_one, own) = own_authority(&["envoy-gateway"], 2096);
    let (_two, same_name) = own_authority(&["envoy-gateway"], 2096);
    let (_three, other_name) = own_authority(&["another-name"], 2096);
    for (served, trusted, variable) in [
        (&own, &own, None),
        (&same_name, &own, Some("CONFIG_GRPC_XDS_SERVER_TLS_CACERT: invalid peer certificate")),
        (&other_name, &other_name, Some("CONFIG_GRPC_XDS_SERVER_TLS_SAN: invalid peer certificate")),
    ] {
        let files = [made("gateway-ca.pem"), served.cert.clone(), served.key.clone()];
        let Some(mut ads) = GoAds::start_with("127.0.0.1:0", files) else { return };
        let folder = scratch::dir("xds-own-");
        let client = ["gateway-ratelimit.pem", "gateway-ratelimit.key"].map(made);
        super::tls::copy(folder.path(), [&trusted.cert, &client[0], &client[1]]);
        let variables = super::tls::variables(folder.path());
        let mut variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, &**value)).collect();
        variables.push(("CONFIG_GRPC_XDS_NODE_ID", NODE));
        ads.set("1", &[domain("d", 2)]);
        let Some(variable) = variable else {
            let started = start(&ads.address(), &variables);
            ads.waits_for("ack \"1\"");
            assert_eq!(started.json("d", &[("k", "v")]), "OK 2/DAY");
            continue;
        };
        // Without a configuration, one page says what it waits for.
        variables.extend([("FORCE_START_WITHOUT_INITIAL_CONFIG", "false"), ("USE_PROMETHEUS", "true")]);
        let waiting = spawn(&ads.address(), &variables);
        let page = || waiting.get(9090, "/").map(|(_, page)| page).unwrap_or_default();
        eventually(SOON, variable, || page().contains(variable));
        assert_eq!((ads.count("open"), ads.count("ack")), (0, 0), "{:?}", ads.lines.lock());
    }
}
