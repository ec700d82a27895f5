//! The live page in a terminal.

use std::time::Duration;

use anyhow::Result;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Row, Table};
use weir_proto::v1::{ConsumerCalls, DeploymentNode};
use weir_time::clock;

use super::super::super::terminal::clean_cell;
use super::super::nodes;
use super::WindowArg;
use super::columns::{Column, fitting, used, width_of};
use super::costs;
use super::drawn_table::{BOLD, draw_table, ranked, short};
use super::view::{SPAN, StrategyRow, UsageView, consumer_cells};

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Bar heights of the trend, relative to its maximum.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Shows pages until the user quits. `poll` fetches the next one.
pub(super) fn run(
    first: UsageView,
    window: WindowArg,
    every: Duration,
    mut poll: impl FnMut(WindowArg) -> Result<UsageView>,
) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let mut shown = Screen { view: first, trouble: None, window };
    let result = loop {
        if let Err(error) = terminal.draw(|frame| shown.draw(frame)) {
            break Err(error.into());
        }
        match pressed(every) {
            Ok(Some(Pressed::Leave)) => break Ok(()),
            Ok(Some(Pressed::Window(window))) => shown.window = window,
            Ok(None) => {}
            Err(error) => break Err(error.into()),
        }
        match poll(shown.window) {
            Ok(view) => (shown.view, shown.trouble) = (view, None),
            // The server may recover, so keep running.
            Err(error) => shown.trouble = Some(clean_cell(&format!("{error:#}"))),
        }
    };
    ratatui::try_restore()?;
    result
}

enum Pressed {
    Leave,
    Window(WindowArg),
}

/// Waits for a known key for at most `within`.
fn pressed(within: Duration) -> std::io::Result<Option<Pressed>> {
    let end = clock::monotonic() + within;
    loop {
        let wait = end.saturating_duration_since(clock::monotonic());
        if !event::poll(wait)? {
            return Ok(None);
        }
        let pressed = match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => meaning(key),
            Event::Resize(..) => return Ok(None),
            _ => None,
        };
        if pressed.is_some() {
            return Ok(pressed);
        }
    }
}

fn meaning(key: KeyEvent) -> Option<Pressed> {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Pressed::Leave),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Pressed::Leave),
        KeyCode::Char('m') => Some(Pressed::Window(WindowArg::Minute)),
        KeyCode::Char('h') => Some(Pressed::Window(WindowArg::Hour)),
        _ => None,
    }
}

pub(super) struct Screen {
    pub(super) view: UsageView,
    pub(super) trouble: Option<String>,
    pub(super) window: WindowArg,
}

impl Screen {
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(3);
        let (rows, nodes) = (lines(self.view.rows.len()), lines(self.view.nodes.len()));
        // Without costs by name there is no table of them.
        let costs = if self.view.costs.is_empty() { 0 } else { lines(self.view.costs.len()) };
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(rows.min(frame.area().height / 2).max(4)),
            Constraint::Length(costs.min(frame.area().height / 4)),
            Constraint::Min(3),
            Constraint::Length(nodes.min(frame.area().height / 4)),
            Constraint::Length(1),
        ]);
        let [head, strategies, costs, consumers, nodes, foot] = areas.areas(frame.area());
        frame.render_widget(self.head(), head);
        self.draw_strategies(frame, strategies);
        costs::draw(frame, costs, &self.view.costs);
        // Names that do not fit side by side have the whole width, one table below the other.
        let half = usize::from(consumers.width / 2);
        let fits =
            [&self.view.denied, &self.view.allowed].into_iter().all(|one| consumers_width(one) <= half);
        let halves = [Constraint::Percentage(50); 2];
        let layout = if fits { Layout::horizontal(halves).spacing(1) } else { Layout::vertical(halves) };
        let [denied, allowed] = layout.areas(consumers);
        draw_consumers(frame, denied, &format!(" denied most, {} ", self.view.window), &self.view.denied);
        draw_consumers(frame, allowed, &format!(" allowed most, {} ", self.view.window), &self.view.allowed);
        draw_nodes(frame, nodes, &self.view.nodes);
        let keys = " q leave   m consumers of the last minute   h of the last hour";
        frame.render_widget(Line::from(Span::styled(keys, DIM)), foot);
    }

    fn head(&self) -> Line<'_> {
        let bad = Style::new().fg(Color::Red);
        if let Some(trouble) = &self.trouble {
            return Line::from(vec![Span::styled(" weir ", BOLD), Span::styled(trouble, bad)]);
        }
        let running = self.view.nodes.iter().filter(|node| node.ended_at.is_none());
        let names: Vec<String> = running.map(|node| clean_cell(&node.name)).collect();
        let mut parts = vec![Span::styled(" weir ", BOLD), Span::raw(names.join(", "))];
        if !self.view.incomplete.is_empty() {
            parts.push(Span::styled(format!("  other nodes are missing: {}", self.view.incomplete), bad));
        }
        Line::from(parts)
    }

    fn draw_strategies(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = &self.view.rows;
        let uncharged: u64 = rows.iter().map(|row| row.uncharged).sum();
        let title = match uncharged {
            0 => " decisions, mean of the last 10 s ".to_owned(),
            _ => format!(" decisions, mean of the last 10 s; {uncharged} uncharged in the last minute "),
        };
        let strategies = width_of("strategy", rows.iter().map(|row| row.strategy.as_str()));
        let patterns = width_of("resources", rows.iter().map(|row| row.pattern.as_str()));
        let wide = [strategies, patterns, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, LEAST_TREND];
        let columns: Vec<Column> =
            wide.into_iter().zip(RANKS).map(|(width, rank)| Column { width, rank }).collect();
        let width = usize::from(area.width);
        let shown = fitting(&columns, width);
        let rest = width.saturating_sub(used(&columns, &shown));
        let widths = shown.iter().map(|&place| match place {
            TREND => Constraint::Length(short(LEAST_TREND + rest.min(SPAN as usize / 2 - LEAST_TREND))),
            place => Constraint::Length(short(columns.get(place).map_or(0, |column| column.width))),
        });
        let most = rows.iter().flat_map(halves).max().unwrap_or(0);
        let line = |row| {
            let mut cells: Vec<Option<Cell<'_>>> = strategy_cells(row, most).into_iter().map(Some).collect();
            Row::new(shown.iter().filter_map(|&place| cells.get_mut(place)?.take()).collect::<Vec<_>>())
        };
        let head = shown.iter().filter_map(|&place| TITLES.get(place).copied());
        let table = Table::new(rows.iter().map(line), widths.collect::<Vec<_>>())
            .header(Row::new(head.collect::<Vec<_>>()).style(BOLD))
            .block(Block::new().borders(Borders::TOP).title(title));
        frame.render_widget(table, area);
    }
}

/// The columns of strategies, how important each is, and the place of the trend, which takes what is left.
const TITLES: [&str; 8] =
    ["strategy", "resources", "calls/s", "denied/s", "cost/s", "by list", "degraded", "last minute"];
const RANKS: [usize; 8] = [0, 3, 1, 2, 6, 7, 4, 5];
const TREND: usize = 7;

/// Width of a number, and the least width of the trend.
const NUMBER: usize = 8;
const LEAST_TREND: usize = 11;

fn strategy_cells(row: &StrategyRow, most: u64) -> [Cell<'_>; 8] {
    let number = |number: f64, style: Style| Cell::from(Line::from(rate(number)).style(style));
    let color = |count: u64, color: Color| if count > 0 { Style::new().fg(color) } else { DIM };
    [
        Cell::from(row.strategy.as_str()),
        Cell::from(row.pattern.as_str()),
        number(row.calls_per_s, Style::new()),
        number(row.denied_per_s, color(row.denied, Color::Yellow)),
        number(row.cost_per_s, Style::new()),
        Cell::from(row.listed.to_string()).style(color(row.listed, Color::Magenta)),
        Cell::from(row.degraded.to_string()).style(color(row.degraded, Color::Red)),
        Cell::from(bars(row, most)).style(Style::new().fg(Color::Cyan)),
    ]
}

/// A rate in at most eight characters.
fn rate(per_second: f64) -> String {
    match per_second {
        ..100_000.0 => format!("{per_second:.1}"),
        100_000.0..1e8 => format!("{per_second:.0}"),
        _ => format!("{:.1}M", per_second / 1e6),
    }
}

/// Iterates over the calls of each two seconds.
fn halves(row: &StrategyRow) -> impl Iterator<Item = u64> {
    row.trend.chunks(2).map(|pair| pair.iter().sum())
}

fn bars(row: &StrategyRow, most: u64) -> String {
    let bar = |calls: u64| match calls {
        0 => ' ',
        calls => {
            let height = calls.saturating_mul(BARS.len() as u64 - 1) / most.max(1);
            usize::try_from(height).ok().and_then(|height| BARS.get(height)).copied().unwrap_or('█')
        }
    };
    halves(row).map(bar).collect()
}

/// The columns of consumers, and how important each is.
const CONSUMER_TITLES: [&str; 3] = ["consumer", "strategy", "calls"];
const CONSUMER_RANKS: [usize; 3] = [0, 2, 1];

/// The width that the names and numbers of consumers need.
fn consumers_width(consumers: &[ConsumerCalls]) -> usize {
    let rows: Vec<[String; 3]> = consumers.iter().map(consumer_cells).collect();
    let columns = ranked(&CONSUMER_TITLES, &CONSUMER_RANKS, &rows).into_iter().map(|(_, column)| column);
    used(&columns.collect::<Vec<_>>(), &[0, 2])
}

fn draw_consumers(frame: &mut Frame<'_>, area: Rect, title: &str, consumers: &[ConsumerCalls]) {
    let rows: Vec<[String; 3]> = consumers.iter().map(consumer_cells).collect();
    draw_table(frame, area, title, &ranked(&CONSUMER_TITLES, &CONSUMER_RANKS, &rows), &rows);
}

/// The rank of each column of a node.
const NODE_RANKS: [usize; 8] = [0, 4, 1, 3, 7, 2, 6, 5];

/// The rows of `weir nodes`: those that have ended come last.
fn draw_nodes(frame: &mut Frame<'_>, area: Rect, nodes: &[DeploymentNode]) {
    let rows: Vec<[String; 8]> = nodes.iter().map(nodes::cells).collect();
    draw_table(frame, area, " nodes ", &ranked(&nodes::HEAD, &NODE_RANKS, &rows), &rows);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn screen() -> Screen {
        let row = StrategyRow {
            strategy: "api".to_owned(),
            pattern: "api/*".to_owned(),
            calls: 600,
            denied: 60,
            listed: 4,
            uncharged: 3,
            degraded: 0,
            calls_per_s: 10.0,
            denied_per_s: 1.0,
            cost_per_s: 25.5,
            trend: (0..60).collect(),
        };
        let bob = ConsumerCalls {
            consumer: "bob".to_owned(),
            strategy: "api".to_owned(),
            allowed: false,
            calls: 60,
            error: 2,
            sampling_error: 10,
        };
        let view = UsageView {
            rows: vec![row],
            denied: vec![bob],
            window: "last minute",
            nodes: ["one", "two"]
                .map(|name| DeploymentNode { name: name.to_owned(), ..DeploymentNode::default() })
                .into(),
            ..UsageView::default()
        };
        Screen { view, trouble: None, window: WindowArg::Minute }
    }

    #[test]
    fn a_screen_has_strategies_and_consumers() {
        let text = drawn(&screen(), 120, 20);
        for part in ["one, two", "api/*", "10.0", "25.5", "bob", "60 ±12", "denied most, last minute", "█"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn eighty_columns_have_whole_names_and_sixty_have_fewer_columns() {
        let mut screen = screen();
        let named = |strategy: &str, pattern: &str| StrategyRow {
            strategy: strategy.to_owned(),
            pattern: pattern.to_owned(),
            ..screen.view.rows[0].clone()
        };
        let rows = vec![named("tiger-feeding", "zewtopia.com/tigerfeeding"), named("search", "api/search")];
        screen.view.rows = rows;
        let bob = ConsumerCalls {
            consumer: "alice.of.wonderland@example.com".to_owned(),
            ..screen.view.denied[0].clone()
        };
        (screen.view.allowed, screen.view.denied) = (vec![bob.clone()], vec![bob]);
        for width in [80, 60] {
            let text = drawn(&screen, width, 24);
            for name in ["tiger-feeding", "alice.of.wonderland@example.com", "calls/s", "denied/s"] {
                assert!(text.contains(name), "{name} at {width}:\n{text}");
            }
            assert_eq!(text.matches("60 ±12").count(), 2, "{text}");
        }
        let (wide, narrow) = (drawn(&screen, 80, 24), drawn(&screen, 60, 24));
        assert!(wide.contains("zewtopia.com/tigerfeeding") && wide.contains("degraded"), "{wide}");
        assert!(narrow.contains("zewtopia.com/tigerfeeding") && !narrow.contains("cost/s"), "{narrow}");
        let smallest = drawn(&screen, 40, 24);
        assert!(smallest.contains("tiger-feeding") && !smallest.contains("zewtopia"), "{smallest}");
    }

    #[test]
    fn it_fits_into_any_terminal_and_shows_what_is_wrong() {
        let mut screen = screen();
        screen.trouble = Some("no server can be reached".to_owned());
        assert!(drawn(&screen, 80, 24).contains("no server can be reached"));
        for (width, height) in [(1, 1), (10, 3), (40, 8), (300, 100)] {
            drawn(&screen, width, height);
        }
    }
}
