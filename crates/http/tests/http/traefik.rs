//! The recipe for Traefik, whose program cannot be had here: what its forwardAuth sends, as its source says.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use weir_testing::SOON;
use weir_testing::yaml::document;

use super::support::{TestAnswer, TestNode};

const RECIPE: &str = include_str!("../../../../deploy/http/traefik.yaml");
const WEIR: &str = include_str!("../../../../deploy/http/weir.yaml");

/// A request of a client to Traefik.
struct ClientRequest {
    address: &'static str,
    headers: Vec<(&'static str, String)>,
}

/// The answer that the client of Traefik gets.
#[derive(Debug, PartialEq)]
enum ForwardedAuth {
    /// The request is passed on to the site.
    Passed,
    /// Status, headers and body of the answer.
    Answered(u16, Vec<(String, String)>, String),
}

/// A connection of Traefik to Weir, which it keeps.
struct Traefik {
    settings: Value,
    stream: TcpStream,
}

impl Traefik {
    /// Reads the recipe, without some of its lines.
    fn start(node: &TestNode, without: &[&str]) -> Self {
        let mut settings = document(RECIPE).unwrap()["http"]["middlewares"]["weir"]["forwardAuth"].take();
        for key in without {
            settings.as_object_mut().unwrap().remove(*key).unwrap();
        }
        let stream = TcpStream::connect(node.http).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Self { settings, stream }
    }

    /// A GET of the address of the recipe: those headers of the client that the recipe names, or all but those of its
    /// connection, and Traefik's own in the place of what the client has sent.
    fn request(&self, client: &ClientRequest) -> String {
        const HOP_BY_HOP: [&str; 2] = ["connection", "upgrade"];
        assert_eq!(self.settings["trustForwardHeader"], false);
        let address = self.settings["address"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let own = [
            ("X-Forwarded-For", client.address),
            ("X-Forwarded-Method", "POST"),
            ("X-Forwarded-Proto", "http"),
            ("X-Forwarded-Host", "site.example"),
            ("X-Forwarded-Uri", "/page?q=1"),
            ("User-Agent", "Go-http-client/1.1"),
            ("Accept-Encoding", "gzip"),
        ];
        let named = self.settings["authRequestHeaders"].as_array();
        let is_sent = |name: &str| match named {
            Some(named) => named.iter().any(|one| one.as_str().unwrap().eq_ignore_ascii_case(name)),
            None => !HOP_BY_HOP.contains(&name.to_lowercase().as_str()),
        };
        let is_own = |name: &str| own.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let of_client = client.headers.iter().filter(|(name, _)| is_sent(name) && !is_own(name));
        let of_client = of_client.map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
        let own = own.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
        format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n{of_client}{own}\r\n")
    }

    fn ask(&mut self, client: &ClientRequest) -> ForwardedAuth {
        self.stream.write_all(self.request(client).as_bytes()).unwrap();
        let (mut bytes, mut byte) = (Vec::new(), [0]);
        while !bytes.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        let TestAnswer { status, headers, .. } = TestAnswer::parse(&String::from_utf8(bytes).unwrap());
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
        self.stream.read_exact(&mut body).unwrap();
        // A body above the bound is 401 for the client.
        assert!(body.len() <= self.settings["maxResponseBodySize"].as_u64().unwrap() as usize);
        match status {
            200..=299 => ForwardedAuth::Passed,
            _ => ForwardedAuth::Answered(status, headers, String::from_utf8(body).unwrap()),
        }
    }
}

fn node() -> TestNode {
    TestNode::start(&WEIR.replace("127.0.0.1:8082", "127.0.0.1:0").replace("burst: 20", "burst: 3"))
}

/// Returns headers with which a client pretends to be another one.
fn forged() -> Vec<(&'static str, String)> {
    [
        ("X-Forwarded-For", "6.6.6.6"),
        ("X-Forwarded-Uri", "/forged"),
        ("X-Original-URI", "/forged"),
        ("Authorization", "Bearer of-the-client"),
        ("X-Forwarded-Client-Cert", "URI=spiffe://prod/forged"),
        ("X-Request-Id", "7"),
        ("Connection", "close"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

#[test]
fn the_recipe_counts_by_the_address_that_traefik_sees() {
    let node = node();
    let mut traefik = Traefik::start(&node, &[]);
    let large = vec![("Large", "x".repeat(28 << 10))];
    for headers in [Vec::new(), forged(), large] {
        assert_eq!(traefik.ask(&ClientRequest { address: "1.2.3.4", headers }), ForwardedAuth::Passed);
    }
    let denied = traefik.ask(&ClientRequest { address: "1.2.3.4", headers: forged() });
    let ForwardedAuth::Answered(status, headers, body) = denied else { panic!("{denied:?}") };
    let header = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!((status, header("retry-after"), header("weir-decision")), (429, Some("1"), Some("limited")));
    assert_eq!((header("location"), body.lines().count()), (None, 1), "{body}");
    let other = ClientRequest { address: "1.2.3.5", headers: forged() };
    assert_eq!(traefik.ask(&other), ForwardedAuth::Passed);
}

/// Without the line of the recipe, headers of the client reach Weir: large ones are refused, and open nothing.
#[test]
fn headers_of_clients_open_nothing_without_the_recipe_either() {
    let node = node();
    let large = vec![("Large", "x".repeat(28 << 10))];
    let refused = Traefik::start(&node, &["authRequestHeaders"])
        .ask(&ClientRequest { address: "1.2.3.4", headers: large });
    assert!(matches!(refused, ForwardedAuth::Answered(431, ..)), "{refused:?}");
    let mut traefik = Traefik::start(&node, &["authRequestHeaders"]);
    for _ in 0..3 {
        let asked = traefik.ask(&ClientRequest { address: "1.2.3.4", headers: forged() });
        assert_eq!(asked, ForwardedAuth::Passed);
    }
    let denied = traefik.ask(&ClientRequest { address: "1.2.3.4", headers: forged() });
    assert!(matches!(denied, ForwardedAuth::Answered(429, ..)), "{denied:?}");
}
