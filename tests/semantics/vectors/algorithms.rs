//! The algorithms that tables are about.

use serde_json::{Map, Value};
use weir_core::algorithm::{Algorithm, Calendar, DEFAULT_MAX_HELD, Invalid, Rate};
use weir_units::{CEILING, Micros};

/// The numbers of a table, of which each is read, and none is left over.
struct Numbers<'t> {
    table: &'t str,
    left: Map<String, Value>,
}

impl Numbers<'_> {
    fn value(&mut self, name: &str) -> Value {
        self.left.remove(name).unwrap_or_else(|| panic!("{}: config has no {name}", self.table))
    }

    fn number(&mut self, name: &str) -> u64 {
        let value = self.value(name);
        value.as_u64().unwrap_or_else(|| panic!("{}: {name} is {value}", self.table))
    }

    fn number_or(&mut self, name: &str, default: u64) -> u64 {
        if self.left.contains_key(name) { self.number(name) } else { default }
    }

    fn micros(&mut self, name: &str) -> Micros {
        Micros(self.number(name))
    }

    fn flag(&mut self, name: &str) -> bool {
        let value = self.value(name);
        value.as_bool().unwrap_or_else(|| panic!("{}: {name} is {value}", self.table))
    }

    fn flag_or(&mut self, name: &str, default: bool) -> bool {
        if self.left.contains_key(name) { self.flag(name) } else { default }
    }

    fn rate(&mut self) -> Rate {
        Rate { count: self.number("rate"), period: self.micros("period_us") }
    }

    /// With an expiry of its states, if one is given.
    fn expiring(&mut self, made: Result<Algorithm, Invalid>) -> Result<Algorithm, Invalid> {
        if self.left.contains_key("expire_us") { made?.with_expiry(self.micros("expire_us")) } else { made }
    }
}

/// The algorithm of a table, from its name and its numbers.
pub fn algorithm(id: &str, name: &str, config: Value) -> Algorithm {
    let Value::Object(left) = config else { panic!("{id}: config is {config}") };
    let mut numbers = Numbers { table: id, left };
    let made = numbers.algorithm(name).unwrap_or_else(|e| panic!("{id}: {e}"));
    assert!(numbers.left.is_empty(), "{id}: config: {:?} is not understood", numbers.left);
    made
}

impl Numbers<'_> {
    fn algorithm(&mut self, name: &str) -> Result<Algorithm, Invalid> {
        match name {
            "uniform_gate" => Algorithm::uniform(self.micros("interval_us")),
            "bucket" | "reserve" => Algorithm::bucket(self.number("burst"), self.rate()),
            "leaky_queue" => {
                let delay = self.number_or("delay_tokens", 0);
                Algorithm::leaky_queue(self.number("burst"), self.rate(), delay)
            }
            "charge_after" => {
                Algorithm::charge_after(self.number("burst"), self.rate(), self.number("max_cost"))
            }
            "cycles" | "reserve_interval" => {
                self.number_or("timeout_us", 0);
                let limit = self.number("limit");
                Algorithm::interval_refill(limit, limit, self.micros("period_us"), true)
            }
            "guava_warmup" => {
                let rate = Rate { count: self.number("permits_per_s"), period: Micros::from_secs(1) };
                Algorithm::warm_up(rate, self.micros("warmup_us"), self.number("cold_factor"), None)
            }
            "interval_bucket" => {
                let (capacity, refill) = (self.number("capacity"), self.number("refill"));
                let aligned = self.flag_or("aligned", false);
                Algorithm::interval_refill(capacity, refill, self.micros("period_us"), aligned)
            }
            "fixed_window" => {
                let (limit, window) = (self.number("limit"), self.micros("window_us"));
                let count_denied = self.flag_or("count_denied", false);
                match (self.flag_or("spread", false), self.flag_or("anchored", false)) {
                    (true, false) => Algorithm::spread_window(limit, window, count_denied),
                    (true, true) => panic!("{}: an anchored window cannot be spread", self.table),
                    (false, anchored) => Algorithm::fixed_window(limit, window, anchored, count_denied),
                }
            }
            "sliding_log" => Algorithm::sliding_log(self.number("limit"), self.micros("window_us")),
            "held_log" => {
                Algorithm::held_log(self.number("limit"), self.micros("window_us"), DEFAULT_MAX_HELD)
            }
            "calendar_window" => {
                let calendar = match self.value("calendar").as_str() {
                    Some("day") => Calendar::Day,
                    Some("month") => Calendar::Month,
                    other => panic!("{}: the calendar {other:?} is not understood", self.table),
                };
                let offset = self.value("offset_minutes").as_i64().expect("whole minutes");
                Algorithm::calendar_window(self.number("limit"), calendar, offset, false)
            }
            "sliding_counter" => Algorithm::sliding_window(self.number("limit"), self.micros("window_us")),
            "bucketed_window" | "many_buckets" => {
                let (limit, window) = (self.number("limit"), self.micros("window_us"));
                let (buckets, strict) = (self.number("buckets"), self.flag("strict"));
                self.expiring(Algorithm::bucketed_window(limit, window, buckets, strict))
            }
            "uneven_parts" | "many_uneven_parts" => {
                let (limit, window) = (self.number("limit"), self.micros("window_us"));
                Algorithm::parted_window(limit, window, self.micros("part_us"), self.flag("strict"))
            }
            // It never denies.
            "ring_count" => {
                let (bucket, span) = (self.number("bucket_us"), self.number("span_us"));
                self.expiring(Algorithm::bucketed_window(CEILING - 1, Micros(span), span / bucket, false))
            }
            "strict_log" => {
                let (limit, window) = (self.number("limit"), self.micros("window_us"));
                let gap = Micros(self.number_or("min_gap_us", 0));
                Algorithm::strict_log(limit, window, self.flag_or("count_denied", true), gap)
            }
            other => panic!("{}: the algorithm `{other}` is not understood", self.table),
        }
    }
}
