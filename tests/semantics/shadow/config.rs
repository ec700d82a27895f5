//! The configuration of shadows.

use weir_config::{Config, ConfigOverrides};

const LIMITS: &str = "limits: [{ name: each, per: [consumer], uniform: { interval: 1s } }]";

/// The mistakes of strategies `a`, with this list of shadows, `b`, with the other, `ccc` and `permits`.
fn mistakes(of_a: &str, of_b: &str) -> String {
    let shadow = |list: &str| if list.is_empty() { String::new() } else { format!(", shadow: {list}") };
    let text = format!(
        "strategies:\n  a: {{ {LIMITS}{} }}\n  b: {{ {LIMITS}{} }}\n  ccc: {{ {LIMITS} }}\n  permits: {{ concurrency: {{ limit: 1, per: [] }} }}\n",
        shadow(of_a),
        shadow(of_b)
    );
    let parsed = Config::parse(&text, "test", &ConfigOverrides::default());
    parsed.map_or_else(|errors| errors.to_string(), |_| String::new())
}

#[test]
fn mistakes_are_named() {
    assert_eq!(mistakes("[b, ccc]", ""), "");
    for (of_a, of_b, expected) in [
        ("[cccc]", "", "strategies.a.shadow[0]: there is no strategy \"cccc\"; did you mean `ccc`?"),
        ("[a]", "", "strategies.a.shadow[0]: is this strategy itself"),
        (
            "[b]",
            "[ccc]",
            "strategies.a.shadow[0]: \"b\" has shadows itself; a shadow of a shadow is never decided",
        ),
        ("[b, b]", "", "strategies.a.shadow[1]: \"b\" is listed twice"),
        ("[permits]", "", "strategies.a.shadow[0]: \"permits\" limits concurrency"),
        ("[]", "", "strategies.a.shadow: has 0 entries: it must have 1 to 4"),
        ("[ccc, b, x1, x2, x3]", "", "strategies.a.shadow: has 5 entries: it must have 1 to 4"),
        ("ccc", "", "strategies.a.shadow: must be a list"),
    ] {
        let errors = mistakes(of_a, of_b);
        assert!(errors.contains(expected), "{of_a} {of_b}: {errors}");
    }
    let text = "strategies: { a: { concurrency: { limit: 1, per: [] }, shadow: [b] }, b: { LIMITS } }";
    let text = text.replace("LIMITS", LIMITS);
    let errors = Config::parse(&text, "test", &ConfigOverrides::default()).unwrap_err().to_string();
    assert!(errors.contains("strategies.a.shadow: cannot stand beside `concurrency`"), "{errors}");
}
