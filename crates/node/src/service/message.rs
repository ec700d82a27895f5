//! Denial messages: templates of the configuration, parsed once and filled in per denial.

use std::fmt::Write as _;

use weir_config::DenialMessages;
use weir_core::strategy::Strategy;
use weir_units::{Micros, Retry, WaitFor};

/// Templates of denial messages, and how long clients may cache denials.
#[derive(Debug, Clone)]
pub struct Templates {
    most_valid: Micros,
    limited: Template,
    unknown: Template,
    never: Template,
    /// Text for a weight of permits: the built-in text speaks of a cost.
    never_permits: Template,
    /// The text if a weight above 1 is refused: some permits may be free then.
    too_few_permits: Template,
}

/// The text for a weight above the highest limit, unless the configuration has one for all denials of this kind.
const NEVER_PERMITS: &str =
    "A weight of {cost} is above the limit of {limit} permits and can never be granted";

/// The text for a weight above 1 that has to wait, unless the configuration has one for all denials of this kind.
const TOO_FEW_PERMITS: &str = "Fewer than {cost} of {limit} permits are free. Try again when more are";

/// The numbers of one denial.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Time until a retry can succeed.
    pub retry: Retry,
    /// The cost, or the weight.
    pub cost: u64,
    /// The limit that denies.
    pub limit: u64,
}

#[derive(Debug, Clone)]
struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(Box<str>),
    Wait,
    Seconds,
    Cost,
    Limit,
}

impl Templates {
    /// Parses the templates of a configuration. Unknown placeholders stay as text.
    pub fn new(messages: &DenialMessages) -> Self {
        let built_in = DenialMessages::default();
        let unless_own = |own: &str, built_in: &str, of_permits: &str| {
            Template::parse(if own == built_in { of_permits } else { own })
        };
        Self {
            most_valid: Micros::ZERO,
            limited: Template::parse(&messages.limited),
            unknown: Template::parse(&messages.unknown),
            never: Template::parse(&messages.never),
            never_permits: unless_own(&messages.never, &built_in.never, NEVER_PERMITS),
            too_few_permits: unless_own(&messages.unknown, &built_in.unknown, TOO_FEW_PERMITS),
        }
    }

    /// Sets the longest time for which clients may cache a denial.
    #[must_use]
    pub fn with_denials_valid_for(self, most_valid: Micros) -> Self {
        Self { most_valid, ..self }
    }

    /// For how long a client may cache a denial of this cost, which waits for `retry`: no charge ends it earlier. `None`
    /// if it must ask again.
    pub(crate) fn valid_for(&self, strategy: &Strategy, retry: Retry, cost: u64) -> Option<Micros> {
        let wait = match retry {
            Retry::After(wait) => wait,
            Retry::Never => self.most_valid,
            Retry::Now | Retry::Unknown => return None,
        };
        // A state that is evicted is a full limit. The store evicts nothing that denies a cost of 1.
        let may_change = cost > 1
            || strategy.mixes_numbers()
            || strategy.approximate().is_some()
            || strategy.algorithms().iter().any(|limit| limit.counts_denied());
        let valid = wait.min(self.most_valid);
        (valid > Micros::ZERO && !may_change).then_some(valid)
    }

    /// Returns the validity of a denial by a ban that ends after `wait`: only an operator ends it earlier.
    pub(crate) fn valid_for_ban(&self, wait: Micros) -> Option<Micros> {
        Some(wait.min(self.most_valid)).filter(|valid| *valid > Micros::ZERO)
    }

    /// The sentence for a denial: one if waiting helps, one if the wait is not known, and one if waiting
    /// never helps.
    pub(crate) fn render(&self, facts: Facts) -> String {
        let template = match facts.retry {
            Retry::Now | Retry::After(_) => &self.limited,
            Retry::Unknown => &self.unknown,
            Retry::Never => &self.never,
        };
        template.render(facts)
    }
}

impl Templates {
    /// The sentence for permits that are refused.
    pub fn render_permits(&self, facts: Facts) -> String {
        match facts.retry {
            Retry::Never => self.never_permits.render(facts),
            Retry::Unknown if facts.cost > 1 => self.too_few_permits.render(facts),
            _ => self.render(facts),
        }
    }
}

impl Template {
    fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((start, end, piece)) = next_placeholder(rest) {
            if start > 0 {
                pieces.push(Piece::Text(rest[..start].into()));
            }
            pieces.push(piece);
            rest = &rest[end..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Self(pieces)
    }

    fn render(&self, facts: Facts) -> String {
        let wait = if let Retry::After(wait) = facts.retry { wait } else { Micros::ZERO };
        let mut out = String::with_capacity(64);
        for piece in &self.0 {
            // Writing to a String cannot fail.
            let _ = match piece {
                Piece::Text(text) => out.write_str(text),
                Piece::Wait => WaitFor(wait).write(&mut out),
                Piece::Seconds => write!(out, "{}", wait.secs_ceil()),
                Piece::Cost => write!(out, "{}", facts.cost),
                Piece::Limit => write!(out, "{}", facts.limit),
            };
        }
        out
    }
}

/// The first placeholder of `text`: where it starts, where it ends, and what it stands for.
fn next_placeholder(text: &str) -> Option<(usize, usize, Piece)> {
    let known = [
        ("{wait}", Piece::Wait),
        ("{seconds}", Piece::Seconds),
        ("{cost}", Piece::Cost),
        ("{limit}", Piece::Limit),
    ];
    let found = known.into_iter().filter_map(|(name, piece)| {
        let start = text.find(name)?;
        Some((start, start + name.len(), piece))
    });
    found.min_by_key(|(start, ..)| *start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Micros;

    #[test]
    fn an_unknown_wait_has_a_sentence_of_its_own() {
        let facts = Facts { retry: Retry::Unknown, cost: 1, limit: 5 };
        let sentence = Templates::new(&DenialMessages::default()).render(facts);
        assert_eq!(sentence, "All 5 permits are in use. Try again when one is free");
    }

    #[test]
    fn a_weight_may_be_refused_while_permits_are_free() {
        let facts = |cost| Facts { retry: Retry::Unknown, cost, limit: 5 };
        let built_in = Templates::new(&DenialMessages::default());
        let sentence = "Fewer than 3 of 5 permits are free. Try again when more are";
        assert_eq!(built_in.render_permits(facts(3)), sentence);
        assert_eq!(built_in.render_permits(facts(1)), "All 5 permits are in use. Try again when one is free");
        let own = DenialMessages { unknown: "Wait".to_owned(), ..DenialMessages::default() };
        assert_eq!(Templates::new(&own).render_permits(facts(3)), "Wait");
    }

    fn render(template: &str, retry_after_us: Option<u64>) -> String {
        let limited = template.to_owned();
        let messages = DenialMessages { limited, never: template.to_owned(), ..DenialMessages::default() };
        let retry = retry_after_us.map_or(Retry::Never, |wait| Retry::After(Micros(wait)));
        Templates::new(&messages).render(Facts { retry, cost: 7, limit: 5 })
    }

    #[test]
    fn waits_are_whole_seconds_rounded_up() {
        let limited = DenialMessages::default().limited;
        assert_eq!(render(&limited, Some(1)), "Rate limit exceeded. Try again in 1 second");
        assert_eq!(render(&limited, Some(1_000_000)), "Rate limit exceeded. Try again in 1 second");
        assert_eq!(render(&limited, Some(1_000_001)), "Rate limit exceeded. Try again in 2 seconds");
        assert_eq!(render(&limited, Some(3_500_000)), "Rate limit exceeded. Try again in 4 seconds");
        let long = render("{wait} or {seconds}", Some(822_224_534_347));
        assert_eq!(long, "9d 13h or 822225", "long waits are for people, too");
    }

    #[test]
    fn every_placeholder_is_filled_and_nothing_else() {
        assert_eq!(render("{cost}>{limit} {seconds}s {wait}{", Some(2_000_000)), "7>5 2s 2 seconds{");
        assert_eq!(render("{waits} {} {{wait}}", Some(0)), "{waits} {} {0 seconds}");
        assert_eq!(render("", None), "");
    }
}
