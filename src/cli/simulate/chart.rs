//! The result of a simulation as SVG and as HTML. Both are self-contained, and follow the reader's color scheme (light
//! or dark).

mod axes;

use std::fmt::Write as _;

use self::axes::Axes;
use super::Simulated;
use super::text::{cells, header, span};

/// The left end of the bars.
const LEFT: usize = 64;
/// Space at the right of the bars.
const RIGHT: usize = 16;
/// Height of the title and the legend.
const HEAD: usize = 46;
/// Characters that fit into a line.
const LINE: usize = 118;

const COLORS: &str = "\
.weir{--text:#1f2328;--dim:#59636e;--denied:#b4bcc5;--admitted:#1f6feb;--limit:#cf222e;--axis:#afb8c1;font:12px system-ui,sans-serif}\
@media(prefers-color-scheme:dark){.weir{--text:#e6edf3;--dim:#9198a1;--denied:#545d68;--admitted:#58a6ff;--limit:#ff7b72;--axis:#656c76}}\
.weir text{fill:var(--text)}.weir .d{fill:var(--dim);font-size:11px}.weir .n{fill:var(--denied)}.weir .a{fill:var(--admitted)}\
.weir .l{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:5 3}.weir .x{stroke:var(--axis)}";

/// Draws a row of bars for each strategy: the admitted cost above the axis, the denied cost below it on a scale of its own,
/// and its limit as a line.
pub(super) fn svg(simulated: &Simulated) -> String {
    let axes = Axes::new(simulated);
    let (width, height) = (LEFT + axes.plot + RIGHT, simulated.strategies.len() * axes.row + HEAD);
    let names = simulated.strategies.iter().map(|row| row.result.strategy.as_str()).collect::<Vec<_>>();
    let title = format!("{}; a bar is {}: {}", simulated.title(), span(simulated.column), names.join(", "));
    let mut out = format!(
        "<svg class=\"weir\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"What each strategy admits and denies over time\">\n<style>{COLORS}</style>\n\
         <text x=\"8\" y=\"15\">{}</text>\n",
        escaped(&shortened(&title)),
    );
    legend(&mut out);
    for (place, row) in simulated.strategies.iter().enumerate() {
        axes.draw(&mut out, HEAD + place * axes.row, row);
    }
    out.push_str("</svg>\n");
    out
}

/// The meaning of the colors and of the line.
fn legend(out: &mut String) {
    let mut x = LEFT;
    for (class, name) in [("a", "admitted"), ("n", "denied")] {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"24\" width=\"12\" height=\"12\"/><text class=\"d\" x=\"{}\" y=\"34\">{name}</text>",
            x + 17,
        );
        x += 90;
    }
    let _ = writeln!(
        out,
        "<line class=\"l\" x1=\"{x}\" x2=\"{}\" y1=\"30\" y2=\"30\"/>\
         <text class=\"d\" x=\"{}\" y=\"34\">the limit of all its counters, spread evenly over its window</text>",
        x + 24,
        x + 30,
    );
}

/// Cut to what fits into a line.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Formats a page with the picture and the table.
pub(super) fn html(simulated: &Simulated) -> String {
    let mut rows = String::new();
    for row in &simulated.strategies {
        let cells = cells(simulated, row);
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(rows, "<tr>{cells}</tr>");
    }
    let header: String = header(simulated).iter().map(|name| format!("<th>{name}</th>")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>weir simulate</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <style>body{{font:14px system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem}}\
         svg{{width:100%}}table{{border-collapse:collapse;display:block;overflow-x:auto}}\
         td,th{{padding:.2rem .6rem;text-align:right}}td:first-child,th:first-child{{text-align:left}}</style></head>\n\
         <body><h1>{}</h1>\n<p>{} calls, seed {}</p>\n<table><thead><tr>{header}</tr></thead><tbody>\n{rows}</tbody></table>\n{}\
         </body></html>\n",
        escaped(&simulated.title()),
        simulated.strategies.iter().map(|row| row.calls.calls.len()).max().unwrap_or(0),
        simulated.seed,
        svg(simulated),
    )
}

/// As text of XML, which has no control characters.
fn escaped(text: &str) -> String {
    let plain: String = text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_is_too_wide_is_cut_and_not_clipped() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), LINE + 1);
    }

    #[test]
    fn names_of_files_are_text() {
        assert_eq!(escaped("a<b>&\"\u{1b}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
    }
}
