//! YAML as other tools read it: the core schema of YAML 1.2, anchors, and merged mappings. What Weir's
//! own reader takes is stricter, and so cannot judge files that are not Weir's.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The documents of a text.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    let events: Result<Vec<Event<'_>>, _> =
        Parser::new_from_str(text).map(|event| event.map(|(event, _)| event)).collect();
    let mut reader =
        YamlReader { events: events.map_err(|error| error.to_string())?.into_iter(), known: HashMap::new() };
    let mut documents = Vec::new();
    while let Some(event) = reader.events.next() {
        if matches!(event, Event::DocumentStart(_)) {
            let first = reader.events.next().ok_or("the text ends early")?;
            documents.push(reader.value(first)?);
        }
    }
    Ok(documents)
}

/// The one document of a text; an empty text is null.
pub fn document(text: &str) -> Result<Value, String> {
    let mut documents = documents(text)?;
    match documents.len() {
        0 | 1 => Ok(documents.pop().unwrap_or_default()),
        many => Err(format!("{many} documents")),
    }
}

struct YamlReader<'t> {
    events: std::vec::IntoIter<Event<'t>>,
    known: HashMap<usize, Value>,
}

impl<'t> YamlReader<'t> {
    fn value(&mut self, event: Event<'t>) -> Result<Value, String> {
        let (anchor, value) = match event {
            Event::Alias(anchor) => {
                return self.known.get(&anchor).cloned().ok_or_else(|| "an alias of nothing".into());
            }
            Event::Scalar(text, style, anchor, _) => (anchor, scalar(&text, style)),
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                while let Some(event) = self.until(|event| matches!(event, Event::SequenceEnd))? {
                    items.push(self.value(event)?);
                }
                (anchor, Value::Array(items))
            }
            Event::MappingStart(anchor, _) => (anchor, self.mapping()?),
            event => return Err(format!("no value: {event:?}")),
        };
        self.known.insert(anchor, value.clone());
        Ok(value)
    }

    fn mapping(&mut self) -> Result<Value, String> {
        let (mut entries, mut merged) = (Map::new(), Map::new());
        while let Some(event) = self.until(|event| matches!(event, Event::MappingEnd))? {
            let key = match self.value(event)? {
                Value::String(key) => key,
                Value::Array(_) | Value::Object(_) => return Err("a key is no single value".into()),
                key => key.to_string(),
            };
            let event = self.events.next().ok_or("the text ends early")?;
            match (key.as_str(), self.value(event)?) {
                ("<<", Value::Object(base)) => merged = base,
                (_, value) => {
                    if entries.insert(key.clone(), value).is_some() {
                        return Err(format!("`{key}` is given twice"));
                    }
                }
            }
        }
        merged.extend(entries);
        Ok(Value::Object(merged))
    }

    fn until(&mut self, end: impl Fn(&Event<'t>) -> bool) -> Result<Option<Event<'t>>, String> {
        let event = self.events.next().ok_or("the text ends early")?;
        Ok((!end(&event)).then_some(event))
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    let numeric = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let integer = text.strip_prefix('+').unwrap_or(text).parse::<i128>().ok();
    match integer.and_then(|integer| u64::try_from(integer).ok()) {
        Some(integer) => integer.into(),
        None => text
            .parse::<f64>()
            .ok()
            .filter(|float| numeric && float.is_finite())
            .map_or_else(|| text.into(), Value::from),
    }
}
