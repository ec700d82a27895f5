//! The rules of matching, one by one.

use weir_envoy::rules::{Descriptor, Domains, Draft, How, Matcher};

use super::{bare, domain, limit_of, limited};

fn with(descriptor: Descriptor, descriptors: Vec<Descriptor>) -> Descriptor {
    Descriptor { descriptors, ..descriptor }
}

/// Each descriptor matches this limit, or none.
fn matches(domains: &Domains, cases: &[(&str, Option<u32>)]) {
    for (entries, expected) in cases {
        assert_eq!(limit_of(domains, entries), *expected, "{entries}");
    }
}

#[test]
fn exact_goes_before_patterns_and_those_before_the_key_alone() {
    let domains = domain(vec![
        limited("k", "", 1),
        limited("k", "a*", 2),
        limited("k", "ab*", 3),
        limited("k", "*c", 4),
        limited("k", "abc", 5),
        limited("other", "x", 6),
    ]);
    matches(
        &domains,
        &[
            ("k=abc", Some(5)),
            ("k=abd", Some(2)),
            ("k=abcc", Some(2)),
            ("k=c", Some(4)),
            ("k=xyz", Some(1)),
            ("k=", Some(1)),
            ("other=x", Some(6)),
            ("other=y", None),
            ("nothing=x", None),
            ("", None),
        ],
    );
}

#[test]
fn of_patterns_the_first_in_the_file_counts_whatever_it_begins_with() {
    let domains = domain(vec![
        limited("k", "abcdef*", 1),
        limited("k", "*z", 2),
        limited("k", "ab*", 3),
        limited("k", "*m*", 4),
        limited("k", "a*y*z", 5),
        limited("k", "*", 6),
    ]);
    matches(
        &domains,
        &[
            ("k=abcdefz", Some(1)),
            ("k=abyz", Some(2)),
            ("k=aby", Some(3)),
            ("k=abm", Some(3)),
            ("k=am", Some(4)),
            ("k=amz", Some(2)),
            ("k=q", Some(6)),
            ("k=", Some(6)),
        ],
    );
}

/// Envoy Gateway makes keys with `*` of routes without a host name, and values that are the same text.
#[test]
fn the_text_of_a_pattern_goes_before_patterns_that_match_it() {
    let domains = domain(vec![limited("k", "A*", 1), limited("k", "AB*", 2), limited("k", "", 3)]);
    matches(&domains, &[("k=AB*", Some(2)), ("k=A*", Some(1)), ("k=ABC", Some(1)), ("k=*", Some(3))]);
    let domains = domain(vec![
        limited("R/*", "R/*", 3),
        limited("R/*_example_com", "R/*_example_com", 4),
        limited("R/*_example_com", "x", 5),
    ]);
    matches(
        &domains,
        &[
            ("R/*_example_com=R/*_example_com", Some(4)),
            ("R/*=R/*", Some(3)),
            ("R/*_example_com=x", Some(5)),
            ("R/a_example_com=R/a_example_com", Some(3)),
            ("R/*_example_com=y", None),
        ],
    );
    // A network and an expression are no texts that a request could say.
    let regex = Descriptor { matcher: Matcher::Regex("a+".to_owned()), ..limited("k", "", 1) };
    matches(&super::domain(vec![regex, limited("k", "a*", 2)]), &[("k=a+", Some(2)), ("k=aa", Some(1))]);
}

#[test]
fn a_choice_is_final() {
    let domains = domain(vec![
        with(bare("k", "a"), vec![limited("s", "x", 1)]),
        with(bare("k", "a*"), vec![limited("s", "", 2)]),
        with(limited("k", "", 3), vec![limited("s", "", 4)]),
    ]);
    matches(
        &domains,
        &[
            ("k=a,s=x", Some(1)),
            ("k=a,s=y", None),
            ("k=ab,s=y", Some(2)),
            ("k=b,s=y", Some(4)),
            ("k=b", Some(3)),
            ("k=a", None),
            ("k=a,s=x,t=1", None),
            ("s=x,k=a", None),
        ],
    );
}

/// The reference joins keys and values with `_`, so that these share a counter there.
#[test]
fn a_key_and_its_value_are_never_one_text() {
    let domains = domain(vec![limited("a_b", "", 1)]);
    matches(&domains, &[("a_b=x", Some(1)), ("a=b", None), ("a_b=", Some(1))]);
    let domains = domain(vec![limited("a", "b_c", 1), limited("a_b", "c", 2), limited("a", "b*", 3)]);
    matches(&domains, &[("a=b_c", Some(1)), ("a_b=c", Some(2)), ("a_b=b_c", None), ("a=b_d", Some(3))]);
}

#[test]
fn keys_may_be_patterns() {
    let domains = domain(vec![
        limited("x-*", "", 1),
        limited("x-user", "", 2),
        limited("x-*", "bob", 3),
        limited("x-user", "bob", 4),
        limited("x-u*", "b*", 5),
        limited("plain", "b*", 6),
    ]);
    matches(
        &domains,
        &[
            ("x-user=bob", Some(4)),
            ("x-user=bib", Some(1)),
            ("x-other=bob", Some(1)),
            ("x-=bob", Some(1)),
            ("y=bob", None),
            ("plain=bob", Some(6)),
        ],
    );
    let domains = domain(vec![limited("u*", "b*", 1), limited("u*", "", 2), limited("user", "", 3)]);
    matches(&domains, &[("user=bob", Some(1)), ("user=alice", Some(2)), ("uber=x", Some(2))]);
}

#[test]
fn networks_and_expressions_are_patterns_too() {
    let cidr = |networks: &[&str], requests| Descriptor {
        matcher: Matcher::Cidr(networks.iter().map(|text| text.parse().unwrap()).collect()),
        ..limited("ip", "", requests)
    };
    let regex = |text: &str, requests| Descriptor {
        matcher: Matcher::Regex(text.to_owned()),
        ..limited("ip", "", requests)
    };
    let domains = domain(vec![
        limited("ip", "10.1.2.3", 1),
        cidr(&["10.1.0.0/16", "2001:db8::/32"], 2),
        cidr(&["10.0.0.0/8"], 3),
        regex("user-[0-9]+", 4),
        regex("user-.*|admin", 5),
        limited("ip", "192.*", 6),
        cidr(&["0.0.0.0/0"], 7),
        limited("ip", "", 8),
    ]);
    matches(
        &domains,
        &[
            ("ip=10.1.2.3", Some(1)),
            ("ip=10.1.2.4", Some(2)),
            ("ip=2001:db8::1", Some(2)),
            ("ip=::ffff:10.1.2.4", Some(2)),
            ("ip=10.2.0.0", Some(3)),
            ("ip=user-17", Some(4)),
            ("ip=user-17x", Some(5)),
            ("ip=admin", Some(5)),
            ("ip=xadmin", Some(8)),
            ("ip=192.168.0.1", Some(6)),
            ("ip=11.0.0.1", Some(7)),
            ("ip=2002::1", Some(8)),
            ("ip=10.1.2", Some(8)),
        ],
    );
}

#[test]
fn sharing_is_shown_per_entry() {
    let shared = |descriptor: Descriptor| Descriptor { share_threshold: true, ..descriptor };
    let domains = domain(vec![
        with(shared(bare("user", "user/*")), vec![shared(limited("res", "res/*", 1)), limited("res", "", 2)]),
        shared(limited("k*", "", 3)),
    ]);
    let domain = domains.find("d").unwrap();
    let both = domain.find([("user", "user/1"), ("res", "res/2")]).unwrap();
    assert_eq!([both.shared(0), both.shared(1)], [Some(("user", "user/*")), Some(("res", "res/*"))]);
    assert_eq!(both.path(), "d.user_user/*.res_res/*");
    let first = domain.find([("user", "user/1"), ("res", "x")]).unwrap();
    assert_eq!([first.shared(0), first.shared(1), first.shared(2)], [Some(("user", "user/*")), None, None]);
    assert_eq!(domain.find([("key", "x")]).unwrap().shared(0), Some(("k*", "")));
}

#[test]
fn rules_are_counted_without_gaps() {
    let draft = Draft { name: "free".to_owned(), ..Draft::default() };
    let unlimited = Descriptor { rule: Some(Box::new(draft)), ..bare("free", "") };
    let one = vec![with(bare("k", "a"), vec![limited("s", "", 1)]), unlimited];
    let domains = Domains::new([("d".to_owned(), one), ("e".to_owned(), vec![limited("k", "", 2)])]);
    let paths: Vec<String> = domains.rules().iter().map(|rule| rule.path()).collect();
    assert_eq!(paths, ["d.k_a.s", "d.free", "e.k"]);
    assert!(domains.rules().iter().enumerate().all(|(index, rule)| rule.index == index));
    let free = domains.find("d").unwrap().find([("free", "x")]).unwrap();
    assert_eq!((free.limit.is_none(), &*free.name), (true, "free"));
    assert_eq!((domains.len(), domains.find("nope").is_none()), (2, true));
}

#[test]
fn steps_say_how_far_it_goes_and_why() {
    let domains = domain(vec![with(bare("k", "a*"), vec![limited("s", "", 1), bare("s", "x")])]);
    let domain = domains.find("d").unwrap();
    let steps = |entries: &[(&'static str, &'static str)]| -> Vec<(String, How, bool)> {
        let steps = domain.steps(entries.iter().copied());
        steps.map(|step| (step.path.to_owned(), step.how, step.has_rule)).collect()
    };
    let first = ("k_a*".to_owned(), How::Pattern, false);
    assert_eq!(steps(&[("k", "ab"), ("s", "y")]), [first.clone(), ("s".to_owned(), How::Default, true)]);
    assert_eq!(steps(&[("k", "ab"), ("s", "x")]), [first.clone(), ("s_x".to_owned(), How::Exact, false)]);
    assert_eq!(steps(&[("k", "ab"), ("t", "x"), ("u", "x")]), [first]);
    assert_eq!(steps(&[("q", "ab")]), []);
}
