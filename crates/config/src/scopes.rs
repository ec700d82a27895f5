//! `per`: the fields that a limit counts by.

use weir_core::strategy::{Field, Scope, is_attribute_name};

use super::errors::MistakeReport;
use super::fields::NamedNode;
use super::values::{Scalar, quote, text};

/// Reads the fields in `per`.
pub(super) fn scope(value: &NamedNode<'_>, report: &mut MistakeReport) -> Option<Scope> {
    let items = value.items(report)?;
    let mut fields: Vec<Field> = Vec::new();
    for item in &items {
        let field = item.read(report, |s| match field(s)? {
            field if fields.contains(&field) => Err(format!("`{field}` is listed twice")),
            field => Ok(field),
        });
        fields.extend(field);
    }
    (fields.len() == items.len()).then(|| Scope::new(&fields))
}

fn field(scalar: Scalar<'_>) -> Result<Field, String> {
    /// A name within this edit distance of a field is a misspelled field, and never an attribute.
    const SLIPS: usize = 2;
    let fields = [("resource", Field::Resource), ("consumer", Field::Consumer)];
    let name = text(scalar)?;
    let shown = quote(&name);
    if let Some((_, field)) = fields.iter().find(|(field, _)| *field == name) {
        return Ok(field.clone());
    }
    if !is_attribute_name(&name) {
        return Err(format!(
            "{shown} is no field of a request: resource, consumer, or the name of an attribute, which is 1 to \
             64 of the characters a-z 0-9 _ - and begins with a letter"
        ));
    }
    if let Some((near, _)) = fields.iter().find(|(field, _)| strsim::levenshtein(field, &name) <= SLIPS) {
        return Err(format!(
            "{shown} would be an attribute that is easily taken for `{near}`; write `{near}`, or call the \
             attribute something else"
        ));
    }
    Ok(Field::Attribute(name.into()))
}
