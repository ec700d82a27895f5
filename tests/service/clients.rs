//! Clients in other languages, on the usual gRPC libraries, against the real process.

mod identity;
mod long_reconnect;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::support::clients::{environment, go, java, node, python, root, run};
use crate::support::command::{Serve, weir};
use crate::support::{Process, SOON, eventually_some, scratch};

fn serve() -> Serve {
    Serve::start(&["--config", root().join("tests/clients/weir.yaml").to_str().unwrap()])
}

fn address(serve: &Serve) -> &str {
    serve.server.strip_prefix("http://").unwrap()
}

/// People can generate code from the protos without changing them.
#[test]
fn the_protos_say_where_generated_code_goes() {
    let files = FileDescriptorSet::decode(weir_proto::DESCRIPTORS).unwrap().file;
    let ours: Vec<_> = files.into_iter().filter(|file| file.package() == "weir.v1").collect();
    assert!(ours.len() > 1);
    for file in ours {
        let options = file.options.clone().unwrap_or_default();
        assert_eq!(
            options.go_package,
            None,
            "{}: it belongs into the module of who generates code",
            file.name()
        );
        assert_eq!(options.java_package(), "weir.v1");
        assert!(options.java_multiple_files());
        assert_eq!(options.csharp_namespace(), "Weir.V1");
    }
}

#[test]
fn grpcio_from_python() {
    let Some(environment) = environment() else { return };
    let serve = serve();
    let mut client = python(&environment);
    client.args(["tests/clients/client.py", address(&serve)]);
    assert!(run(client).stdout.ends_with(b"all ok\n"));
}

#[test]
fn grpc_js_from_node() {
    let Some(environment) = environment() else { return };
    let serve = serve();
    let mut client = node(&environment);
    client.args(["tests/clients/client.js", address(&serve), "proto"]);
    assert!(run(client).stdout.ends_with(b"all ok\n"));
}

#[test]
fn grpc_go() {
    let Some(mut client) = go() else { return };
    let serve = serve();
    client.arg(address(&serve));
    assert!(run(client).stdout.ends_with(b"all ok\n"));
}

/// Calls whose deadline of 1 ms passes, and cancelled calls, used to end the connection with ENHANCE_YOUR_CALM: netty sends
/// their DATA after the RST_STREAM.
#[test]
fn grpc_java_on_netty() {
    let Some(mut client) = java() else { return };
    let serve = serve();
    client.arg(address(&serve));
    let said = String::from_utf8(run(client).stdout).unwrap();
    println!("{said}");
    assert!(said.ends_with("all ok\n"));
}

/// No call is lost with a connection that reaches its age, nor when the server stops.
#[test]
fn grpc_go_while_connections_end() {
    let Some(mut client) = go() else { return };
    let folder = scratch::dir("age-");
    let same = std::fs::read_to_string(root().join("tests/clients/weir.yaml")).unwrap();
    let config = scratch::file(
        folder.path(),
        "weir.yaml",
        same.replace("limits: { max_", "limits: { max_connection_age: 1s, max_"),
    );
    let serve = Serve::start(&["--config", config.to_str().unwrap()]);

    client.args([address(&serve), "until-it-ends"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = Process::spawn(client).unwrap();
    let mut lines = BufReader::new(client.child().stdout.take().unwrap()).lines().map_while(Result::ok);
    let stopped = lines.any(|line| line == "stop the server").then(|| serve.stop("TERM").0);
    let rest: Vec<String> = lines.collect();
    let status = eventually_some(SOON, "the client ends", || client.exited());
    let mut errors = String::new();
    client.child().stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(status.success(), "{rest:?} {errors}");
    assert_eq!(rest.last().map(String::as_str), Some("all ok"));
    assert_eq!(stopped, Some(Some(0)));
}

/// The program that the page shows is the one that runs.
#[test]
fn the_example_of_the_page() {
    let example = std::fs::read_to_string(root().join("docs/examples/should_allow.py")).unwrap();
    let page = std::fs::read_to_string(root().join("docs/clients.md")).unwrap();
    assert!(page.contains(&format!("```python\n{example}```\n")), "docs/clients.md shows another program");

    let Some(environment) = environment() else { return };
    let serve = Serve::start(&[]);
    let ask = || example_at(&environment, "docs/examples/should_allow.py", &serve);
    assert_eq!(ask(), "go ahead, 0 left\n");
    let denied = ask();
    assert!(denied.starts_with("Rate limit exceeded. Try again in "), "{denied}");
}

/// Runs a program of docs/examples as it stands, with its one address leading to our server. Returns its output.
fn example_at(environment: &std::path::Path, example: &str, serve: &Serve) -> String {
    const ELSEWHERE: &str = "import grpc, runpy, sys\n\
        example, address = sys.argv[1:]\n\
        sys.argv = [example]\n\
        channel = grpc.insecure_channel\n\
        grpc.insecure_channel = lambda default: channel({'127.0.0.1:8081': address}[default])\n\
        runpy.run_path(example, run_name='__main__')\n";
    let mut program = python(environment);
    program.args(["-c", ELSEWHERE, example, address(serve)]);
    String::from_utf8(run(program).stdout).unwrap()
}

/// The helper for leases works under one, gives it back, and is refused while others hold all permits.
#[cfg(feature = "leases")]
#[test]
fn the_lease_of_the_page_from_python() {
    let Some(environment) = environment() else { return };
    let config = root().join("docs/examples/leases.yaml");
    let serve = Serve::start(&["--config", config.to_str().unwrap()]);
    let export = || example_at(&environment, "docs/examples/lease.py", &serve);
    // Each gives its permit back, so that there are enough for more exports than permits.
    for _ in 0..3 {
        assert_eq!(export(), "export part 0\nexport part 1\nexport part 2\n");
    }
    for id in ["a", "b"] {
        let taken = weir(&["lease", "acquire", "exports", "acme", "--id", id, "--server", address(&serve)]);
        assert!(taken.status.success(), "{taken:?}");
    }
    assert_eq!(export(), "All 2 permits are in use. Try again when one is free\n");
    // It learns that its lease is lost from the next renewal.
    const LOSE: &str = "import runpy, grpc, sys\n\
        from google.protobuf.duration_pb2 import Duration\n\
        from weir.v1 import leases_pb2 as weir, leases_pb2_grpc\n\
        Lease = runpy.run_path('docs/examples/lease.py')['Lease']\n\
        stub = leases_pb2_grpc.ConcurrencyServiceStub(grpc.insecure_channel(sys.argv[1]))\n\
        ttl = Duration(seconds=3)\n\
        with Lease(stub, resource='exports', consumer='zoo', ttl=ttl) as lease:\n\
        \x20   stub.Release(weir.ReleaseRequest(**lease.who))\n\
        \x20   print(lease.lost.wait(60))\n";
    let mut program = python(&environment);
    program.args(["-c", LOSE, address(&serve)]);
    assert_eq!(String::from_utf8(run(program).stdout).unwrap(), "True\n");
}

/// The programs of docs/queues.md, as they stand: orders go into the bucket, and a worker takes them out.
#[cfg(feature = "queues")]
#[test]
fn the_queue_of_the_page_from_python() {
    let page = std::fs::read_to_string(root().join("docs/queues.md")).unwrap();
    let examples = [
        ("queue_put.py", "python"),
        ("queue_worker.py", "python"),
        ("queue_worker.rs", "rust"),
        ("queues.yaml", "yaml"),
    ];
    for (example, language) in examples {
        let text = std::fs::read_to_string(root().join("docs/examples").join(example)).unwrap();
        assert!(
            page.contains(&format!("```{language}\n{text}```\n")),
            "docs/queues.md shows another {example}"
        );
    }
    let Some(environment) = environment() else { return };
    let config = root().join("docs/examples/queues.yaml");
    let serve = Serve::start(&["--config", config.to_str().unwrap()]);
    let put = example_at(&environment, "docs/examples/queue_put.py", &serve);
    assert_eq!(put, "order 1 accepted\norder 2 accepted\nwait 3 accepted\n");
    let worked = example_at(&environment, "docs/examples/queue_worker.py", &serve);
    assert_eq!(worked, "order 1, delivery 1\norder 2, delivery 1\nwait 3, delivery 2\n");
    let stats = weir(&["queue", "stats", "orders", "--outcomes", "3", "--server", address(&serve)]);
    let stats = String::from_utf8(stats.stdout).unwrap();
    assert!(stats.starts_with("0 of 100 places taken") && stats.contains("shipped wait 3"), "{stats}");
}

/// Runs `scripts/install-clients.sh` in a tree where nothing is installed.
fn installer(argument: &str, variable: (&str, &str)) -> Output {
    let tree = scratch::dir("installer-");
    for file in ["scripts/install-clients.sh", "tests/clients/requirements.txt"] {
        let to = tree.path().join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root().join(file), to).unwrap();
    }
    // Not by itself: a process that another test starts may hold what was just written open.
    let mut script = Command::new("sh");
    script
        .arg(tree.path().join("scripts/install-clients.sh"))
        .env_remove("SKIP_CLIENTS")
        .env_remove("SKIP_GO")
        .env_remove("SKIP_JAVA")
        .env(variable.0, variable.1)
        .arg(argument)
        .output()
        .unwrap()
}

#[test]
fn missing_clients_fail_and_skipping_them_is_printed() {
    let missing = installer("--check", ("LC_ALL", "C"));
    assert!(!missing.status.success());
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("python in .cache/clients is missing or out of date"), "{said}");
    assert!(said.contains("make test") && said.contains("SKIP_CLIENTS=1"), "{said}");

    for variable in ["SKIP_GO", "SKIP_JAVA"] {
        let without = installer("--check", (variable, "1"));
        let said = String::from_utf8_lossy(&without.stderr).into_owned();
        assert!(said.contains(&format!("{variable}=1: Weir is NOT tested")), "{said}");
    }

    let skipped = installer("--check", ("SKIP_CLIENTS", "1"));
    assert!(skipped.status.success());
    let said = String::from_utf8_lossy(&skipped.stderr).into_owned();
    assert!(said.contains("SKIP_CLIENTS=1") && said.contains("NOT tested"), "{said}");
}
