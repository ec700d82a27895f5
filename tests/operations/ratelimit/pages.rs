//! What the HTTP ports answer.

use serde_json::Value;

use super::{Ratelimit, files};
use crate::support::{SOON, eventually};

#[test]
fn json_is_answered_as_grpc_is() {
    let started = Ratelimit::start(&[]);
    let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
    for left in [1, 0] {
        let (status, text) = started.post("/json", body);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &answer["overallCode"]), (200, &Value::from("OK")), "{text}");
        let limit = &answer["statuses"][0]["currentLimit"];
        assert_eq!((&limit["requestsPerUnit"], &limit["unit"]), (&Value::from(2), &Value::from("DAY")));
        // Defaults are left out.
        let remaining = answer["statuses"][0].get("limitRemaining").map_or(0, |left| left.as_u64().unwrap());
        assert_eq!(remaining, left);
    }
    let (status, text) = started.post("/json", body);
    assert_eq!((status, text.contains(r#""overallCode":"OVER_LIMIT""#)), (429, true), "{text}");
    let snake = r#"{"domain":"d","hits_addend":1,"descriptors":[{"entries":[{"key":"k","value":"x"}]}]}"#;
    assert_eq!(started.post("/json", snake).0, 200);
    for wrong in ["", "{", r#"{"domain":"d","nobody":1}"#, r#"{"domain":""}"#] {
        let (status, text) = started.post("/json", wrong);
        assert!(status == 400 && text.starts_with("Bad Request"), "{wrong}: {status} {text}");
    }
    let large = format!("{{\"domain\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(started.post("/json", &large).0, 413);
}

#[test]
fn rlconfig_has_a_line_for_each_rule() {
    let started = Ratelimit::start(&[]);
    let expected = "d.k_v: unit=DAY requests_per_unit=2, shadow_mode: false, quota_mode: false\n\
                    d.k: unit=HOUR requests_per_unit=20, shadow_mode: false, quota_mode: false\n";
    assert_eq!(started.get(6070, "/rlconfig").unwrap(), (200, expected.to_owned()));
    let unlimited = files("domain: rl\ndescriptors: [{ key: qux, rate_limit: { unlimited: true } }]\n");
    let root = unlimited.path().join("data").display().to_string();
    let page = Ratelimit::start(&[("RUNTIME_ROOT", &root)]).get(6070, "/rlconfig").unwrap().1;
    assert_eq!(page, "rl.qux: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false\n");
    let (status, stats) = started.get(6070, "/stats").unwrap();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((status, &stats["weir_envoy_rules"]), (200, &Value::from(2.0)));
}

#[test]
fn it_is_unhealthy_as_soon_as_it_stops() {
    let mut started = Ratelimit::start(&[("WEIR_DRAIN_DELAY", "600s")]);
    started.process.signal("TERM");
    eventually(SOON, "it says so", || started.get(8080, "/healthcheck") == Some((500, String::new())));
    let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
    assert_eq!(started.post("/json", body).0, 200, "calls are still answered");
}

/// The fields of the standard for the same limit, beside the names of the reference.
#[test]
fn headers_of_the_standard_are_added_on_request() {
    let folder = crate::support::scratch::dir("native-");
    let file = folder.path().join("weir.yaml");
    std::fs::write(&file, "envoy: { standard_headers: true }").unwrap();
    let started = Ratelimit::start(&[
        ("WEIR_CONFIG", file.to_str().unwrap()),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_LIMIT_HEADER", "X-Most"),
    ]);
    let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
    let answer: Value = serde_json::from_str(&started.post("/json", body).1).unwrap();
    let headers = answer["responseHeadersToAdd"].as_array().unwrap();
    let value = |name: &str| {
        let found = headers.iter().find(|header| header["key"] == name);
        found.map(|header| header["value"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    assert_eq!((value("X-Most"), value("RateLimit-Remaining")), ("2".to_owned(), "1".to_owned()), "{answer}");
    assert!(value("RateLimit").starts_with("\"day\";r=1;t="), "{answer}");
    assert_eq!(value("RateLimit-Policy"), "\"day\";q=2;w=86400", "{answer}");
}

/// The ports are the reference's, which answers to every name.
#[test]
fn the_ports_answer_under_every_name() {
    let started = Ratelimit::start(&[("USE_PROMETHEUS", "true")]);
    for (port, path) in [(8080, "/healthcheck"), (6070, "/rlconfig"), (6070, "/metrics"), (9090, "/metrics")]
    {
        let ask = |hosts: &str| {
            let request = format!("GET {path} HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
            started.send(port, &request).unwrap_or_else(|| panic!("{port}{path}")).0
        };
        assert_eq!(ask("host: ratelimit.example\r\n"), 200, "{port}{path}");
        assert_eq!(ask("host: localhost\r\nhost: localhost\r\n"), 400, "{port}{path}");
    }
}
