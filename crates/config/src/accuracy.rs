//! `accuracy` of a bucketed window: the number of parts per second, a decimal.

use weir_core::algorithm::MAX_BUCKETS;
use weir_units::Micros;

/// Digits that may follow the point.
const PLACES: u32 = 6;

const SECOND: u64 = 1_000_000;

/// Returns the length of a part: a second by the accuracy, rounded up to whole microseconds. The window is needed for the
/// bound, if it is known.
pub(super) fn width(text: &str, window: Option<Micros>) -> Result<Micros, String> {
    if let Some((part, whole)) = text.split_once('/') {
        let buckets = match (digits(part), digits(whole)) {
            (Some(part @ 1..), Some(whole)) => whole.div_ceil(part).clamp(1, MAX_BUCKETS),
            _ => MAX_BUCKETS,
        };
        return Err(format!(
            "{text:?} is a part of the window, the old form: write `buckets: {buckets}` instead of it"
        ));
    }
    let Some((number, scale)) = decimal(text).filter(|(number, _)| *number > 0) else {
        return Err(format!(
            "{text:?} is no number of parts per second: write a decimal above 0 with at most {PLACES} digits after \
             the point, such as 0.5 or 4"
        ));
    };
    let parts = |window: Micros| {
        (u128::from(window.0) * u128::from(number)).div_ceil(u128::from(SECOND) * u128::from(scale))
    };
    match window {
        Some(window) if parts(window) > u128::from(MAX_BUCKETS) => Err(format!(
            "{text} is out of bounds: a window of {window} has {} parts then, and may have {MAX_BUCKETS}; the nearest \
             that works is {}",
            parts(window),
            nearest(window)
        )),
        _ => Ok(Micros((SECOND * scale).div_ceil(number))),
    }
}

/// A decimal as a whole number and what divides it.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let places = u32::try_from(part.len()).ok().filter(|places| (1..=PLACES).contains(places))?;
    let scale = 10_u64.pow(places);
    Some((digits(whole)?.checked_mul(scale)?.checked_add(digits(part)?)?, scale))
}

fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The greatest accuracy with which a window has at most [`MAX_BUCKETS`] parts.
fn nearest(window: Micros) -> String {
    let scaled = u128::from(MAX_BUCKETS * SECOND) * u128::from(SECOND) / u128::from(window.0.max(1));
    let (whole, part) = (scaled / u128::from(SECOND), scaled % u128::from(SECOND));
    let text = format!("{whole}.{part:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width_of(text: &str, window: u64) -> Result<Micros, String> {
        width(text, Some(Micros::from_secs(window)))
    }

    #[test]
    fn parts_are_the_window_times_the_accuracy_rounded_up() {
        for (text, parts) in [("0.5", 2), ("0.75", 3), ("1", 3), ("4", 12), ("0.1", 1), ("0.000001", 1)] {
            let width = width_of(text, 3).unwrap();
            assert_eq!(3_000_000_u64.div_ceil(width.0.min(3_000_000)), parts, "{text}");
        }
        for hundredths in 1..=1_000_u64 {
            for window in 1..=30_u64 {
                let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
                let width = width_of(&text, window).unwrap().0;
                let parts = (window * SECOND).div_ceil(width.min(window * SECOND));
                assert_eq!(parts, (window * hundredths).div_ceil(100), "{text} of {window}s");
            }
        }
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in
            ["", "0", "0.0", "-1", "+1", "1e3", "1.", ".5", "0.1234567", "x", "1/60", "99999999999999999999"]
        {
            assert!(width_of(text, 3).is_err(), "{text}");
        }
        assert!(width_of("1/60", 60).unwrap_err().contains("`buckets: 60`"));
        assert!(width_of("2/60", 60).unwrap_err().contains("`buckets: 30`"));
    }

    #[test]
    fn the_nearest_that_works_works() {
        for window in [901, 3_599, 3_600, 3_601, 7_000, 86_400, 3_153_600_000] {
            let text = nearest(Micros::from_secs(window));
            assert!(width_of(&text, window).is_ok(), "{text} of {window}s");
            assert!(width_of("5", window).unwrap_err().ends_with(&text), "{text} of {window}s");
        }
    }
}
