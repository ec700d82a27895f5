//! `expire` of a bucketed window.

use weir_core::algorithm::Algorithm;
use weir_units::Micros;

use super::{algorithm, configured, limit, refused};

#[test]
fn an_expiry_is_at_least_the_window() {
    let minute = Algorithm::bucketed_window(5, Micros::from_secs(60), 6, true).unwrap();
    for (text, expire) in [
        ("bucketed_window: { limit: 5, window: 1m, buckets: 6, expire: 1m }", 60),
        ("bucketed_window: { limit: 5, window: 1m, accuracy: 0.1, expire: 2h }", 7_200),
    ] {
        let expected = minute.with_expiry(Micros::from_secs(expire)).unwrap();
        assert_eq!(algorithm(text), configured(expected), "{text}");
    }
    refused(
        &[(
            "bucketed_window: { limit: 1, window: 1h, buckets: 4, expire: 59m }",
            "4:98: strategies.a.limits[0].bucketed_window.expire: 3540s is out of bounds: it must be at least the window, 3600s: what has been charged counts for so long",
        )],
        limit,
    );
}
