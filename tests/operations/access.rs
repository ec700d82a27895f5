//! Identity and rights as operators meet them: recipes, commands, mistakes, warnings, and secrets that nothing shows.

mod browsers;
#[cfg(feature = "control")]
mod reloaded;
mod secrets;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use weir_config::{Config, RIGHTS, RuleList};
use weir_testing::SOON;

use crate::support::clients::root;
use crate::support::command::{Serve, text, weir};
use crate::support::scratch;

const STRATEGIES: &str = "
strategies: { a: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 3 } }] } }
resources: [{ match: 'api/*', strategy: a }]
";

fn parse(text: &str) -> Result<Config, String> {
    let text = format!("{text}{STRATEGIES}");
    Config::parse(&text, "weir.yaml", &weir::features::overrides()).map_err(|errors| errors.to_string())
}

#[test]
fn each_recipe_is_a_configuration() {
    let mut recipes = 0;
    for entry in std::fs::read_dir(root().join("docs/examples/security")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let config = Config::load(&path, &weir::features::overrides());
            let config = config.unwrap_or_else(|errors| panic!("{errors}"));
            assert!(config.has_identity() && config.exposure().is_none(), "{path:?}");
            recipes += 1;
        }
    }
    assert_eq!(recipes, 3);
}

#[test]
fn the_page_has_the_table_of_rights() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    for row in &RIGHTS {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{}` |", row.name)));
        let line = line.unwrap_or_else(|| panic!("{} has no row", row.name));
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let methods = weir::features::methods(row.right);
        let methods = methods.iter().map(|method| method.rsplit('/').next().unwrap());
        let methods = methods.collect::<Vec<_>>().join(", ");
        let about =
            if methods.is_empty() { row.about.to_owned() } else { format!("{methods}: {}", row.about) };
        let lists: Vec<String> = row.lists.iter().map(|list| format!("`{}`", list.key())).collect();
        let lists = if lists.is_empty() { "nothing".to_owned() } else { lists.join(", ") };
        assert_eq!((cells[2], cells[3]), (&*about, &*lists), "{}", row.name);
        let rows = page.lines().filter(|line| line.starts_with(&format!("| `{}` |", row.name))).count();
        assert_eq!(rows, 2, "{}: what it allows, and what a caller may cost others with it", row.name);
    }
}

#[test]
fn each_pair_of_right_and_list_fits_or_is_a_mistake() {
    for row in &RIGHTS {
        for list in RuleList::ALL {
            let rule =
                format!("authorize: [{{ callers: [token:x], may: [{}], {}: [a] }}]", row.name, list.key());
            match parse(&rule) {
                Ok(_) => assert!(row.lists.contains(&list), "{rule}"),
                Err(error) => {
                    assert!(!row.lists.contains(&list), "{rule}: {error}");
                    assert!(error.contains("write a second rule"), "{error}");
                }
            }
        }
        let free = format!("authorize: [{{ callers: [token:x], may: [{}] }}]", row.name);
        parse(&free).unwrap_or_else(|error| panic!("{error}"));
    }
    let both = "authorize: [{ callers: [token:x], may: [envoy, refund], envoy_domains: [d] }]";
    parse(both).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn all_mistakes_are_told_in_one_run_with_their_places() {
    let dir = scratch::dir("access mistakes");
    std::fs::write(dir.path().join("tokens"), "Shop abc\nshop abc\n").unwrap();
    std::fs::write(dir.path().join("jwks"), "{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}").unwrap();
    let text = format!(
        "server:
  admin_open: [secrets]
  admin_hosts: ['a b']
  identity:
    tokens_file: tokens
    jwt:
      - {{ jwks_file: jwks, issuer: a, audience: weir, algorithms: [HS256] }}
      - {{ jwks_file: nowhere, issuer: 'a:b', audience: weir, algorithms: [RS256] }}
    forwarded_client_cert: {{ from: [127.0.0.1] }}
authorize:
  - {{ callers: ['spiffe://prod*'], may: [everything] }}
  - {{ callers: [bob], may: [], resources: [a*b], queues: [$caller] }}
  - {{ may: [decide] }}
{STRATEGIES}"
    );
    let file = scratch::file(dir.path(), "weir.yaml", text);
    let errors = Config::load(&file, &weir::features::overrides()).unwrap_err().to_string();
    for expected in [
        ":2:16: server.admin_open[0]: \"secrets\" is not one of",
        "server.admin_hosts[0]: \"a b\" is no name of a host",
        "tokens:1: the name must be 1 to 64",
        "tokens:2: the digest must be 64 digits",
        "jwks: keys[0]: is a secret key",
        "algorithms[0]: \"HS256\" is not one of",
        "nowhere cannot be read",
        "the issuers \"a\" and \"a:b\" can give one name to two callers",
        "\"127.0.0.1\" is no network",
        "\"spiffe://prod*\": a final * can stand only",
        "\"everything\" is not one of decide, refund",
        "\"bob\" is no name of a caller",
        "may: must not be empty",
        "\"a*b\": a * can stand only at the end",
        "\"$caller\" stands for no name",
        "authorize[2].callers: is missing",
    ] {
        assert!(errors.contains(expected), "{expected} is not in:\n{errors}");
    }
    assert!(!errors.contains("c2VjcmV0"), "{errors}");
}

#[test]
fn ports_that_others_reach_are_told_of() {
    let exposure = |server: &str| parse(&format!("server: {{ {server} }}")).unwrap().exposure();
    assert_eq!(exposure("listen: 127.0.0.1:1, admin: '[::1]:2'"), None);
    assert_eq!(exposure("listen: 0.0.0.0:1, plaintext: intended"), None);
    let told = exposure("listen: 0.0.0.0:1, admin: '[::]:2'").unwrap();
    assert!(told.starts_with("server.listen 0.0.0.0:1 and server.admin [::]:2 can be reached"), "{told}");
    assert!(told.contains("plaintext: intended"), "{told}");
    let dir = scratch::dir("exposed");
    let file = scratch::file(dir.path(), "weir.yaml", format!("server: {{ listen: 0.0.0.0:1 }}{STRATEGIES}"));
    let checked = weir(&["check", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0));
    assert!(
        text(&checked.stderr).contains("can be reached from other machines"),
        "{}",
        text(&checked.stderr)
    );
    // So does `weir serve`, before it listens. This address is of no machine (RFC 5737).
    let served = weir(&[
        "serve",
        "--config",
        file.to_str().unwrap(),
        "--listen",
        "192.0.2.1:0",
        "--admin",
        "127.0.0.1:0",
    ]);
    let log = text(&served.stderr);
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert!(
        matches!(warnings[..], [one] if one.contains("server.listen 192.0.2.1:0 can be reached")),
        "{log}"
    );
    // Tokens on such a port are a mistake.
    std::fs::write(dir.path().join("tokens"), "# none\n").unwrap();
    let identity = "identity: { tokens_file: tokens }";
    std::fs::write(&file, format!("server: {{ listen: 0.0.0.0:1, {identity} }}{STRATEGIES}")).unwrap();
    let errors = Config::load(&file, &weir::features::overrides()).unwrap_err().to_string();
    assert!(errors.contains("server.listen 0.0.0.0:1 has no TLS"), "{errors}");
    std::fs::write(
        &file,
        format!("server: {{ listen: 0.0.0.0:1, plaintext: intended, {identity} }}{STRATEGIES}"),
    )
    .unwrap();
    assert!(Config::load(&file, &weir::features::overrides()).is_ok());
}

/// Paths that need no credential are named where other machines reach them, also where TLS is not needed.
#[test]
fn open_paths_of_a_port_that_others_reach_are_told_of() {
    let rules = "authorize: [{ callers: [token:x], may: [inspect] }]";
    let told = |server: &str, rules: &str| {
        let config = parse(&format!("server: {{ plaintext: intended, {server} }}\n{rules}"));
        config.unwrap_or_else(|error| panic!("{error}")).exposures()
    };
    let open = "admin_open: [metrics, ui_data]";
    assert_eq!(
        told(&format!("admin: 0.0.0.0:9, {open}"), rules),
        ["server.admin_open: whoever reaches 0.0.0.0:9 reads /metrics and /ui/data without a credential"]
    );
    for (server, rules) in [
        (format!("admin: '127.0.0.1:9', {open}"), rules),
        ("admin: 0.0.0.0:9".to_owned(), rules),
        // Without identity all paths are open.
        (format!("admin: 0.0.0.0:9, {open}"), ""),
    ] {
        assert!(told(&server, rules).is_empty(), "{server}");
    }
}

#[test]
fn explain_names_the_rule_that_allows() {
    let dir = scratch::dir("explain");
    let rules = "authorize:
  - { callers: [token:shop], may: [decide], resources: ['api/*'], consumers: [$caller] }
  - { callers: [token:top], may: [usage] }
";
    let file = scratch::file(dir.path(), "weir.yaml", format!("{rules}{STRATEGIES}"));
    let explain = |consumer: &str, caller: &str| {
        let file = file.to_str().unwrap();
        let output = weir(&["explain", "api/x", consumer, "--config", file, "--caller", caller]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).lines().next().unwrap().to_owned()
    };
    assert_eq!(
        explain("token:shop", "token:shop"),
        "caller    token:shop may `decide`, by the rule in line 2"
    );
    assert!(explain("bob", "token:shop").ends_with("the lists of the rules in lines 2 leave it out"));
    assert!(explain("bob", "token:top").ends_with("no rule that names it has this right"));
    assert!(explain("bob", "token:other").ends_with("no rule of `authorize` names it"));
}

/// Sends a request as it is, and returns the status.
fn status(address: &str, request: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap()
}

/// A web page that has rebound its name to this machine reads no data, and nothing large is read from anybody.
#[test]
fn data_is_served_under_known_names_only_and_bodies_are_bounded() {
    let dir = scratch::dir("hosts");
    let file = scratch::file(
        dir.path(),
        "weir.yaml",
        format!("server: {{ admin_hosts: [weir.internal] }}{STRATEGIES}"),
    );
    let serve = Serve::start(&["--config", file.to_str().unwrap()]);
    let get = |path: &str, headers: &str| {
        status(&serve.admin(), &format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n"))
    };
    for (host, expected) in [
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("weir.internal:8080", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8080", 421),
        ("weir.internal.", 421),
        ("", 421),
    ] {
        for path in ["/ui/data", "/ui", "/ui/page.js", "/metrics", "/"] {
            assert_eq!(get(path, &format!("host: {host}\r\n")), expected, "{path} {host:?}");
        }
        for path in ["/livez", "/readyz"] {
            assert_eq!(get(path, &format!("host: {host}\r\n")), 200, "{path} {host:?}");
        }
    }
    // A page can send any credential, and here nobody has verified it.
    assert_eq!(get("/ui/data", "host: evil.example\r\nauthorization: Bearer x\r\n"), 421);
    for path in ["/livez", "/metrics"] {
        assert_eq!(get(path, "host: localhost\r\nhost: localhost\r\n"), 400, "{path}");
    }
    for path in ["/livez", "/metrics", "/ui/data"] {
        assert_eq!(get(path, "host: localhost\r\ncontent-length: 1048577\r\n"), 413, "{path}");
    }
}

/// Rules that are valid and probably not meant: `weir check` says so, and exits 0.
#[test]
fn rules_that_are_probably_not_meant_are_told_of() {
    let dir = scratch::dir("warnings");
    let file = dir.path().join("weir.yaml");
    let (_, line) = weir_node::access::new_token("shop").unwrap();
    std::fs::write(dir.path().join("tokens"), line).unwrap();
    let warned = |rules: &str| {
        let identity = "server: { identity: { tokens_file: tokens } }";
        std::fs::write(&file, format!("{identity}\n{rules}{STRATEGIES}")).unwrap();
        let checked = weir(&["check", file.to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        text(&checked.stderr)
            .lines()
            .filter(|line| line.starts_with("warning: "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let rule = |rule: &str| warned(&format!("authorize:\n  - {{ {rule} }}\n"));
    assert!(warned("").contains("the server has identity and no `authorize`"));
    assert_eq!(rule("callers: [token:shop, 'token:sh*'], may: [decide], strategies: [a, inline, 'a*']"), "");
    for (one, expected) in [
        ("callers: [token:shpo], may: [decide]", "line 3: \"token:shpo\" is no name of `tokens_file`"),
        ("callers: ['token:x*'], may: [decide]", "no name of `tokens_file` fits \"token:x*\""),
        ("callers: [token:shop], may: [decide], strategies: [b]", "no strategy fits \"b\" of `strategies`"),
        ("callers: [anonymous], may: [control]", "`anonymous` has `control`"),
        (
            "callers: [token:shop], may: [usage], resources: ['*'], consumers: ['*']",
            "`usage` with `resources` and",
        ),
    ] {
        let said = rule(one);
        assert!(said.lines().count() == 1 && said.contains(expected), "{one}: {said}");
    }
}

#[test]
fn a_key_that_others_can_read_is_told_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let authority = crate::support::certificates::Authority::create();
    let issued = authority.issue("server", &["weir"]);
    let dir = scratch::dir("readable");
    let (file, key) = (dir.path().join("weir.yaml"), dir.path().join("key.pem"));
    std::fs::copy(&issued.key, &key).unwrap();
    let tls = format!("{{ cert_file: {}, key_file: {} }}", issued.cert.display(), key.display());
    std::fs::write(&file, format!("server: {{ tls: {tls} }}{STRATEGIES}")).unwrap();
    let warned = |mode: u32| {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let checked = weir(&["check", file.to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        text(&checked.stderr)
    };
    assert!(warned(0o644).contains("server.tls.key_file: ") && warned(0o644).contains("others can read it"));
    assert!(!warned(0o640).contains("others can read it"));
}
