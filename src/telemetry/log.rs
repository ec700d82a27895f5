//! Logs: for people on a terminal, JSON elsewhere; on stderr, because stdout is for answers.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl Format {
    /// Text where stderr is a terminal, JSON elsewhere.
    #[must_use]
    pub fn fitting() -> Self {
        if std::io::stderr().is_terminal() { Self::Text } else { Self::Json }
    }
}

/// Starts logging what `filter` lets through (`info`, `weir=debug`, …). Says why if it cannot.
pub fn init_logs(filter: &str, format: Format) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("log filter `{filter}`: {error}"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        Format::Text => logs.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Format::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("logging cannot start: {error}"))
}

/// Makes a panic a log line like any other. A panic ends its task, and with it one stream; it is a
/// bug that somebody has to hear of.
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
            ?message,
            "panic: this is a bug in weir"
        );
    }));
}
