//! The costs by name of a line, and what each limit granted of them.

use serde_json::{Map, Value};

use super::{LogLine, Mistake};
use crate::simulation::CostByName;

impl LogLine<'_> {
    /// The costs by name, in the order of their names.
    pub(super) fn costs(&self) -> Result<Vec<CostByName>, Mistake> {
        let (costs, least) = (self.units("costs")?, self.units("at_least")?);
        if let Some((name, _)) = least.iter().find(|(name, _)| !costs.iter().any(|(known, _)| known == name))
        {
            return Err(self.at("at_least", format!("`at_least` has {name:?}, which `costs` has not")));
        }
        let find = |name: &str| least.iter().find(|(known, _)| known == name).map(|(_, units)| *units);
        let cost = |(name, cost): (String, u64)| CostByName { at_least: find(&name), name, cost };
        Ok(costs.into_iter().map(cost).collect())
    }

    /// Returns the grant of each limit, if the line has costs by name.
    pub(super) fn granted_by(&self) -> Result<Vec<(String, u64)>, Mistake> {
        if !self.object.contains_key("costs") {
            return Ok(Vec::new());
        }
        let wrong =
            || self.at("limits", "`limits` must be a list of objects with a `name` and `granted`".to_owned());
        let limit = |value: &Value| {
            let name = value.get("name").and_then(Value::as_str)?;
            Some((name.to_owned(), value.get("granted").and_then(Value::as_u64).unwrap_or(0)))
        };
        let limits = self.object.get("limits").and_then(Value::as_array).ok_or_else(wrong)?;
        limits.iter().map(limit).collect::<Option<_>>().ok_or_else(wrong)
    }

    /// An object of whole numbers by name; absent is empty.
    fn units(&self, field: &str) -> Result<Vec<(String, u64)>, Mistake> {
        let wrong = || self.at(field, format!("`{field}` must be an object of whole numbers from 0"));
        let Some(given) = self.object.get(field) else { return Ok(Vec::new()) };
        let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_u64()?));
        let pairs = |all: &Map<String, Value>| all.iter().map(pair).collect();
        given.as_object().and_then(pairs).ok_or_else(wrong)
    }
}
