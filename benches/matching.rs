//! What it costs to find the rule of a descriptor, by how many limits there are.
//!
//! `cargo bench --bench matching`
#![allow(missing_docs, clippy::unwrap_used)]

use std::fmt::Write as _;

use divan::{Bencher, black_box};
use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::Domains;

fn main() {
    divan::main();
}

const COUNTS: [usize; 3] = [10, 1_000, 10_000];

/// So many limits, each of `entry` with `#` replaced by its number.
fn domains(count: usize, entry: &str) -> Domains {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    for index in 0..count {
        let entry = entry.replace('#', &index.to_string());
        let _ = writeln!(text, "  - {{ {entry}, rate_limit: {{ unit: minute, requests_per_unit: 10 }} }}");
    }
    EnvoyFiles::parse([("bench", text.as_str())], false).unwrap().compile()
}

fn find(bencher: Bencher<'_, '_>, domains: &Domains, entries: &[(&str, &str)]) {
    assert!(domains.find("d").unwrap().find(entries.iter().copied()).is_some());
    bencher.bench_local(|| {
        let domain = black_box(domains).find(black_box("d"));
        domain.and_then(|domain| domain.find(black_box(entries).iter().copied())).is_some()
    });
}

#[divan::bench(args = COUNTS)]
fn exact_value(bencher: Bencher<'_, '_>, count: usize) {
    let value = format!("value-{}", count - 1);
    find(bencher, &domains(count, "key: k, value: value-#"), &[("k", &value)]);
}

#[divan::bench(args = COUNTS)]
fn any_value_of_a_key(bencher: Bencher<'_, '_>, count: usize) {
    let key = format!("key-{}", count - 1);
    find(bencher, &domains(count, "key: key-#"), &[(&key, "some-value")]);
}

#[divan::bench(args = COUNTS)]
fn pattern_by_its_beginning(bencher: Bencher<'_, '_>, count: usize) {
    let value = format!("/tenants/{}/orders", count - 1);
    find(bencher, &domains(count, "key: k, value: /tenants/#/*"), &[("k", &value)]);
}

#[divan::bench(args = COUNTS)]
fn pattern_by_its_end(bencher: Bencher<'_, '_>, count: usize) {
    let value = format!("www.tenant-{}.test", count - 1);
    find(bencher, &domains(count, "key: k, value: '*.tenant-#.test'"), &[("k", &value)]);
}

#[divan::bench(args = COUNTS)]
fn network(bencher: Bencher<'_, '_>, count: usize) {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    for index in 0..count {
        let (high, low) = (index / 256, index % 256);
        let limit = "rate_limit: { unit: minute, requests_per_unit: 10 }";
        let _ = writeln!(text, "  - {{ key: k, value_cidr: 10.{high}.{low}.0/24, {limit} }}");
    }
    let domains = EnvoyFiles::parse([("bench", text.as_str())], false).unwrap().compile();
    let value = format!("10.{}.{}.7", (count - 1) / 256, (count - 1) % 256);
    find(bencher, &domains, &[("k", &value)]);
}

#[divan::bench(args = [10, 100, 1_000])]
fn regular_expression(bencher: Bencher<'_, '_>, count: usize) {
    let value = format!("/v{}/orders/17", count - 1);
    find(bencher, &domains(count, "key: k, value_regex: '/v#/[a-z]+/[0-9]+'"), &[("k", &value)]);
}
