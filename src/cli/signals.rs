//! SIGTERM and SIGINT: the first signal starts a graceful shutdown, the second ends the process at once. SIGINT skips
//! the drain delay, because a person waits for it.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use weir_node::server::Shutdown;
use weir_node::telemetry::flush_logs;

const SIGTERM: &str = "SIGTERM";
const SIGINT: &str = "SIGINT";

/// Exit code of a program ended by Ctrl-C: 128 + SIGINT.
const INTERRUPTED: i32 = 130;
/// Maximum time to flush the log at the second signal, so that its last line is written if there is a reader.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Installs the signal handlers. The future resolves at the first signal; the second one ends the process at once.
/// They run on a thread of their own, so that no blocked thread delays them.
pub(crate) fn shutdown() -> io::Result<impl Future<Output = Shutdown>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = runtime.block_on(async {
        io::Result::Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    })?;
    let (sender, receiver) = oneshot::channel();
    let listen = move || {
        runtime.block_on(async {
            let signal = either(&mut terminate, &mut interrupt).await;
            tracing::info!(signal, "stopping");
            let _ = sender.send(if signal == SIGINT { Shutdown::Immediate } else { Shutdown::Delayed });
            let signal = either(&mut terminate, &mut interrupt).await;
            tracing::warn!(signal, "stopping at once");
            flush_logs(LAST_WORDS);
            std::process::exit(INTERRUPTED);
        });
    };
    std::thread::Builder::new().name("weir-signals".to_owned()).spawn(listen)?;
    // The thread always sends before it ends.
    Ok(async { receiver.await.unwrap_or(Shutdown::Immediate) })
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => SIGTERM,
        _ = interrupt.recv() => SIGINT,
    }
}
