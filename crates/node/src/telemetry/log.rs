//! Logs: for people on a terminal, JSON elsewhere; on stderr, because stdout is for answers.

use std::io::IsTerminal as _;
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::lines::LineWriter;

/// The log of this process, once it has been started.
static LOG: OnceLock<LineWriter> = OnceLock::new();

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl Format {
    /// Text where stderr is a terminal, JSON elsewhere.
    pub fn fitting() -> Self {
        if std::io::stderr().is_terminal() { Self::Text } else { Self::Json }
    }
}

/// Checks a filter: levels, for all or for one part of the program, such as `info,weir_store=debug`.
pub fn check_filter(filter: &str) -> Result<(), String> {
    parse_filter(filter).map(drop)
}

/// Without any directive, errors are logged.
fn parse_filter(filter: &str) -> Result<Targets, String> {
    let directives = filter.split(',').map(str::trim).filter(|text| !text.is_empty());
    let directives: Vec<&str> = directives.collect();
    if let Some(text) = directives.iter().find(|text| text.contains(['[', ']', '{', '}', '"'])) {
        return Err(format!("`{text}`: a filter names parts of the program, not spans or fields"));
    }
    // To the library `debgu` would be a part of the program, and everything else would no longer be logged.
    let is_level = |text: &str| text.parse::<LevelFilter>().is_ok();
    if let Some(word) = directives.iter().find(|text| !text.contains('=') && !is_level(text)) {
        return Err(format!(
            "`{word}` is not a level: off, error, warn, info, debug or trace; a part of the program gets its \
             own level with an equals sign, such as weir_store=debug"
        ));
    }
    if directives.is_empty() {
        return Ok(Targets::new().with_default(LevelFilter::ERROR));
    }
    directives.join(",").parse::<Targets>().map_err(|error| error.to_string())
}

/// Starts logging what `filter` lets through (`info`, `weir=debug`, …) to stderr, and gives back what
/// writes there. Says why if it cannot.
pub fn init_logs(filter: &str, format: Format) -> Result<LineWriter, String> {
    let filter = parse_filter(filter).map_err(|error| format!("log filter `{filter}`: {error}"))?;
    let cannot_start = |error: &dyn std::fmt::Display| format!("logging cannot start: {error}");
    let stderr = LineWriter::spawn("weir-stderr", std::io::stderr()).map_err(|error| cannot_start(&error))?;
    let log = LOG.get_or_init(|| stderr).clone();
    let writer = log.clone();
    // An event that cannot be formatted is dropped; the library would report it on stderr by itself.
    let lines = fmt::layer().log_internal_errors(false).with_writer(move || writer.clone());
    let events = tracing_subscriber::registry();
    let started = match format {
        Format::Text => events.with(lines.with_ansi(std::io::stderr().is_terminal())).with(filter).try_init(),
        Format::Json => events.with(lines.json().flatten_event(true)).with(filter).try_init(),
    };
    started.map_err(|error| cannot_start(&error)).map(|()| log)
}

/// Waits until the log has been written, but not longer than `wait`.
pub fn flush_logs(wait: Duration) {
    if let Some(log) = LOG.get() {
        log.flush(wait);
    }
}

/// Returns the number of log lines that did not fit or could not be written.
pub(super) fn lines_dropped() -> u64 {
    LOG.get().map_or(0, LineWriter::dropped)
}

/// Makes a panic a log line like any other. A panic ends its task, and with it one stream; it is a
/// bug that somebody has to see.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no message)");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        tracing::error!(
            thread = thread.name().unwrap_or("?"),
            place,
            reason = message,
            "panic: this is a bug in weir"
        );
    }));
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for filter in ["", "info", "DEBUG", "off", "weir=debug,info", "warn, weir_store=trace,", "5"] {
            assert_eq!(check_filter(filter), Ok(()), "{filter}");
        }
        for filter in ["debgu", "info,debgu", "weir::store", "weir=debgu", "weir=debug=info", "weir[x]=info"]
        {
            assert!(check_filter(filter).is_err(), "{filter}");
        }
    }

    #[test]
    fn a_filter_lets_through_what_it_names() {
        use tracing::Level;
        // Of each filter: a part of the program, and the finest level that is logged of it.
        for (filter, target, finest) in [
            ("", "weir_node", LevelFilter::ERROR),
            ("info", "weir_node::service", LevelFilter::INFO),
            ("off", "weir_node", LevelFilter::OFF),
            ("warn, weir_store=trace", "weir_store::memory", LevelFilter::TRACE),
            ("warn, weir_store=trace", "weir_node", LevelFilter::WARN),
            ("weir_store=debug", "weir_node", LevelFilter::OFF),
            ("WARN,weir_node=off,weir_node::app=info", "weir_node::app", LevelFilter::INFO),
            ("WARN,weir_node=off,weir_node::app=info", "weir_node::queues", LevelFilter::OFF),
        ] {
            let parsed = parse_filter(filter).unwrap();
            for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
                let logged = parsed.would_enable(target, &level);
                assert_eq!(logged, level <= finest, "{filter}: {target} at {level}");
            }
        }
    }

    const NAME: &str = "telemetry::log::tests::a_panic_is_survived_where_it_cannot_be_logged";
    const IN_CHILD: &str = "WEIR_TEST_PANICS";

    /// Runs itself in a process of its own, because hooks and logs belong to a process.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_panic_is_survived_where_it_cannot_be_logged() {
        if std::env::var_os(IN_CHILD).is_some() {
            let log = init_logs("info", Format::Json).unwrap();
            log_panics();
            let panicked = std::thread::spawn(|| panic!("as a bug would")).join();
            assert!(panicked.is_err());
            log.flush(Duration::from_secs(60));
            assert_eq!(log.dropped(), 1);
            return;
        }
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", NAME, "--nocapture"]).env(IN_CHILD, "1").stdin(Stdio::null());
        let out = child.stderr(full).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"), "{out:?}");
    }
}
