//! The HTTP servers of docs/http.md, in Python and Node, as they stand there, in front of a real Weir; and those of docs/clients
//! in Go and Java, which need no library.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use crate::support::clients::{environment, go_program, is_skipped, node, python, root};
use crate::support::command::Serve;
use crate::support::http::Http;
use crate::support::{Process, SOON, eventually, ports};

const CONFIG: &str = "docs/examples/http_limit.yaml";
/// Of the servers that need no library.
const PROTECT: &str = "docs/examples/protect.yaml";
const PYTHON: &str = "docs/examples/http_limit.py";
const NODE: &str = "docs/examples/http_limit.js";

#[test]
fn the_page_shows_what_runs() {
    let page = std::fs::read_to_string(root().join("docs/http.md")).unwrap();
    for (language, file) in [("python", "http_limit.py"), ("js", "http_limit.js")] {
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
    for program in [PYTHON, NODE] {
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

/// The pages of Go and Java have parts of the programs that are run here, and their configuration.
#[test]
fn the_pages_without_a_library_show_what_runs() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let config = read(PROTECT);
    for (page, kind, program) in [
        ("docs/clients/go.md", "go", "docs/examples/protect/main.go"),
        ("docs/clients/java.md", "java", "docs/examples/Protect.java"),
    ] {
        let text = read(page);
        assert!(text.contains(&format!("```yaml\n{config}```\n")), "{page} has another configuration");
        let shown = text.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap();
        assert!(read(program).contains(shown), "{page} shows another {program}");
        assert!(text.lines().count() <= 100, "{page} is longer than two screens");
    }
}

#[tokio::test]
async fn in_go_without_a_library() {
    let Some(program) = go_program("protect") else { return };
    answers_without_a_library(program).await;
}

#[tokio::test]
async fn in_java_without_a_library() {
    if is_skipped("SKIP_CLIENTS") || is_skipped("SKIP_JAVA") {
        return;
    }
    let mut program = Process::command("java");
    program.args(["-XX:TieredStopAtLevel=1", "-Xmx128m", "docs/examples/Protect.java"]);
    answers_without_a_library(program).await;
}

/// Two calls pass, the third does not, another user's does; and all do while Weir is away.
async fn answers_without_a_library(program: Command) {
    let weir = Serve::start(&["--config", root().join(PROTECT).to_str().unwrap(), "--http", "127.0.0.1:0"]);
    let http = weir.announced.split("  http    ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let http = http.expect(&weir.announced).trim_end_matches('/');
    let (_server, address) = started(program, http);
    // The first call takes long where much is compiled at the first use. Who is not limited in time has no headers.
    let mut warm = 0;
    while Http::connect(address)
        .await
        .get("/", &[("X-User", &format!("warm-{warm}"))])
        .await
        .header("RateLimit")
        .is_empty()
    {
        warm += 1;
        assert!(warm < 10, "Weir is never asked in time");
    }
    for (user, status, body) in [
        ("bob", 200, "hello\n"),
        ("bob", 200, "hello\n"),
        ("bob", 429, "Rate limit exceeded. Try again in "),
        ("carol", 200, "hello\n"),
        ("", 200, "hello\n"),
    ] {
        let headers: &[(&str, &str)] = if user.is_empty() { &[] } else { &[("X-User", user)] };
        let response = Http::connect(address).await.get("/", headers).await;
        assert_eq!(response.status, status, "{user}: {}", response.body);
        assert!(response.body.starts_with(body), "{user}: {}", response.body);
        assert_eq!(!response.header("Retry-After").is_empty(), status == 429, "{user}");
        assert!(response.header("RateLimit").starts_with("\"each\";r="), "{user}");
    }
    assert_eq!(weir.stop("TERM").0, Some(0));
    let unlimited = Http::connect(address).await.get("/", &[("X-User", "bob")]).await;
    assert_eq!((unlimited.status, unlimited.body.as_str()), (200, "hello\n"));
}

/// Asserts the answers that a browser gets from the server that `program` starts.
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
