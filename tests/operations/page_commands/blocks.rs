//! The shell blocks of the pages, and what becomes of each.

/// Shell blocks of a page.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) page: &'static str,
    /// The begin of the block; empty for each of the page that no entry before names.
    pub(super) begins: &'static str,
    /// Variables that leave a language out, if the block needs one.
    pub(super) needs: &'static [&'static str],
    pub(super) how: How,
}

#[derive(Debug)]
pub(super) enum How {
    /// Run by `blocks_run_as_they_are_written`, between these lines.
    Run { before: &'static str, after: &'static str },
    /// Run by this test.
    Test(&'static str),
    /// Not run, because of this.
    Not(#[expect(dead_code, reason = "for people who read the list")] &'static str),
}

const fn run(page: &'static str, begins: &'static str, before: &'static str) -> Block {
    Block { page, begins, needs: &[], how: How::Run { before, after: "" } }
}

const fn test(page: &'static str, begins: &'static str, file: &'static str) -> Block {
    Block { page, begins, needs: &[], how: How::Test(file) }
}

const fn not(page: &'static str, begins: &'static str, reason: &'static str) -> Block {
    Block { page, begins, needs: &[], how: How::Not(reason) }
}

const SERVE: &str = "weir serve & ready";
const CONTROL: &str = "
echo '{ server: { control: true }, control: { cache_file: entries }, strategies: { api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 10/1s } }] } },
  resources: [{ match: \"api/*\", strategy: api }] }' > weir.yaml
weir serve --config weir.yaml & ready";
const INLINE: &str = "
weir init
echo 'server: { inline_limits: true }' > inline.yaml
weir serve --config weir.yaml --config inline.yaml & ready";
const ENVOY: &str = "weir serve --envoy-config deploy/envoy/ratelimit & ready";
const REDIS: &str = "
redis-server --save '' > redis.log &
until redis-cli ping > ping.log 2>&1; do sleep 0.1; done
redis-cli set 'weir:{usage}:ts:left' 1";
const LIMITED: &str =
    r#"test "$(curl -s -o /dev/null -w '%{http_code}' -H 'X-User: bob' http://127.0.0.1:8000/)" = 429"#;

const PACKAGE: &str =
    "the package is not published yet; the suite of the client runs the program of the page";
const PYTHON_PAGES: &str = "clients/python/tests/test_pages.py";
const CHART: &str = "tests/operations/deploy/chart/commands.rs";
const DOCKER: &str =
    "it needs Docker, and for some a cluster; `make test-release` builds the same image without";
const GRPCURL: &str = "grpcurl is not installed by the tests";

/// The first entry that fits counts.
pub(super) const BLOCKS: &[Block] = &[
    not("README.md", "cargo run --release", "it builds for minutes, and runs all tests"),
    not(
        "docs/stores.md",
        "cargo run",
        "it builds for minutes; `semantics own_store` runs the store of the example",
    ),
    run("README.md", "curl", SERVE),
    run("README.md", "./target/release/weir serve --envoy-config", ""),
    run("docs/algorithms.md", "weir simulate", ""),
    run("docs/api.md", "weir allow --inline", INLINE),
    run("docs/clients.md", "weir &", ""),
    test("docs/clients.md", "python3 -m venv", "tests/service/clients.rs"),
    Block {
        page: "docs/clients/go.md",
        begins: "weir serve",
        needs: &["SKIP_CLIENTS", "SKIP_GO"],
        how: How::Run { before: "export GOCACHE=$PWD/go GOFLAGS=-mod=mod GOENV=off", after: LIMITED },
    },
    Block {
        page: "docs/clients/java.md",
        begins: "weir serve",
        needs: &["SKIP_CLIENTS", "SKIP_JAVA"],
        how: How::Run { before: "", after: LIMITED },
    },
    not("docs/clients/django.md", "pip install", PACKAGE),
    test("docs/clients/django.md", "", PYTHON_PAGES),
    not("docs/clients/edge.md", "npm install", PACKAGE),
    not("docs/clients/express.md", "npm install", PACKAGE),
    not("docs/clients/fastapi.md", "pip install", PACKAGE),
    test("docs/clients/fastapi.md", "", PYTHON_PAGES),
    not("docs/clients/fastify.md", "npm install", PACKAGE),
    not("docs/clients/flask.md", "pip install", PACKAGE),
    not("docs/clients/litellm.md", "pip install", PACKAGE),
    test("docs/clients/flask.md", "", PYTHON_PAGES),
    not("docs/clients/hono.md", "npm install", PACKAGE),
    run("docs/configuration.md", "weir init", ""),
    run("docs/control.md", "", CONTROL),
    not("docs/deploy.md", "docker", DOCKER),
    test("docs/deploy.md", "weir check mine", "tests/operations/deploy.rs"),
    Block {
        page: "docs/envoy.md",
        begins: "cargo build",
        needs: &["SKIP_ENVOY"],
        how: How::Run {
            before: "cargo() { :; }",
            after: r#"curl -si http://127.0.0.1:10000/hello | grep "^HTTP/1.1 429""#,
        },
    },
    run("docs/envoy.md", "./target/release/weir explain", ENVOY),
    not("docs/envoy.md", "", DOCKER),
    test("docs/helm.md", "", CHART),
    run("docs/http.md", "curl http://127.0.0.1:8082", SERVE),
    run("docs/http.md", "weir allow", SERVE),
    test("docs/http.md", "", "tests/service/http_examples.rs"),
    test("docs/install.md", "make release", "scripts/test-release.sh"),
    not(
        "docs/install.md",
        "sudo apt install",
        "it needs systemd; `make test-release` installs the package in a folder, and starts it",
    ),
    not("docs/install.md", "cosign", "nothing is published yet that could be verified"),
    not(
        "docs/performance.md",
        "weir load",
        "it measures a busy service for ten seconds; tests/operations/load.rs runs short ones",
    ),
    not(
        "docs/queues.md",
        "weir queue",
        "its ids are of items of the reader; tests/operations/queue_cli.rs has ids of its own",
    ),
    test("docs/recipes.md", "", "tests/semantics/documented/recipes.rs"),
    run("docs/simulate.md", "for calls", ""),
    not(
        "docs/simulate.md",
        "weir serve",
        "it calls for minutes on a real clock; tests/operations/load.rs runs a short one",
    ),
    not("docs/usage.md", "grpcurl", GRPCURL),
    run("docs/usage.md", "weir", SERVE),
    Block {
        page: "docs/usage.md",
        begins: "redis-cli",
        needs: &[],
        how: How::Run { before: REDIS, after: r#"test "$(redis-cli exists 'weir:{usage}:ts:left')" = 0"# },
    },
];
