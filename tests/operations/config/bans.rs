//! `ban` of limits.

use super::{refused, refused_rows};

#[test]
fn bans_have_bounds_and_need_a_limit_that_counts_by_consumer() {
    let file = |text: &str| format!("strategies:\n  a:\n    limits:\n      - {text}\n{CONTROL}");
    refused_rows(
        file,
        r#"
{ name: l, per: [consumer], uniform: { interval: 1s }, ban: { after: 0, within: 500ms, for: 53w } }
    4:78: strategies.a.limits[0].ban.after: 0 is out of bounds: it must be from 1 to 1000000
    4:89: strategies.a.limits[0].ban.within: 500ms is out of bounds: it must be from 1s to 86400s
    4:101: strategies.a.limits[0].ban.for: 32054400s is out of bounds: it must be from 1s to 31449600s
{ name: l, per: [consumer], uniform: { interval: 1s }, ban: { afters: 3 } }
    4:69: strategies.a.limits[0].ban.after: is missing; say after how many denials, such as 20
    4:69: strategies.a.limits[0].ban.for: is missing; say how long the ban lasts, such as 10m
    4:69: strategies.a.limits[0].ban.within: is missing; say within which time, such as 1m
    4:71: strategies.a.limits[0].ban.afters: unknown key; did you mean `after`?
{ name: l, per: [resource], uniform: { interval: 1s }, ban: { after: 3, within: 1m, for: 1h } }
    4:69: strategies.a.limits[0].ban: the limit counts by [resource], so that consumers share its counters: a ban needs a limit that counts by consumer
{ name: l, per: [consumer, a, b], uniform: { interval: 1s }, ban: { after: 3, within: 1m, for: 1h } }
    4:75: strategies.a.limits[0].ban: the limit counts by 2 attributes: one with a ban may count by at most 1
{ name: l, per: [consumer], uniform: { interval: 1s }, mode: shadow, ban: { after: 3, within: 1m, for: 1h } }
    2:3: strategies.a: every limit is in shadow mode, so nothing is enforced; a strategy needs a limit that is, or it is listed as `shadow` of another one
    4:83: strategies.a.limits[0].ban: a limit in shadow mode denies nothing, so nobody would be banned; remove `ban` or `mode: shadow`
"#,
    );
    let off =
        "{ name: l, per: [consumer], uniform: { interval: 1s }, ban: { after: 3, within: 1m, for: 1h } }";
    refused(
        &[(
            off,
            "4:69: strategies.a.limits[0].ban: bans are lifted and shared by live control, which is off: set `server.control: true`, or remove `ban`",
        )],
        |text| format!("strategies:\n  a:\n    limits:\n      - {text}\n"),
    );
}

/// Live control, on the memory store.
const CONTROL: &str = "server: { control: true }\ncontrol: { cache_file: entries }";
