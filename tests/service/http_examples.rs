//! The HTTP servers of docs/http.md, in Python, Node and Go, as they stand there, in front of a real Weir.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use crate::support::clients::{environment, go_program, node, python, root};
use crate::support::command::Serve;
use crate::support::http::Http;
use crate::support::{Process, SOON, eventually, ports};

const CONFIG: &str = "docs/examples/http_limit.yaml";
const PYTHON: &str = "docs/examples/http_limit.py";
const NODE: &str = "docs/examples/http_limit.js";
/// As it is built there.
const GO: &str = ".cache/http_limit/http_limit";

#[test]
fn the_page_shows_what_runs() {
    let page = std::fs::read_to_string(root().join("docs/http.md")).unwrap();
    for (language, file) in
        [("python", "http_limit.py"), ("js", "http_limit.js"), ("go", "http_limit/main.go")]
    {
        let example = std::fs::read_to_string(root().join("docs/examples").join(file)).unwrap();
        assert!(
            page.contains(&format!("```{language}\n{example}```\n")),
            "docs/http.md shows another {file}"
        );
        assert!(example.contains("`applied: false`"), "{file}");
    }
    // Its advice was once the id of the request, which is the caller's in most frameworks: a way past each limit.
    assert!(page.contains("an id that your server makes") && !page.contains("the request's own id"));
    let config = std::fs::read_to_string(root().join(CONFIG)).unwrap();
    assert!(page.contains(&format!("```yaml\n{config}```\n\n```sh\nweir serve --config {CONFIG}\n```\n")));
    for program in [PYTHON, NODE, GO] {
        assert!(
            page.contains(&format!("{program} 127.0.0.1:8081 8000\n")),
            "nobody is told to run {program}"
        );
    }
}

#[tokio::test]
async fn in_python() {
    let Some(environment) = environment() else { return };
    answers(|| {
        let mut program = python(&environment);
        program.arg(PYTHON);
        program
    })
    .await;
}

#[tokio::test]
async fn in_node() {
    let Some(environment) = environment() else { return };
    answers(|| {
        let mut program = node(&environment);
        program.arg(NODE);
        program
    })
    .await;
}

#[tokio::test]
async fn in_go() {
    if go_program("http_limit").is_none() {
        return;
    }
    answers(|| go_program("http_limit").expect("it is there")).await;
}

/// What a browser gets from the server that `program` starts.
async fn answers(program: impl Fn() -> Command) {
    let weir = Serve::start(&["--config", root().join(CONFIG).to_str().unwrap()]);
    let weir_address = weir.server.strip_prefix("http://").unwrap();
    let (_server, address) = started(program(), weir_address);

    for (user, path, status, reason, remaining) in [
        ("bob", "/a", 200, "hello\n", "1"),
        ("bob", "/b", 200, "hello\n", "0"),
        ("bob", "/a", 429, "Rate limit exceeded. Try again in ", "0"),
        ("carol", "/a", 200, "hello\n", "1"),
        ("carol", "/search?q=tigers", 200, "hello\n", "0"),
        // The query was part of the resource, and callers that varied it were never limited.
        ("carol", "/search?q=lions", 429, "Rate limit exceeded. Try again in ", "0"),
        ("carol", "/closed", 403, "Rate limit exceeded. A cost of 1 is above the limit of 0", "0"),
        ("mallory", "/a", 403, "Access denied", ""),
    ] {
        let response = Http::connect(address).await.get(path, &[("X-User", user)]).await;
        assert_eq!(response.status, status, "{user} {path}: {}", response.body);
        assert!(response.body.starts_with(reason), "{user} {path}: {}", response.body);
        assert_eq!(response.header("X-RateLimit-Remaining"), remaining);
        let is_limited = status == 429;
        assert_eq!(!response.header("Retry-After").is_empty(), is_limited, "{user} {path}");
        if path == "/a" && user != "mallory" {
            assert_eq!(response.header("RateLimit-Policy"), "\"each\";q=2;w=7200");
            assert!(response.header("RateLimit").starts_with(&format!("\"each\";r={remaining};t=")));
        }
    }
    assert_eq!(weir.stop("TERM").0, Some(0));
    let nobody = Http::connect(address).await.get("/a", &[]).await;
    assert_eq!((nobody.status, nobody.body.as_str()), (503, "The rate limit cannot be checked\n"));
}

fn started(mut program: Command, weir: &str) -> (Process, SocketAddr) {
    let port = ports::free();
    program.args([weir, &port.to_string()]).current_dir(root());
    for proxy in ["http_proxy", "https_proxy", "grpc_proxy", "all_proxy"] {
        program.env_remove(proxy).env_remove(proxy.to_uppercase());
    }
    let server = Process::spawn(program).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    eventually(SOON, "the example listens", || std::net::TcpStream::connect(address).is_ok());
    (server, address)
}
