//! SIGTERM, SIGQUIT and SIGINT: the first signal starts a graceful shutdown, the second ends the process at once. SIGINT skips
//! the drain delay, because a person waits for it. SIGUSR1 and SIGUSR2 are logged and ignored: other servers reopen their
//! logs or start a new binary at them, and a script that sends one to all must not end this process. A server reads its
//! files again at SIGHUP.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use weir_node::server::Shutdown;
use weir_node::telemetry::flush_logs;
use weir_node::watch::ReloadRequests;

use super::notify;

const SIGTERM: &str = "SIGTERM";
const SIGINT: &str = "SIGINT";
const SIGQUIT: &str = "SIGQUIT";

/// Exit code of a program ended by Ctrl-C: 128 + SIGINT.
const INTERRUPTED: i32 = 130;
/// Maximum time to flush the log at the second signal, so that its last line is written if there is a reader.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Installs the signal handlers. The future resolves at the first signal; the second one ends the process at once.
/// They run on a thread of their own, so that no blocked thread delays them. SIGHUP asks `reloads` to read the files;
/// without them it ends the process, as it does by default.
pub(crate) fn shutdown(reloads: Option<ReloadRequests>) -> io::Result<impl Future<Output = Shutdown>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = runtime.block_on(async { Signals::install(reloads) })?;
    let (sender, receiver) = oneshot::channel();
    let listen = move || {
        runtime.block_on(async {
            let signal = signals.next().await;
            tracing::info!(signal, "stopping");
            notify::stopping();
            let _ = sender.send(if signal == SIGINT { Shutdown::Immediate } else { Shutdown::Delayed });
            let signal = signals.next().await;
            tracing::warn!(signal, "stopping immediately");
            flush_logs(LAST_WORDS);
            std::process::exit(INTERRUPTED);
        });
    };
    std::thread::Builder::new().name("weir-signals".to_owned()).spawn(listen)?;
    // The thread always sends before it ends.
    Ok(async { receiver.await.unwrap_or(Shutdown::Immediate) })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    user_1: Signal,
    user_2: Signal,
    hang_up: Option<(Signal, ReloadRequests)>,
}

impl Signals {
    fn install(reloads: Option<ReloadRequests>) -> io::Result<Self> {
        let hang_up = reloads.map(|reloads| io::Result::Ok((signal(SignalKind::hangup())?, reloads)));
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            user_1: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
            hang_up: hang_up.transpose()?,
        })
    }

    /// The next signal that ends the process.
    async fn next(&mut self) -> &'static str {
        loop {
            let ignored = tokio::select! {
                _ = self.terminate.recv() => return SIGTERM,
                _ = self.interrupt.recv() => return SIGINT,
                _ = self.quit.recv() => return SIGQUIT,
                _ = self.user_1.recv() => "SIGUSR1",
                _ = self.user_2.recv() => "SIGUSR2",
                () = hung_up(&mut self.hang_up) => continue,
            };
            tracing::info!(signal = ignored, "ignoring a signal");
        }
    }
}

/// Asks for a reload at the next SIGHUP, and tells the service manager of its begin and its end.
async fn hung_up(hang_up: &mut Option<(Signal, ReloadRequests)>) {
    match hang_up {
        Some((signal, reloads)) => {
            signal.recv().await;
            tracing::info!("SIGHUP; reloading all files");
            notify::reloading();
            let reloads = reloads.clone();
            // Beside the signals: the next one must not wait for the files.
            tokio::spawn(async move {
                if reloads.reload().await.is_none() {
                    reloads.request();
                }
                notify::ready();
            });
        }
        None => std::future::pending().await,
    }
}
