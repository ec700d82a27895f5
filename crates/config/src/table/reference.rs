//! Generates the tables of the pages of the configuration.

use super::{SECTIONS, Setting};

/// Returns the table of each section, by its heading on a page of the configuration.
#[must_use]
pub fn reference() -> Vec<(&'static str, String)> {
    SECTIONS.map(|(section, rows)| (section, reference_table(&rows()))).into()
}

/// Returns the table of some settings.
#[must_use]
pub fn reference_table(settings: &[Setting]) -> String {
    let mut table = "| key | default | bounds | meaning |\n|---|---|---|---|\n".to_owned();
    for setting in settings {
        let cells = [
            format!("`{}`", setting.key),
            setting.default.clone().unwrap_or_else(|| setting.unset.to_owned()),
            setting.bounds.clone(),
            meaning(setting),
        ];
        for cell in cells {
            table += if cell.is_empty() { "|" } else { "| " };
            table += &cell;
            table += " ";
        }
        table += "|\n";
    }
    table
}

/// Returns its text, and its flag or variable.
fn meaning(setting: &Setting) -> String {
    let outside = match (setting.flag(), setting.variable()) {
        (Some(flag), _) => format!("Flag: `--{flag}`."),
        (None, Some(variable)) => format!("Variable: `{variable}`."),
        (None, None) => String::new(),
    };
    let parts = [setting.about, setting.more, &outside];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
