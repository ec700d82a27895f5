//! Costs by name: on the command line, in a file of calls, and where a strategy has none.

use weir_testing::scratch;

use serde_json::Value;

use super::{EXAMPLES, simulate};

const COSTS: [&str; 6] = ["--cost", "input=900", "--cost", "output=4096,256", "--cost", "usd=0"];

/// Of 20,000 tokens a minute four calls get 4,096 each, the fifth gets what is left, and no other one passes.
#[test]
fn limits_take_their_own_costs() {
    let config = format!("{EXAMPLES}budgets.yaml");
    let args = ["--config", &config, "--pattern", "constant:1/s", "--for", "60s", "--output", "json"];
    let (code, out, err) = simulate(&[&args[..], &COSTS].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let row = &serde_json::from_str::<Value>(&out).unwrap()["strategies"][0];
    assert_eq!(
        (&row["allowed"], &row["denied"], &row["denied_by"]["output"]),
        (&5.into(), &55.into(), &55.into())
    );
    let of = |name: &str| (row["costs"][name]["asked"].as_u64(), row["costs"][name]["granted"].as_u64());
    assert_eq!(of("output"), (Some(60 * 4_096), Some(20_000)));
    assert_eq!(of("input"), (Some(60 * 900), Some(5 * 900)));
    assert_eq!(of("usd"), (Some(0), Some(0)));
}

#[test]
fn a_table_has_the_units_of_each_cost() {
    let config = format!("{EXAMPLES}budgets.yaml");
    let args = ["--config", &config, "--pattern", "until:5:constant:1/s"];
    let (code, out, err) = simulate(&[&args[..], &COSTS].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let table = "\nstrategy    cost  asked  granted\ngateway    input   4500     4500\ngateway   output  20480    20000\n\
                 gateway      usd      0        0\n";
    assert!(out.contains(table), "{out}");
}

#[test]
fn a_file_has_costs_for_each_call() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "at_s,resource,consumer,cost.input,cost.output,cost.usd\n0,chat,acme,1,20000,0\n1,chat,acme,1,1,0\n\
                 2,chat,acme,1,0,0\n3,chat,other,1,\"30000,5\",0\n";
    let calls = scratch::file(folder.path(), "calls.csv", lines);
    let config = format!("{EXAMPLES}budgets.yaml");
    let (code, out, err) =
        simulate(&["--config", &config, "--pattern", calls.to_str().unwrap(), "--output", "json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let row = &serde_json::from_str::<Value>(&out).unwrap()["strategies"][0];
    assert_eq!((&row["allowed"], &row["costs"]["output"]["granted"]), (&3.into(), &40_000.into()));
}

/// A strategy whose costs are not given is left out, and a cost that nobody takes is a mistake.
#[test]
fn a_forgotten_cost_is_no_free_call() {
    let config = format!("{EXAMPLES}budgets.yaml");
    let args = ["--config", &config, "--pattern", "constant:1/s"];
    let (code, _, err) = simulate(&args);
    assert_eq!(code, Some(2));
    assert!(err.contains("it needs the cost `input`; give it with --cost input=UNITS"), "{err}");
    let (code, _, err) = simulate(&[&args[..], &COSTS, &["--cost", "images=1"]].concat());
    assert_eq!(code, Some(2));
    assert!(
        err.contains("--cost images: no strategy that is simulated has this cost; they have `input`"),
        "{err}"
    );
    let (code, _, err) = simulate(&[&args[..], &["--strategy", "gateway", "--cost", "input=1"]].concat());
    assert_eq!(code, Some(2));
    assert!(err.contains("a forgotten cost is no free call"), "{err}");
}
