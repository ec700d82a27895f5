//! A line of a decision log.

use serde_json::{Map, Value};
use weir_units::Micros;

use super::{LoggedDecision, LoggedOperation, Mistake};

/// A line that is JSON.
pub(super) struct LogLine<'t> {
    pub(super) text: &'t str,
    pub(super) object: Map<String, Value>,
}

impl LogLine<'_> {
    /// The mistake at this field's position.
    pub(super) fn at(&self, name: &str, reason: String) -> Mistake {
        (self.text.find(&format!("\"{name}\":")).map_or(1, |place| place + 1), reason)
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Mistake> {
        let text = self.object.get(name).and_then(Value::as_str);
        text.ok_or_else(|| self.at(name, format!("`{name}` must be a text")))
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, Mistake> {
        let number = self.object.get(name).and_then(Value::as_u64);
        number.ok_or_else(|| self.at(name, format!("`{name}` must be a whole number from 0")))
    }

    pub(super) fn decision(&self, place: (usize, u64)) -> Result<LoggedDecision, Mistake> {
        let optional = |name: &str| self.object.get(name).is_some();
        let id = if optional("id") { self.text("id")?.to_owned() } else { String::new() };
        Ok(LoggedDecision {
            place,
            time: Micros(self.number("time_us")?),
            operation: self.operation()?,
            strategy: self.text("strategy")?.to_owned(),
            is_for_default: self.object.get("default").and_then(Value::as_bool).unwrap_or(false),
            inline: self.inline()?,
            resource: self.text("resource")?.to_owned(),
            consumer: self.text("consumer")?.to_owned(),
            attributes: self.attributes()?,
            cost: self.number("cost")?,
            granted: self.number("granted")?,
            costs: self.costs()?,
            hold_for: if optional("hold_for_us") { Some(Micros(self.number("hold_for_us")?)) } else { None },
            granted_by: self.granted_by()?,
            id,
            named: self.named()?,
            outcome: self.text("outcome")?.to_owned(),
            incarnation: 0,
            sequence: self.number("sequence")?,
        })
    }

    fn operation(&self) -> Result<LoggedOperation, Mistake> {
        Ok(match self.text("operation")? {
            "charge" => LoggedOperation::Charge,
            "at_most" => LoggedOperation::AtMost,
            "reserve" => LoggedOperation::Reserve { max_wait: Micros(self.number("max_wait_us")?) },
            "cancel" => LoggedOperation::Cancel,
            "debit" => LoggedOperation::Debit,
            "settle" => LoggedOperation::Settle,
            "refund" => LoggedOperation::Refund,
            "reset" => LoggedOperation::Reset,
            other => {
                let known = "charge, at_most, reserve, cancel, debit, settle, refund, reset";
                return Err(self.at("operation", format!("{other:?} is no operation; there are {known}")));
            }
        })
    }

    fn attributes(&self) -> Result<Vec<(String, String)>, Mistake> {
        let wrong = || self.at("attributes", "`attributes` must be an object of texts".to_owned());
        let Some(given) = self.object.get("attributes") else { return Ok(Vec::new()) };
        let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        given.as_object().and_then(|all| all.iter().map(pair).collect()).ok_or_else(wrong)
    }

    fn named(&self) -> Result<Vec<String>, Mistake> {
        let wrong = || self.at("named", "`named` must be a list of texts".to_owned());
        let Some(given) = self.object.get("named") else { return Ok(Vec::new()) };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        given.as_array().and_then(|all| all.iter().map(text).collect()).ok_or_else(wrong)
    }
}
