//! `/ui/control` shows who inspects it no more than the lists of its rules have.

use serde_json::Value;
use weir_node::access::new_token;

use super::*;

#[tokio::test]
async fn the_lists_of_a_rule_bound_what_is_shown() {
    let folder = scratch::dir("inspected-");
    let tokens = ["ops", "all", "some"].map(|name| new_token(name).unwrap());
    let lines: Vec<&str> = tokens.iter().map(|(_, line)| line.as_str()).collect();
    fs::write(folder.path().join("tokens"), lines.join("\n")).unwrap();
    let text = "
server: { control: true, audit_file: audit.jsonl, identity: { tokens_file: tokens } }
control: { cache_file: entries }
authorize:
  - { callers: [token:ops], may: [control] }
  - { callers: [token:all], may: [inspect] }
  - { callers: [token:some], may: [inspect], strategies: [s], consumers: ['shop-*'] }
strategies:
  s: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/h } }] }
  other: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/h } }] }
resources: [{ match: '*', strategy: s }]
";
    fs::write(folder.path().join("weir.yaml"), text).unwrap();
    let node = Node::on(folder);
    let [ops, all, some] = tokens.map(|(token, _)| format!("Bearer {token}"));
    for (strategy, consumer) in [("s", "shop-1"), ("s", "bank-1"), ("other", "shop-1"), ("", "shop-2")] {
        let access = ControlAccess { strategy: strategy.to_owned(), ..listed(AccessList::Deny, consumer) };
        let mut request = tonic::Request::new(PutAccessRequest { access: Some(access), options: None });
        request.metadata_mut().insert("authorization", ops.parse().unwrap());
        node.control().await.put_access(request).await.unwrap();
    }
    let shown = |bearer: &str| -> Value {
        let (status, text) = node.server.get_as("/ui/control", bearer);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(shown(&all)["total"], 4);
    let some = shown(&some);
    assert_eq!(
        (&some["total"], &some["entries"][0]["access"]["consumer"]),
        (&1.into(), &"shop-1".into()),
        "{some}"
    );
    assert_eq!(some["entries"].as_array().unwrap().len(), 1);
}
