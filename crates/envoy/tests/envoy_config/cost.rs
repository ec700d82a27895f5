//! Matching costs the same with 10 limits and with 10,000. `cargo bench --bench envoy` has the figures.

use std::hint::black_box;
use std::time::{Duration, Instant};

use weir_envoy::rules::{Descriptor, Domain, Domains, Matcher};

use super::{bare, domain, limited};

/// So many limits of every sort, among which the last of each is looked for.
fn domains(count: u32) -> Domains {
    let each = |of: fn(u32) -> Descriptor| (0..count).map(of).collect::<Vec<_>>();
    let mut all = each(|i| limited("exact", &format!("value-{i}"), i));
    all.extend(each(|i| limited("begin", &format!("tenant-{i}/*"), i)));
    all.extend(each(|i| limited("end", &format!("*.tenant-{i}"), i)));
    all.extend(each(|i| limited("between", &format!("tenant*{i}"), i)));
    all.extend(each(|i| limited(&format!("key-{i}"), "", i)));
    all.extend(each(|i| {
        let network = format!("10.{}.{}.0/24", i / 256, i % 256).parse().unwrap();
        Descriptor { matcher: Matcher::Cidr(vec![network]), ..limited("cidr", "", i) }
    }));
    let below = each(|i| limited("below", &format!("value-{i}"), i));
    all.push(Descriptor { descriptors: below, ..bare("nested", "") });
    domain(all)
}

/// The shortest time of a round, and the number of its descriptors that match.
fn round(domain: &Domain, last: u32) -> (Duration, usize) {
    let asked = [
        ("exact", format!("value-{last}")),
        ("begin", format!("tenant-{last}/x")),
        ("end", format!("x.tenant-{last}")),
        ("between", format!("tenant-{last}")),
        ("cidr", format!("10.{}.{}.7", last / 256, last % 256)),
        ("nested", String::new()),
    ];
    let below = format!("value-{last}");
    let mut best = (Duration::MAX, 0);
    for _ in 0..2_000 {
        let started = Instant::now();
        let mut matched = 0;
        for (key, value) in &asked {
            let second = (*key == "nested").then_some(("below", below.as_str()));
            let entries = std::iter::once((*key, value.as_str())).chain(second);
            matched += usize::from(black_box(domain.find(black_box(entries))).is_some());
        }
        best = best.min((started.elapsed(), matched));
    }
    best
}

/// A thousand times the limits may cost what a few steps of a binary search do; trying them one by one
/// would cost a hundred times as much, at least.
#[test]
fn ten_limits_or_ten_thousand() {
    let (few, many) = (domains(10), domains(10_000));
    let (few_took, few_matched) = round(few.find("d").unwrap(), 9);
    let (many_took, many_matched) = round(many.find("d").unwrap(), 9_999);
    assert_eq!((few_matched, many_matched), (6, 6));
    assert!(many_took < few_took * 8, "10: {few_took:?}, 10,000: {many_took:?}");
}
