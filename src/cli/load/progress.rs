//! The progress display on stderr: a line that is updated in place on a terminal, otherwise a line every few seconds.
//! The same thread handles Ctrl-C, which ends the run and still prints the report.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use weir_load::{Plan, PlanEnd, RunWatch};
use weir_time::clock::monotonic;

use crate::cli::signals;

const ON_TERMINAL: Duration = Duration::from_millis(500);
const ELSEWHERE: Duration = Duration::from_secs(5);

/// A handle to the progress thread.
pub(super) struct Shown {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the display of the progress of `plan`.
pub(super) fn show(plan: &Plan, watch: &Arc<RunWatch>, is_quiet: bool) -> Shown {
    let (end, ended) = oneshot::channel();
    let (warm_up, whole, watch) = (plan.warm_up, whole(plan), Arc::clone(watch));
    // Without a signal handler, Ctrl-C ends the program as usual.
    let interrupted = signals::shutdown(None).ok().map(|shutdown| async {
        shutdown.await;
    });
    // The run does not depend on this thread.
    let thread = std::thread::Builder::new().name("load-progress".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(show_until(warm_up, whole, &watch, is_quiet, interrupted, ended));
        }
    });
    Shown { end: Some(end), thread: thread.ok() }
}

impl Shown {
    pub(super) fn end(mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // The thread has no result.
            let _ = thread.join();
        }
    }
}

/// The planned length of the measured part.
#[derive(Clone, Copy)]
enum Whole {
    Seconds(f64),
    Decisions(u64),
}

fn whole(plan: &Plan) -> Whole {
    match plan.end {
        PlanEnd::After(duration) => Whole::Seconds(duration.as_secs_f64()),
        PlanEnd::Calls(calls) => Whole::Decisions(calls.saturating_mul(plan.mode.decisions() as u64)),
    }
}

async fn show_until(
    warm_up: Duration,
    whole: Whole,
    watch: &RunWatch,
    is_quiet: bool,
    interrupted: Option<impl Future<Output = ()>>,
    mut ended: oneshot::Receiver<()>,
) {
    let is_terminal = io::stderr().is_terminal();
    let period = if is_terminal { ON_TERMINAL } else { ELSEWHERE };
    let begin = monotonic();
    let mut interrupted = interrupted.map(Box::pin);
    let mut before = (monotonic(), 0);
    loop {
        tokio::select! {
            _ = &mut ended => break,
            () = received(&mut interrupted) => {
                interrupted = None;
                watch.stop();
                continue;
            }
            () = tokio::time::sleep(period) => {}
        }
        if is_quiet {
            continue;
        }
        let (now, progress) = (monotonic(), watch.progress());
        #[allow(clippy::cast_precision_loss)]
        let rate = (progress.decisions - before.1) as f64 / (now - before.0).as_secs_f64();
        before = (now, progress.decisions);
        let counted = (now - begin).saturating_sub(warm_up);
        let place = match whole {
            _ if counted.is_zero() => "warm-up".to_owned(),
            Whole::Seconds(all) => format!("{:.0} of {all:.0} s", counted.as_secs_f64().min(all)),
            Whole::Decisions(all) => format!("{} of {all}", progress.decisions + progress.failed),
        };
        let line = format!(
            "{place}: {rate:.0} decisions/s, {} allowed, {} denied, {} failed",
            progress.allowed,
            progress.decisions - progress.allowed,
            progress.failed
        );
        let _ = match is_terminal {
            true => write!(io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }
    if is_terminal && !is_quiet {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Resolves when the signal arrives; never, if it cannot be handled or has arrived before.
async fn received(interrupted: &mut Option<impl Future<Output = ()> + Unpin>) {
    match interrupted {
        Some(interrupted) => interrupted.await,
        None => std::future::pending().await,
    }
}
